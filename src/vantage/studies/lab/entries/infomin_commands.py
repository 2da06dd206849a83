"""Commands of InfoMin's studies of views at the paper's scale (Tian et al., arXiv 2005.10243, sections 3.3 and 4.2,
appendices B and C.2). In those of channels, networks are trained on STL-10 by contrast between the channels of a color
space, as it is or learned by a flow, and a linear classifier judges them."""

from collections.abc import Iterable

from vantage.studies.lab.entries.paper_commands import evaluations, judged
from vantage.studies.sweep.categorical import SPACES

__all__ = ["ABOUT_FIGURE_3", "ABOUT_FIGURE_4", "ABOUT_FIGURE_7", "ABOUT_FIGURE_8", "ABOUT_TABLE_5", "FIGURE_3"]
__all__ += ["FIGURE_4", "FIGURE_7", "FIGURE_8", "FIGURE_9", "TABLE_5", "sweep"]

_SEEDS = (0, 1, 2)
_LARGER = ("resnet18", "resnet50", "resnet50x2")
_COLORS = ("RGB", "YDbDr")
_LEARNED_ON = {"unsupervised": "unlabeled", "supervised": "train", "semi_supervised": "train+unlabeled"}
"""The images that a way of learning uses: 100,000, 5,000 and 105,000. Networks are trained on all of them."""
_PROTOCOL = "linear-cmc --epochs 100"
_ALL = "--data STL10#train+unlabeled --size 64"

_SWEEP = f"{_ALL} --test STL10#test --backbone tiny_alexnet --epochs 240"
"""Options of a sweep in the setting of appendix B: images, network and CMC's epochs."""

_FLOWS = "flows, critics and their course are ours where the paper says nothing"
ABOUT_FIGURE_3 = (
    "distances between the first and the last are ours; DIV2K has no labels, which a sweep needs, so I_NCE is missing"
)
"""What is ours in the commands of Figure 3, and what is missing."""
ABOUT_FIGURE_4 = "the color spaces are those of Vantage's sweep; the decoder is ours but for its four layers"
"""What is ours in the commands of Figure 4."""
ABOUT_TABLE_5 = f"{_FLOWS}, and so is the number of runs behind its deviations: three"
"""What is ours in the commands of Table 5."""
ABOUT_FIGURE_7 = f"{_FLOWS}; metrics.jsonl in views/ has the I_NCE of learned views, and the sweep that of raw ones"
"""What is ours in the commands of Figure 7, and where the I_NCE of each run is."""
ABOUT_FIGURE_8 = f"{_FLOWS}, and so are the larger networks, which the paper names in its picture only"
"""What is ours in the commands of Figure 8."""


def _raw(space: str, seed: int = 0) -> str:
    return _with_seed(f"{space}_raw", seed)


def _learned(space: str, way: str, seed: int = 0, flow: str = "two-sided") -> str:
    return _with_seed(f"{space}_{way}" + "_nvp" * (flow == "real-nvp"), seed)


def _with_seed(name: str, seed: int) -> str:
    return name + f"_seed_{seed}" * bool(seed)


def _contrast(run: str, views: str, seed: int = 0, backbone: str = "tiny_alexnet") -> str:
    """Training by CMC on some views."""
    options = f"{_ALL} --backbone {backbone} --out runs/{run} {views}"
    return f"vantage pretrain cmc {options}" + f" --seed {seed}" * bool(seed)


def _unchanged(space: str) -> str:
    """Options for the channels of a color space as they are."""
    statistics = next(one for one in SPACES if type(one).__name__ == space).statistics
    mean, std = (",".join(map(str, numbers)) for numbers in (statistics.mean, statistics.std))
    return f"--set space={space}() --set mean={mean} --set std={std}"


def _learn(space: str, way: str, seed: int = 0, flow: str = "two-sided") -> str:
    """Learning of views."""
    options = f"--size 64 --colors {space} --coupling {flow} --out views/{_learned(space, way, seed, flow)}"
    return f"vantage views learn {way} --data STL10#{_LEARNED_ON[way]} {options}" + f" --set seed={seed}" * bool(seed)


def _learn_and_train(ways: Iterable[str], flow: str = "two-sided") -> tuple[str, ...]:
    """For every way, color space and seed: learning of views, and training on them."""
    lines: list[str] = []
    for space, way, seed in ((space, way, seed) for space in _COLORS for way in ways for seed in _SEEDS):
        name = _learned(space, way, seed, flow)
        lines += [_learn(space, way, seed, flow), _contrast(name, f"--learned views/{name}", seed)]
    return tuple(lines)


def _colors(out: str, *spaces: str) -> str:
    """The sweep that measures what the channels of color spaces share."""
    return f"vantage analyse views color {_SWEEP} --recipe cmc --values {' '.join(spaces)} --out {out}"


def sweep(name: str, recipe: str = "moco_v2") -> str:
    """A sweep of augmentations on ImageNet (C.2)."""
    return (
        f"vantage analyse views {name} --data IMAGENET#train --test IMAGENET#val --recipe {recipe} --size 224"
        f" --epochs 100 --batch-size 256 --out {name}_{recipe}"
    )


_DISTANCES = (64, 96, 128, 192, 256, 384)
_PATCHES = tuple(f"patches_{distance}" for distance in _DISTANCES)
_ON_PATCHES = "--data DIV2K#train --size 64 --backbone tiny_alexnet --optimizer sgd --learning-rate 0.03 --epochs 3000"
FIGURE_3 = (
    *(
        f"vantage pretrain simclr {_ON_PATCHES} --out runs/{name} --set views=Patches(64,{distance})"
        for name, distance in zip(_PATCHES, _DISTANCES, strict=True)
    ),
    *evaluations("linear-moco --epochs 100", _PATCHES, "STL10"),
    *evaluations("linear-moco --epochs 100", _PATCHES, "CIFAR10"),
)
"""Figure 3: networks trained on two patches of DIV2K (B.1), judged on two sets."""

_NAMES = tuple(type(space).__name__ for space in SPACES)
FIGURE_4 = (
    *judged(_PROTOCOL, (_contrast(_raw(space), _unchanged(space)) for space in _NAMES), "STL10"),
    *evaluations("segmentation", map(_raw, _NAMES), "NYU"),
    _colors("color", *_NAMES),
)
"""Figure 4: color spaces as they are."""

_RAW = tuple((space, seed) for space in _COLORS for seed in _SEEDS)
TABLE_5 = judged(
    _PROTOCOL,
    (*_learn_and_train(_LEARNED_ON), *(_contrast(_raw(*one), _unchanged(one[0]), one[1]) for one in _RAW)),
    "STL10",
)
"""Table 5: each way of learning, and raw views, in two color spaces."""

_UNLABELED = ("unsupervised", "semi_supervised")
_VOLUME_PRESERVING = (_learned(space, way, seed) for space, seed in _RAW for way in _UNLABELED)
FIGURE_7 = (
    *judged(_PROTOCOL, _learn_and_train(_UNLABELED, "real-nvp"), "STL10"),
    *evaluations(_PROTOCOL, (*_VOLUME_PRESERVING, *(_raw(*one) for one in _RAW)), "STL10"),
    _colors("color_raw", *_COLORS),
)
"""Figure 7: flows that do not preserve volume, beside the runs of Table 5."""

_SEMI = "semi_supervised"
FIGURE_8 = judged(
    _PROTOCOL,
    (
        *(_learn(space, _SEMI) for space in _COLORS),
        *(
            _contrast(f"{name}_{backbone}", views, backbone=backbone)
            for backbone in _LARGER
            for space in _COLORS
            for name, views in (
                (_learned(space, _SEMI), f"--learned views/{_learned(space, _SEMI)}"),
                (_raw(space), _unchanged(space)),
            )
        ),
    ),
    "STL10",
)
"""Figure 8: larger networks on semi-supervised views and on raw ones."""

FIGURE_9 = (f"vantage analyse views blur {_SWEEP} --recipe cmc --out blur",)
"""Figure 9: low and high frequencies, with a network for each as for channels (B.3)."""
