"""JCL's ablations (Cai et al., arXiv 2009.14776, Figure 2): the number of keys, λ and τ."""

# fmt: off

from dataclasses import replace

from vantage.studies.lab.entries.jcl_arms import (
    ARMS,
    ERROR,
    FLOORS,
    GATE,
    LINEAR,
    at_temperature,
    with_keys,
    with_strength,
)
from vantage.studies.lab.entries.paper_commands import judged
from vantage.studies.lab.entry import Cell, Claim, Entry
from vantage.studies.lab.judging.predicates import Above, Beats, Close, Highest, Order
from vantage.studies.lab.judging.shapes import InteriorPeak
from vantage.studies.lab.measures.vectors import ProtocolAccuracy
from vantage.studies.lab.panel import Panel

__all__ = ["ENTRIES"]

def _commands(path: str, *values: str) -> tuple[str, ...]:
    """The setting of the ablations (supplement, section 4) and its classifier; then with other values of a field."""
    train = "vantage pretrain jcl_resnet18 --data IMAGENET100#train --size 224 --out runs/jcl_resnet18"
    others = (f"{train}_{path.rpartition('.')[2]}_{n} --set {path}={value}" for n, value in enumerate(values, 1))
    return judged("linear-moco --learning-rates 10", (train, *others), "IMAGENET100")


_SAME = "the cells of jcl-table-1"
_MEASURES = (ProtocolAccuracy(),)

_KEYS = (1, 3, 5, 9)
_TRAINED = {"three keys": 3, "seven keys": 7, "nine keys": 9, "eleven keys": 11}
"""Numbers of keys that are trained here only; one and five are arms of Table 1."""
_ERRORS = tuple(f"MoCo v2 @ error of the mean key, M′ {keys}" for keys in reversed(_KEYS))
_VARIANCES = tuple(f"MoCo v2 @ share of the variance seen, M′ {keys}" for keys in _KEYS[1:])

FIGURE_2A = Entry(
    "jcl-figure-2a",
    "JCL",
    "Figure 2a",
    "accuracy by the number of keys M′",
    cells=(*FLOORS, *ARMS[:2], *(Cell(name, with_keys(keys), _MEASURES) for name, keys in _TRAINED.items())),
    gate=GATE,
    claims=(
        Claim("1", "five keys are above one", "§4.4.1", (Beats("JCL", "MoCo v2"),), (), LINEAR, True, note=_SAME,
            part_of="claim 1 of jcl-table-1"),
        Claim("2", "5, 7, 9 and 11 keys are within ± .5", "§4.4.1",
            (Close(("JCL", "seven keys", "nine keys", "eleven keys"), 0.5),), (), LINEAR, True),
        Claim("3", "cost rises with M′", "§4.4.1", (), note="arithmetic: an image costs 3 + M′ forward passes"),
        Claim("a", "the sampling error of the mean key falls with M′", "ours", (Order(_ERRORS),), (), ERROR),
        Claim("b", "it falls as M′ to the power −½: nine keys have between .25 and .40 of the error of one", "ours",
            (Above(_ERRORS[0], 0.25, _ERRORS[-1]), Above(_ERRORS[0], 0.40, _ERRORS[-1], below=True)), (), ERROR),
        Claim("c", "M′ keys, drawn from 32, see (M′ − 1)/M′ · 32/31 of the variance: .826 ± .02 at five", "ours",
            (Order(_VARIANCES), Above(_VARIANCES[1], 0.806), Above(_VARIANCES[1], 0.846, below=True)), (), ERROR),
    ),
    commands=_commands("branches.0.keys", "1", "1,2", "1,2,3", "1,2,3,4"),
    scale="claims a to c are measured on one checkpoint, without further training",
    panels=(
        Panel(LINEAR, {"": {"MoCo v2": 1, "JCL": 5} | _TRAINED}, "keys M′", reference_lines=("base",)),
        Panel(ERROR, {name: {f"{name} @ error of the mean key, M′ {keys}": keys for keys in _KEYS}
            for name in ("MoCo v2", "JCL")}, "keys M′", y_label="error of the mean key"),
        Panel(ERROR, {"MoCo v2": dict(zip(_VARIANCES, _KEYS[1:], strict=True))}, "keys M′",
            y_label="share of the variance seen"),
    ),
)

_SHARES = tuple(f"JCL @ negatives' share, λ {strength}" for strength in ("40", "10", "4", "1", "0.2", "0"))

FIGURE_2B = Entry(
    "jcl-figure-2b",
    "JCL",
    "Figure 2b",
    "accuracy by λ",
    cells=(*FLOORS, *ARMS[1:3], *(Cell(f"JCL, λ {strength:g}", with_strength(strength),
        _MEASURES) for strength in (0.2, 1.0, 10.0))),
    gate=GATE,
    claims=(
        Claim("1", "λ .2, 1 and 4 are within ± .5", "§4.4.2", (Close(("JCL, λ 0.2", "JCL, λ 1", "JCL"), 0.5),), (),
            LINEAR, True),
        Claim("2", "λ 10 is below λ 1 and 4", "§4.4.2", (Beats("JCL, λ 1", "JCL, λ 10"), Beats("JCL", "JCL, λ 10")),
            (), LINEAR, True),
        Claim("3", "λ 0 is below λ 4", "§4.4.2", (Beats("JCL", "JCL, λ 0"),), (), LINEAR, True, note=_SAME),
        Claim("2 and 3", "the best λ lies inside", "figure",
            (InteriorPeak(("JCL, λ 0", "JCL, λ 0.2", "JCL, λ 1", "JCL", "JCL, λ 10")),), (), LINEAR, True),
        Claim("4", "the negatives' share of the gradient falls with λ", "§4.4.2", (Order(_SHARES),), (), ERROR,
            note="for a given network this follows from the formula: the picture shows how fast"),
    ),
    commands=_commands("branches.0.estimator.strength", *(f"Constant({value})" for value in (0.0, 0.2, 1.0, 10.0))),
    scale="claim 4 is measured on one checkpoint, without further training",
    panels=(
        Panel(LINEAR, {"": {"JCL, λ 0": 0, "JCL, λ 0.2": 0.2, "JCL, λ 1": 1, "JCL": 4, "JCL, λ 10": 10}}, "λ",
            reference_lines=("base",)),
        Panel(ERROR, {"": {share: float(share.rpartition(" ")[2]) for share in _SHARES}}, "λ",
            y_label="negatives' share of the gradient"),
    ),
)

_TEMPERATURES = {"τ .07": 0.07, "τ .1": 0.1, "τ .2": 0.2, "τ .4": 0.4, "τ .8": 0.8}

FIGURE_2C = Entry(
    "jcl-figure-2c",
    "JCL",
    "Figure 2c",
    "accuracy by τ",
    cells=(*FLOORS[:2], *(Cell(name, at_temperature(value, 2), _MEASURES) for name, value in _TEMPERATURES.items())),
    claims=(
        Claim("1", "the best τ lies inside the range", "§4.4.3", (InteriorPeak(tuple(_TEMPERATURES)),), (), LINEAR,
            True),
        Claim("2", "the best τ is .2", "§4.4.3", (Highest("τ .2", ("τ .07", "τ .1", "τ .4", "τ .8")),), (), LINEAR,
            True, part_of="claims 3 and 4"),
        Claim("3", "a larger τ is worse than .2", "§4.4.3", (Highest("τ .2", ("τ .4", "τ .8")),), (), LINEAR, True),
        Claim("4", "a smaller τ is worse than .2", "§4.4.3", (Highest("τ .2", ("τ .07", "τ .1")),), (), LINEAR, True),
    ),
    gate=replace(GATE, base="τ .2"),
    panels=(Panel(LINEAR, {"": _TEMPERATURES}, "τ"), Panel("knn", {"": _TEMPERATURES}, "τ")),
    commands=_commands("branches.0.estimator.temperature", "0.07", "0.1", "0.4", "0.8"),
    scale="from scratch, since another τ is a shock to a warm base; λ 4 throughout",
)

ENTRIES = (FIGURE_2A, FIGURE_2B, FIGURE_2C)
"""The three ablations."""
