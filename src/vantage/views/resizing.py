"""Progressive resizing: views that are small first and grow during a run, since small ones cost less."""

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from vantage.errors import UserError
from vantage.views.augmentation import ViewMaker
from vantage.views.operations.shrink import scaled_down

__all__ = ["ProgressiveResizing"]


@runtime_checkable
class _AnySide(Protocol):
    """A maker of views that can make some of them smaller, as `Views` does."""

    def at_side(self, side: int) -> ViewMaker: ...


@dataclass(frozen=True)
class ProgressiveResizing:
    """Views whose side grows in stages; after the last stage they keep their full size.

    Views that mean the same at any size are made small (`maker`); others are made at full size and scaled down.

    A step at half the side costs about a quarter, so a network sees more images in a given time (progressive
    resizing: Howard, fast.ai 2018; for contrastive learning FFCV-SSL, arXiv 2303.01986, from 160 to 224 pixels).
    The network must accept views of any size. Raises `UserError` if sides or ends do not rise.
    """

    sides: tuple[int, ...] = (16, 24)
    """Side of a view in each stage, in pixels."""

    until: tuple[float, ...] = (0.5, 0.75)
    """Where each stage ends, as a share of the run's steps."""

    fixed: float = field(default=0.1, metadata={"later": True})
    """Share of a full-size step's time that does not depend on the views' side, from 0 to 1; the rest grows with their
    area. Only the time left depends on it. The default was measured with SimCLR on ResNet-9; a plan measures its own
    run."""

    def __post_init__(self) -> None:
        rising = all(list(numbers) == sorted(set(numbers)) for numbers in (self.sides, self.until))
        if len(self.sides) != len(self.until) or not self.sides or not rising:
            raise UserError(
                f"progressive resizing: {self.sides} and {self.until} must have the same length, and must rise"
            )
        if self.sides[0] < 1 or not 0 < self.until[0] <= self.until[-1] <= 1:
            raise UserError("progressive resizing: sides begin at 1 pixel, and stages end between 0 and 1")
        if not 0 <= self.fixed <= 1:
            raise UserError(f"progressive resizing: fixed is {self.fixed}, but a share is between 0 and 1")

    def side(self, share: float) -> int | None:
        """Side of the views at a share of the run, in pixels; None if they keep their full size."""
        return (*self.sides, None)[self._stage(share)]

    def maker(self, views: ViewMaker, share: float) -> ViewMaker:
        """What makes the views at a share of the run: small ones directly, if they mean the same at any size. The
        others still have to be scaled down."""
        side = self.side(share)
        return views.at_side(side) if side is not None and isinstance(views, _AnySide) else views

    def stages(self) -> tuple[tuple[float, float], ...]:
        """Where each stage begins and how long it is, as shares of the run; the last one is at full size."""
        ends = (0.0, *self.until, 1.0)
        return tuple((begin, end - begin) for begin, end in zip(ends, ends[1:], strict=False) if end > begin)

    def work(self, share: float, side: int) -> float:
        """How much of a run's work is done at a share of its steps, between 0 and 1, if views end at `side` pixels.

        An estimate for the time left: a step costs `fixed` of a full one, plus the rest in proportion to the area of a
        view.
        """
        costs = [self.fixed + (1 - self.fixed) * min(1.0, small / side) ** 2 for small in self.sides] + [1.0]
        parts = [(begin, length, costs[self._stage(begin)]) for begin, length in self.stages()]
        done = sum(cost * min(max(share - begin, 0.0), length) for begin, length, cost in parts)
        return done / sum(cost * length for _, length, cost in parts)

    def _stage(self, share: float) -> int:
        return next((number for number, end in enumerate(self.until) if share < end), len(self.sides))

    def __call__(self, view: Float[Tensor, "b *rest h w"], share: float) -> Float[Tensor, "b *rest _ _"]:
        """The view at its size for this share of the run. Smaller views, and the patches of a jigsaw, are unchanged."""
        side = self.side(share)
        if side is None or view.dim() != 4 or min(view.shape[-2:]) <= side:
            return view
        return scaled_down(view, side)
