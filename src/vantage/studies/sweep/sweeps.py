"""What a sweep is, and sweeps of one number: crop bound, jitter strength, patch distance, blur width."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

from vantage.composition.fitting import everywhere, parts_of
from vantage.errors import UserError
from vantage.training.run import Run
from vantage.views.augmentation import Augmentation, ViewMaker
from vantage.views.colors.spaces import InSpace
from vantage.views.colors.statistics import IMAGENET
from vantage.views.frequencies import Frequencies
from vantage.views.operations.color import ColorJitter, Normalize
from vantage.views.operations.crops import Crop, RandomResizedCrop
from vantage.views.operations.flip import HorizontalFlip
from vantage.views.patches import Patches

__all__ = [
    "BlurWidth",
    "CropBound",
    "JitterStrength",
    "PatchDistance",
    "SweepPoint",
    "Sweep",
    "change_views",
    "check_has",
    "points_of",
]

Part = TypeVar("Part")


@dataclass(frozen=True)
class SweepPoint:
    """One value of a sweep, and the run with that value."""

    label: str
    """The value as text, for tables and pictures."""

    run: Run
    """The base run with only that value changed."""

    number: float | None = None
    """The value as a number; None if the values are names, which keep their order."""


@runtime_checkable
class Sweep(Protocol):
    """A frozen choice of what is varied about the views of a run. Its fields are all of its settings."""

    name: ClassVar[str]

    recipe: ClassVar[str]
    """The recipe that is varied by default."""

    @property
    def axis(self) -> str:
        """What is varied, as an axis label with its unit."""
        ...

    def points(self, base: Run) -> tuple[SweepPoint, ...]:
        """A run for each value. Raises `UserError` if the base has nothing of that kind, or if a value does not fit."""
        ...


@dataclass(frozen=True)
class CropBound:
    """The low-area cropping bound c of all random resized crops, whose scale is (c, 1) (InfoMin, arXiv 2005.10243,
    Figs. 5 and 13: sweet spot at .2 on ImageNet). The crop that a jigsaw is cut from does not change."""

    name: ClassVar[str] = "crop"
    recipe: ClassVar[str] = "moco_v2"

    values: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4, 0.7)
    """Smallest shares c of an image's area that a crop may cover, each in (0, 1]."""

    @property
    def axis(self) -> str:
        """The axis label."""
        return "crop bound c (least share of the image's area)"

    def points(self, base: Run) -> tuple[SweepPoint, ...]:
        """A run for each c."""
        check_has(base, RandomResizedCrop, self.name)

        def run_with_bound(c: float) -> Run:
            return change_views(base, Augmentation, lambda view: replace(view, crop=_with_least_area(view.crop, c)))

        return points_of(self, self.values, run_with_bound)


@dataclass(frozen=True)
class JitterStrength:
    """The strength x of all color jitter: brightness, contrast and saturation .8x, hue .2x, as in SimCLR (InfoMin,
    arXiv 2005.10243, Figs. 5 and 14: sweet spot at 1 on ImageNet). Its probability does not change."""

    name: ClassVar[str] = "jitter"
    recipe: ClassVar[str] = "moco_v2"

    values: tuple[float, ...] = (0.125, 0.25, 0.5, 1.0, 1.5, 2.5)
    """Strengths x from 0 to 2.5, at which the hue is completely random."""

    @property
    def axis(self) -> str:
        """The axis label."""
        return "strength x of color jitter"

    def points(self, base: Run) -> tuple[SweepPoint, ...]:
        """A run for each x."""
        check_has(base, ColorJitter, self.name)

        def run_with_strength(x: float) -> Run:
            if not 0 <= x <= 2.5:
                raise UserError("give strengths from 0 to 2.5, at which the hue is completely random")
            return change_views(base, ColorJitter, lambda jitter: _jitter(x, jitter.probability))

        return points_of(self, self.values, run_with_strength)


def _jitter(x: float, probability: float) -> ColorJitter:
    return ColorJitter(0.8 * x, 0.8 * x, 0.8 * x, 0.2 * x, probability)


@dataclass(frozen=True)
class PatchDistance:
    """The distance d between two patches of an image, which replace the run's views (InfoMin, arXiv 2005.10243, Fig. 3:
    patches of 64 pixels, d from 64 to 384, sweet spot at 128).

    The patches are only normalized, as in the run. Images must be at least `patch` + d pixels wide and high.
    """

    name: ClassVar[str] = "distance"
    recipe: ClassVar[str] = "simclr"

    values: tuple[int, ...] = (0, 8, 16, 24, 32, 48)
    """Distances d to the right and down, in pixels; below `patch` they overlap."""

    patch: int = 16
    """Side of a patch, in pixels."""

    @property
    def axis(self) -> str:
        """The axis label."""
        return f"distance d of patches of {self.patch} px (px)"

    def points(self, base: Run) -> tuple[SweepPoint, ...]:
        """A run for each d."""
        last = _normalize(base.views, self.name)
        return points_of(self, self.values, lambda d: replace(base, views=Patches(self.patch, d, (last,))))


@dataclass(frozen=True)
class BlurWidth:
    """The width σ of the blur that separates an image into low and high frequencies, which replace the run's views
    (InfoMin, arXiv 2005.10243, Fig. 9: on STL-10 I_NCE is largest at .7, accuracy at 1).

    Both come from one crop, taken as in the run's first view, flipped and normalized, without its other operations.
    Networks that see channels of a color space, such as those of `cmc` (the paper's setting), get three channels. A
    single network normalizes both bands together, so it hardly sees the high frequencies of a narrow blur.
    """

    name: ClassVar[str] = "blur"
    recipe: ClassVar[str] = "simclr"

    values: tuple[float, ...] = (0.3, 0.5, 0.7, 1.0, 1.5, 2.5)
    """Standard deviations σ of the blur, in pixels of a view."""

    @property
    def axis(self) -> str:
        """The axis label."""
        return "width σ of the blur (px)"

    def points(self, base: Run) -> tuple[SweepPoint, ...]:
        """A run for each σ."""
        check_has(base, Augmentation, self.name)
        first = next(part for part in parts_of(base.views) if isinstance(part, Augmentation))
        other_colors = any(isinstance(part, InSpace) for part in parts_of(base.views))
        normalize = IMAGENET.normalize() if other_colors else _normalize(base.views, self.name)
        view = replace(first, operations=(HorizontalFlip(0.5), normalize))
        base = replace(base, encoders=everywhere(base.encoders, _seeing_colors))
        return points_of(self, self.values, lambda width: replace(base, views=Frequencies(view, width)))


def _seeing_colors(part: Any) -> Any:
    """A backbone for three channels, if it has another number of them."""
    return replace(part, in_channels=3) if getattr(part, "in_channels", 3) != 3 else part


def points_of(
    sweep: Sweep, values: Sequence[float] | Sequence[int], run_with: Callable[[Any], Run]
) -> tuple[SweepPoint, ...]:
    """A point for each number, which is also its label. Raises `UserError` if there are no values, if one is repeated,
    and if a part rejects one."""
    if not values or len(set(values)) < len(values):
        raise UserError(f"the values of {sweep.name} are {values}: give at least one, and each only once")
    points = []
    for value in values:
        try:
            points.append(SweepPoint(f"{value:g}", run_with(value), float(value)))
        except UserError as problem:
            raise UserError(f"{sweep.name} cannot be {value:g}: {problem}") from problem
    return tuple(points)


def change_views(base: Run, kind: type[Part], change: Callable[[Part], Part]) -> Run:
    """The run with every part of a kind in its views changed."""
    return replace(base, views=everywhere(base.views, lambda part: change(part) if isinstance(part, kind) else part))


def _with_least_area(crop: Crop, share: float) -> Crop:
    return replace(crop, scale=(share, 1.0)) if isinstance(crop, RandomResizedCrop) else crop


def check_has(base: Run, kind: type, sweep: str) -> None:
    """Raises `UserError` if the views hold no part of the kind that a sweep varies."""
    if not any(isinstance(part, kind) for part in parts_of(base.views)):
        raise UserError(
            f"the views of {base.recipe} hold no {kind.__name__}, which the sweep {sweep} varies: take another recipe"
        )


def _normalize(views: ViewMaker, sweep: str) -> Normalize:
    parts = [part for part in parts_of(views) if isinstance(part, Normalize)]
    if not parts:
        raise UserError(f"{sweep} keeps the normalization of the run's views, but they have none: add Normalize")
    return parts[-1]
