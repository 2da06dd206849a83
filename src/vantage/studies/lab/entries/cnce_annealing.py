"""Four policies by which Ring anneals (Wu et al., arXiv 2010.02037, Figures 2b and 2c, Appendix E)."""

# fmt: off

from dataclasses import replace
from typing import Any

from vantage.composition.fitting import everywhere
from vantage.negatives import Ring
from vantage.recipes import ring_ir
from vantage.schedules import Adaptive, ByEpoch, FollowsAccuracy, FollowsLoss, Linear, Schedule
from vantage.studies.lab.entries.cnce_arms import KNN, LINEAR, from_scratch
from vantage.studies.lab.entries.paper_commands import judged, ring_training
from vantage.studies.lab.entry import Arm, Cell, Claim, Entry, Reason
from vantage.studies.lab.judging.predicates import Above, Beats, Close
from vantage.studies.lab.measures.annealing import AdaptedShare, NearestByEpoch
from vantage.studies.lab.measures.vectors import ProtocolAccuracy
from vantage.studies.lab.panel import Panel
from vantage.studies.lab.two_cores import Scale, gate, own_floors
from vantage.training.run import Monitoring

__all__ = ["FIGURE_2B"]

_SCALE = Scale(images=5_000)
_EPOCHS, _PAPERS_EPOCHS = 40, 200
_STEPS, _PAPERS_STEPS = _EPOCHS * (4_500 // _SCALE.batch_size), _PAPERS_EPOCHS * (50_000 // 256)
"""Steps here, where a tenth of the images is held out; and of the paper's run on CIFAR-10."""


def _annealed(keep: Schedule | Adaptive | None = None) -> Arm:
    """IRing trained from scratch with this share of keys, counted in the paper's epochs; None: the recipe's own, which
    falls from all to a tenth over the first half of the run."""
    validations = int(isinstance(keep, FollowsAccuracy))
    recipe = replace(ring_ir(32), epochs=_PAPERS_EPOCHS, monitoring=Monitoring(keep_every=2, knn_every=validations))

    def by_policy(part: Any) -> Any:
        return replace(part, keep=keep) if keep and isinstance(part, Ring) else part

    return from_scratch(replace(recipe, branches=everywhere(recipe.branches, by_policy)), _EPOCHS, scale=_SCALE)


_LEVELS = ByEpoch(Linear(1.0, 0.1, 9), every=10.0)
_BY_ACCURACY = FollowsAccuracy(by=round(FollowsAccuracy().by * _PAPERS_EPOCHS / _EPOCHS, 4))
_BY_LOSS = FollowsLoss(by=round(FollowsLoss().by * _PAPERS_STEPS / _STEPS, 4))
"""Adaptive policies take larger steps here, since there are fewer of them: as far in a share of the run."""

_MEASURES = (ProtocolAccuracy(), NearestByEpoch())
_LINEAR = _annealed()
_FIXED, _ADAPTIVE = ("linear", "step"), ("accuracy", "loss")
_POLICIES = (*_FIXED, *_ADAPTIVE)
_LAST, _NEARLY = "1-NN, at 100 %", "1-NN, 95 % of its end after"
_REACHED = "keys kept, end reached after"
_EARLY = (Reason("with so few steps, a few improvements in a row lead to a tenth, and what the policies follow improves"
    " from the start: the accuracy grows while the share of keys falls",
    Beats("accuracy @ 1-NN, at 30 %", "accuracy @ 1-NN, at 10 %"), _LAST),)


def _course(cell: str, number: str) -> dict[str, float]:
    """A number of a cell along its run."""
    return {f"{cell} @ {number}, at {place} %": float(place) for place in range(10, 101, 10)}


FIGURE_2B = Entry(
    "cnce-figure-2b",
    "CNCE",
    "Figures 2b and 2c",
    "four policies of annealing",
    cells=(
        *own_floors("IR", _LINEAR),
        Cell("linear", _LINEAR, _MEASURES),
        Cell("step", _annealed(_LEVELS), _MEASURES),
        Cell("accuracy", _annealed(_BY_ACCURACY), (*_MEASURES, AdaptedShare())),
        Cell("loss", _annealed(_BY_LOSS), (*_MEASURES, AdaptedShare())),
    ),
    claims=(
        Claim("b.1", "all end within ± 1", "Appendix E", (Close(_POLICIES, 1.0),), (), _LAST, True,
            precondition=Beats("linear @ knn", "random encoder, IR @ knn"), note="if they learn at all"),
        Claim("b.2", "linear and step reach 95 % of their end sooner than both adaptive policies", "Appendix E",
            tuple(Beats(slow, fast) for slow in _ADAPTIVE for fast in _FIXED), (), _NEARLY),
        Claim("c.1", "adaptive thresholds reach a tenth before the end", "Appendix E",
            tuple(Above(policy, 100.0, below=True) for policy in _ADAPTIVE), (), _REACHED,
            note="in percent of the run; 100 for one that never does"),
        Claim("c.2", "they do so at .75 ± .1 of the run", "Appendix E", tuple(bound for policy in _ADAPTIVE for bound in
            (Above(policy, 65.0), Above(policy, 85.0, below=True))), (), _REACHED, reasons=_EARLY),
        Claim("c.3", "they never leave [.1, 1]", "Appendix E", (),
            note="they are clipped to this range, so no run could leave it"),
    ),
    commands=judged("knn --k 1", (
        f"{ring_training('ring_ir', run=f'ring_{name}')} --epochs 200 --set branches.0.negatives.0.keep={keep}"
        for name, keep in (
            ("linear", "BetweenEpochs(Linear(1.0,0.1,100))"), ("step", "ByEpoch(Linear(1.0,0.1,9),every=10.0)"),
            ("accuracy", "FollowsAccuracy() --set monitoring.knn_every=1"), ("loss", "FollowsLoss()"),
        )
    ), "CIFAR10"),
    gate=gate("linear", "IR"),
    panels=(
        *(Panel(by, {"": _POLICIES}) for by in (LINEAR, KNN)),
        Panel(_LAST, {policy: _course(policy, "1-NN") for policy in _POLICIES}, "share of the run (%)",
            y_label="1-NN, top-1 (%)"),
        Panel(_REACHED, {policy: _course(policy, "keys kept") for policy in _ADAPTIVE}, "share of the run (%)",
            y_label="share of keys (%)"),
    ),
    scale="trained from scratch on 5,000 images; linear and step anneal over the first half of the run, as in the"
    f" paper; the two adaptive policies move by {_BY_ACCURACY.by:g} and {_BY_LOSS.by:g} at a time, where the code has"
    " .05 and .01 in a run with more steps",
)
"""Figures 2b and 2c: policies of annealing."""
