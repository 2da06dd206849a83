"""Sweeps with named values: color spaces, and augmentations that are added one by one."""

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import ClassVar

from vantage.composition.fitting import parts_of
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError
from vantage.studies.sweep.sweeps import SweepPoint, change_views
from vantage.training.run import Run
from vantage.views.augmentation import Augmentation, Views
from vantage.views.channels import Channels
from vantage.views.colors.spaces import HSV, RGB, XYZ, YIQ, YUV, ColorSpace, InSpace, Lab, YCbCr, YDbDr
from vantage.views.colors.statistics import IMAGENET, Statistics
from vantage.views.operations.color import Normalize
from vantage.views.operations.operation import Operation
from vantage.views.recipes import infomin_views

__all__ = ["SPACES", "ColorSpaces", "Ladder", "Operations"]

SPACES: tuple[ColorSpace, ...] = (RGB(), Lab(), YCbCr(), YDbDr(), YIQ(), YUV(), XYZ(), HSV())
"""The color spaces that a sweep can name, each with its own statistics."""


@dataclass(frozen=True)
class ColorSpaces:
    """The color space whose channels are divided among the views (CMC's {L, ab}; InfoMin, arXiv 2005.10243, Fig. 4: on
    STL-10 accuracy rises as I_NCE falls). Needs a run on channels with a network for each view, such as CMC's."""

    name: ClassVar[str] = "color"
    recipe: ClassVar[str] = "cmc_softmax"

    values: tuple[str, ...] = ("RGB", "XYZ", "HSV", "YCbCr", "YDbDr", "Lab")
    """Names of spaces: RGB, XYZ, HSV, YCbCr, YDbDr, YIQ, YUV, Lab."""

    @property
    def axis(self) -> str:
        """The axis label."""
        return "color space, split as {first, last two}"

    def points(self, base: Run) -> tuple[SweepPoint, ...]:
        """A run for each space, normalized with its statistics."""
        if not any(isinstance(part, InSpace) for part in parts_of(base.views)) or not isinstance(base.views, Channels):
            raise UserError(
                f"the views of {base.recipe} are not channels of a color space: take a recipe such as cmc_softmax"
            )
        spaces = {type(space).__name__: space for space in SPACES}
        for value in self.values:
            if value not in spaces:
                near = did_you_mean(value, spaces)
                raise UserError(f"there is no color space {value!r}{near} (spaces: {', '.join(spaces)})")
        if not self.values or len(set(self.values)) < len(self.values):
            raise UserError(f"the color spaces are {self.values}: give at least one, and each only once")
        return tuple(SweepPoint(value, _in_space(base, spaces[value])) for value in self.values)


def _in_space(base: Run, space: ColorSpace) -> Run:
    run = change_views(base, InSpace, lambda part: replace(part, space=space))
    return change_views(run, Normalize, lambda part: space.statistics.normalize())


@dataclass(frozen=True)
class Ladder:
    """InfoMin's augmentations in place of the run's views, one more at each step: crop alone, then flip, jitter, blur
    (above 32 px), RandAugment and grayscale (arXiv 2005.10243, Fig. 12: accuracy rises to the end as I_NCE falls).

    The paper's figure also varies the strength of jitter, which `JitterStrength` does here.
    """

    name: ClassVar[str] = "ladder"
    recipe: ClassVar[str] = "moco_v2"

    values: tuple[int, ...] = ()
    """Numbers of operations, from 0 for the crop alone; if omitted, every number."""

    @property
    def axis(self) -> str:
        """The axis label."""
        return "InfoMin's augmentations so far"

    def points(self, base: Run) -> tuple[SweepPoint, ...]:
        """A run for each step."""
        if not isinstance(base.views, Views):
            raise UserError(
                f"the ladder replaces views that are augmentations of one image, and those of {base.recipe} are not:"
                " choose a recipe such as moco_v2"
            )
        last = base.views.views[-1].operations[-1:]
        statistics = Statistics(last[0].mean, last[0].std) if last and isinstance(last[0], Normalize) else IMAGENET
        views = infomin_views(base.views.views[0].crop.size, base.views.count, statistics)
        return _steps(self.name, replace(base, views=views), self.values)


@dataclass(frozen=True)
class Operations:
    """The run's own augmentations, one more at each step: crop alone, then the operations in order, the same in all
    views. Operations that change the representation of an image (color space, normalization) always stay, and so does
    a jigsaw."""

    name: ClassVar[str] = "operations"
    recipe: ClassVar[str] = "moco_v2"

    values: tuple[int, ...] = ()
    """Numbers of operations, from 0 for the crop alone; if omitted, every number."""

    @property
    def axis(self) -> str:
        """The axis label."""
        return "augmentations so far"

    def points(self, base: Run) -> tuple[SweepPoint, ...]:
        """A run for each step."""
        return _steps(self.name, base, self.values)


def _steps(sweep: str, full: Run, values: tuple[int, ...]) -> tuple[SweepPoint, ...]:
    """A run for each number of the augmentations of a run."""
    rungs = [_rungs(part) for part in parts_of(full.views) if isinstance(part, Augmentation)]
    if not rungs or len({len(each) for each in rungs}) > 1:
        raise UserError(
            f"the views of {full.recipe} do not all have the same number of augmentations, so these cannot be added one"
            " by one: take a recipe such as moco_v2"
        )
    most = len(rungs[0])
    steps = values or tuple(range(most + 1))
    if not all(0 <= step <= most for step in steps) or len(set(steps)) < len(steps):
        raise UserError(
            f"{sweep} has the steps 0 to {most}, but {steps} were given: choose among these, each only once"
        )
    names = ["crop", *(f"+ {type(operation).__name__}" for operation in rungs[0])]
    return tuple(SweepPoint(f"{step} {names[step]}", _up_to(full, step), float(step)) for step in steps)


def _rungs(view: Augmentation) -> tuple[Operation, ...]:
    """The operations that the sweep adds: all but changes of color space and normalization."""
    return tuple(operation for operation in view.operations if not isinstance(operation, InSpace | Normalize))


def _up_to(full: Run, step: int) -> Run:
    def shorter(view: Augmentation) -> Augmentation:
        always = [isinstance(operation, InSpace | Normalize) for operation in view.operations]
        counts = accumulate(not stay for stay in always)
        operations = [o for o, stay, n in zip(view.operations, always, counts, strict=True) if stay or n <= step]
        return replace(view, operations=tuple(operations))

    return change_views(full, Augmentation, shorter)
