"""The nearest training images of InterCLR's queries (Xie et al., arXiv 2008.11702 v1, Figure 9), in numbers. Our
CIFAR-10 was recompressed as JPEG."""

# fmt: off

from vantage.studies.lab.entries.interclr_arms import SCALE, with_weight
from vantage.studies.lab.entry import Cell, Claim, Entry
from vantage.studies.lab.judging.predicates import Above, Beats
from vantage.studies.lab.measures.class_structure import NeighborClasses, NeighborSuperclasses
from vantage.studies.lab.panel import Panel
from vantage.studies.lab.two_cores import on_images

__all__ = ["FIGURE_9"]

_ARM = with_weight(0.75)
_HERE, _TEN = "λ .75", "CIFAR-10"
_RIGHT, _WRONG = "all neighbors right", "no neighbor right"
_COMMON, _SUPER = "commonest class", "superclass"


def _both_kinds(cell: str) -> tuple[Above, Above]:
    """Some queries have only right neighbors, and some have none."""
    return Above(f"{cell} @ {_RIGHT}", 0.0), Above(f"{cell} @ {_WRONG}", 0.0)


def _above_chance(cell: str, name: str) -> tuple[Beats]:
    return (Beats(f"{cell} @ {name} of failures", f"{cell} @ {name} by chance"),)


def _terms(cell: str, *names: str) -> tuple[str, ...]:
    shares = (f"{name} {what}" for name in names for what in ("of failures", "by chance"))
    return tuple(f"{cell} @ {name}" for name in (_RIGHT, _WRONG, *shares))


FIGURE_9 = Entry(
    "interclr-figure-9",
    "InterCLR",
    "Figure 9",
    "ten nearest training images of six queries",
    cells=(
        Cell(_HERE, _ARM, (NeighborClasses(),)),
        Cell(_TEN, on_images(_ARM, "cifar-10"), (NeighborClasses(), NeighborSuperclasses())),
    ),
    claims=(
        Claim("1", "some queries have ten neighbors of their class, some have none", "App. D", _both_kinds(_HERE), (),
            _RIGHT, note="with fifty classes; claim b has ten"),
        Claim("2", "failures share other context", "App. D", (),
            note="only a person can judge what images have in common: claims a and c ask about classes"),
        Claim("a", "the neighbors of failures agree on another class more often than images drawn at random",
            "ours", (*_above_chance(_HERE, _COMMON), *_above_chance(_TEN, _COMMON)), (), _RIGHT),
        Claim("b", "with ten classes, some queries have ten neighbors of their class, some have none",
            "App. D, for CIFAR-10", _both_kinds(_TEN), (), _RIGHT, stand_in=True),
        Claim("c", "failures are among their own kind, animals or vehicles, more often than by chance",
            "App. D, for classes", _above_chance(_TEN, _SUPER), (), _RIGHT, stand_in=True),
    ),
    panels=tuple(Panel(_RIGHT, {"": terms}, y_label=f"{words}: share (%)")
        for words, terms in (
            ("tiny-imagenet-50", _terms(_HERE, _COMMON)), (_TEN, _terms(_TEN, _COMMON, _SUPER)),
        )),
    commands=("vantage evaluate retrieval runs/interclr --data IMAGENET#train --test IMAGENET#val",),
    scale=f"{SCALE}; all test images instead of six queries, for figure 8's λ .75, and for the same trained on 7,500"
        " images of CIFAR-10",
)
"""Figure 9."""
