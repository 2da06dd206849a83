"""Parts of all four papers in one run, the same run without the part of one paper, and MoCo v2 with the part of one
paper alone: questions of ours."""

# fmt: off

from dataclasses import replace

from vantage.encoders import Momentum, ResNet9
from vantage.estimators import InfoNCE
from vantage.recipes import everything, infomin, interclr_moco, moco_v2
from vantage.schedules import Constant
from vantage.studies.lab.entry import Cell, Claim, Entry, Reason
from vantage.studies.lab.judging.predicates import Beats, Close
from vantage.studies.lab.measures.vectors import FalseByBand, ProtocolAccuracy
from vantage.studies.lab.panel import Panel
from vantage.studies.lab.two_cores import Scale, base, branch, floors, gate, with_temperature
from vantage.training.run import Run
from vantage.views import WithJigsaw, infomin_views, moco_v2_views, pycontrast_jigsaw

__all__ = ["ENTRIES"]

LINEAR, KNN, FALSE = "linear-cached", "knn", "false negatives"
_SCALE, _EPOCHS, _LONGER = Scale(images=10_240, batch_size=256, backbone=ResNet9(16)), 1, 5
_MOCO, _WHOLE = with_temperature(moco_v2(32), 0.2), everything(32)
_BASE = replace(base(_MOCO, 20, _SCALE), images="cifar-10")
_WITHIN, _JIGSAW, _BETWEEN = _WHOLE.branches


def _without_jcl() -> Run:
    """One key and InfoNCE, in place of five keys and their closed form."""
    within, jigsaw = (replace(one, estimator=InfoNCE(0.2), keys=(1,)) for one in (_WITHIN, _JIGSAW))
    views = WithJigsaw(infomin_views(32), pycontrast_jigsaw(32))
    return replace(_WHOLE, views=views, branches=(within, replace(jigsaw, query=2), _BETWEEN))


def _without_ring() -> Run:
    """The whole queue within images, and InterCLR's semi-hard rows between them."""
    within, jigsaw = (replace(one, negatives=()) for one in (_WITHIN, _JIGSAW))
    between = replace(_BETWEEN, negatives=interclr_moco(32).branches[1].negatives)
    return replace(_WHOLE, branches=(within, jigsaw, between))


def _without_interclr() -> Run:
    """No contrast between images; the image and its jigsaw have half the loss each, as in InfoMin."""
    return replace(_WHOLE, branches=tuple(replace(one, weight=Constant(0.5)) for one in (_WITHIN, _JIGSAW)))


def _without_infomin() -> Run:
    """MoCo v2's views, and no jigsaw, whose weight the image has."""
    assert isinstance(_WHOLE.encoders, Momentum)
    encoders = replace(_WHOLE.encoders, encoder=replace(_WHOLE.encoders.encoder, jigsaw=None))
    within = replace(_WITHIN, weight=Constant(0.75))
    return replace(_WHOLE, views=moco_v2_views(32, count=6), encoders=encoders, branches=(within, _BETWEEN))


def _with_jcl() -> Run:
    """Five keys and their closed form."""
    (only,) = _MOCO.branches
    only = replace(only, keys=_WITHIN.keys, estimator=_WITHIN.estimator)
    return replace(_MOCO, views=moco_v2_views(32, count=6), branches=(only,))


def _with_ring() -> Run:
    """The ring of the queue, annealed over the first half."""
    (only,) = _MOCO.branches
    return replace(_MOCO, branches=(replace(only, negatives=_WITHIN.negatives),))


def _with_interclr() -> Run:
    """InterCLR's contrast between images, with a quarter of the loss."""
    return with_temperature(interclr_moco(32), 0.2)


def _with_infomin() -> Run:
    """InfoMin's views and its jigsaw, which has half the loss."""
    return replace(with_temperature(infomin(32), 0.2), recipe=_MOCO.recipe)


_RUNS = {
    "MoCo v2": _MOCO,
    "everything": _WHOLE,
    "without JCL's keys": _without_jcl(),
    "without Ring's negatives": _without_ring(),
    "without InterCLR's clusters": _without_interclr(),
    "without InfoMin's views": _without_infomin(),
}
_CELLS = tuple(Cell(name, branch(run, _BASE, _EPOCHS, _SCALE), (ProtocolAccuracy(),)) for name, run in _RUNS.items())
_NAMES = ("base", *_RUNS)


def _above(number: str, other: str, text: str, measure: str = LINEAR, reasons: tuple[Reason, ...] = ()) -> Claim:
    return Claim(number, text, "ours", (Beats("everything", other),), (), measure, True, reasons=reasons)


def _views_fail(measure: str) -> tuple[Reason, ...]:
    """Why the whole is below MoCo v2, by a measure."""
    return (
        Reason("InfoMin's views: the same run without them is above it", Beats("without InfoMin's views", "everything"),
            measure),
        Reason("the other three parts: without InfoMin's views the run is within a point of MoCo v2",
            Close(("without InfoMin's views", "MoCo v2"), 1.0), measure, True),
    )


def _late(steps: int) -> Reason:
    """Why InfoMin's views fail in a branch with this many steps."""
    return Reason("probably that strong views are learned late, as in infomin-figure-12: the base has never seen them,"
        f" and a branch has {steps} steps")


_BAND = Beats(f"base @ {FALSE}, 1 to 10 %", f"base @ {FALSE}, all")
_FALSE_NEGATIVES = Reason("false negatives, since there are ten classes only", _BAND, f"{FALSE}, all")

EVERYTHING = Entry(
    "ours-everything",
    "Ours",
    "All four papers in one run",
    "the recipe everything, the same without the part of one paper, and MoCo v2",
    cells=(*floors(_BASE), Cell("base", _BASE, (ProtocolAccuracy(), FalseByBand())), *_CELLS),
    claims=(
        _above("1", "MoCo v2", "all four papers together are above MoCo v2", reasons=_views_fail(LINEAR)),
        _above("2", "without JCL's keys", "JCL helps: five keys in closed form are above one key"),
        _above("3", "without Ring's negatives", "Ring helps: its negatives are above the whole queue and InterCLR's",
            reasons=(_FALSE_NEGATIVES,)),
        _above("4", "without InterCLR's clusters", "InterCLR helps: with the contrast between images it is above that"
            " within images alone"),
        _above("5", "without InfoMin's views", "InfoMin helps: its views and its jigsaw are above MoCo v2's views",
            reasons=(_late(40),)),
        _above("6", "MoCo v2", "claim 1 by nearest neighbors", KNN, _views_fail(KNN)),
        Claim("7", "with ten classes, Ring's band (1 to 10 %) holds more false negatives than all keys", "ours",
            (_BAND,), (), f"{FALSE}, all"),
    ),
    commands=tuple(f"vantage pretrain {recipe} --data CIFAR10#train --size 32 --out runs/{recipe}_32"
        for recipe in ("everything", "moco_v2")),
    gate=gate("base"),
    panels=(Panel(LINEAR, {"": _NAMES}), Panel(KNN, {"": _NAMES})),
    scale="ResNet-9 of width 16 on CIFAR-10 (JPEG), batches of 256; MoCo v2 at τ .2 and as the base; arms see equally"
        " many images, of which everything encodes six views and a jigsaw; the ring is annealed over the first half of"
        " a branch, as by the recipe; a branch has 40 steps",
)

_PARTS = {
    "MoCo v2": _MOCO,
    "with JCL's keys": _with_jcl(),
    "with Ring's negatives": _with_ring(),
    "with InterCLR's clusters": _with_interclr(),
    "with InfoMin's views": _with_infomin(),
}


def _helps(number: int, part: str, text: str, *reasons: Reason) -> tuple[Claim, Claim]:
    """A part is above MoCo v2, by a linear classifier and by nearest neighbors."""
    above, by_neighbors = (Beats(part, "MoCo v2"),), f"claim {number} by nearest neighbors"
    return (
        Claim(f"{number}", text, "ours", above, (), LINEAR, True, reasons=reasons),
        Claim(f"{number + 4}", by_neighbors, "ours", above, (), KNN, True, reasons=reasons),
    )


ONE_PART = Entry(
    "ours-one-part",
    "Ours",
    "The part of one paper, added to MoCo v2",
    "JCL's keys, Ring's negatives, InterCLR's clusters and InfoMin's views, each as the only change of MoCo v2",
    cells=(*floors(_BASE), Cell("base", _BASE, (ProtocolAccuracy(), FalseByBand())),
        *(Cell(name, branch(run, _BASE, _LONGER, _SCALE), (ProtocolAccuracy(),)) for name, run in _PARTS.items())),
    claims=(
        *_helps(1, "with JCL's keys", "JCL helps: five keys in closed form are above one key"),
        *_helps(2, "with Ring's negatives", "Ring helps: its negatives are above the whole queue", _FALSE_NEGATIVES),
        *_helps(3, "with InterCLR's clusters", "InterCLR helps: contrast between images adds to that within them"),
        *_helps(4, "with InfoMin's views", "InfoMin helps: its views and its jigsaw are above MoCo v2's views",
            _late(200)),
    ),
    commands=tuple(f"vantage pretrain {recipe} --data CIFAR10#train --size 32 --out runs/{recipe}_32"
        for recipe in ("moco_v2", "jcl", "ring_moco", "interclr_moco", "infomin")),
    gate=gate("base"),
    panels=(Panel(LINEAR, {"": ("base", *_PARTS)}), Panel(KNN, {"": ("base", *_PARTS)})),
    scale="the base, network and parts of ours-everything; a branch has 200 steps, the ring is annealed over the first"
        " half of them; arms see equally many images, of which JCL encodes six views and InfoMin a jigsaw",
)

ENTRIES = (EVERYTHING, ONE_PART)
"""The combinations that are tested."""
