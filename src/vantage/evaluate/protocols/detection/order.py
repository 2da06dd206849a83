"""Which images each step of a detector's training shows: epochs without a gap, wide images and high ones apart."""

from collections.abc import Sequence

from vantage import draws
from vantage.data.order import epoch_order
from vantage.evaluate.protocols.detection.sources.annotated import Annotated

__all__ = ["Order", "wide"]

_ORDER = 0xDE71  # what a seed is for
_STEPS_TOGETHER = 16


class Order:
    """The images of a step, as a function of the seed and the step alone.

    Epochs follow each other without a gap. Images of a step are padded to one size, so wide images and others are put
    into steps of their own, in the order in which these become full: Detectron2's way, for all images of a step where
    it has those of one GPU. There a kind with few images waits for epochs, and is then shown several times at once;
    here 16 steps, or as many as an epoch has, share their images, and the last of them shows what is left of both
    kinds.
    """

    def __init__(self, images: int, batch: int, seed: int, wide: Sequence[bool] | None = None) -> None:
        """Of `images` images `batch` a step; `wide` tells of each whether it is wide, and without it none is put
        apart."""
        self._images, self._batch, self._seed, self._wide = images, batch, seed, wide
        self._together = min(_STEPS_TOGETHER, max(1, images // batch)) if wide is not None else 1
        self._orders: dict[int, list[int]] = {}

    def __call__(self, step: int) -> list[tuple[int, int]]:
        """Place in the course, counted from 0, and number of each image of a step."""
        group, inside = divmod(step, self._together)
        size = self._together * self._batch
        shown = [(place, self._image(place)) for place in range(group * size, (group + 1) * size)]
        return shown if self._wide is None else self._apart(shown, self._wide)[inside]

    def _apart(self, shown: list[tuple[int, int]], wide: Sequence[bool]) -> list[list[tuple[int, int]]]:
        steps: list[list[tuple[int, int]]] = []
        filling: dict[bool, list[tuple[int, int]]] = {False: [], True: []}
        for place, image in shown:
            filling[wide[image]].append((place, image))
            if len(filling[wide[image]]) == self._batch:
                steps.append(filling[wide[image]])
                filling[wide[image]] = []
        rest = filling[False] + filling[True]
        return [*steps, rest] if rest else steps

    def _image(self, place: int) -> int:
        epoch, inside = divmod(place, self._images)
        if epoch not in self._orders:
            self._orders[epoch] = epoch_order(self._images, draws.mix(self._seed, _ORDER), epoch).tolist()
            self._orders.pop(epoch - 2, None)
        return self._orders[epoch][inside]


def wide(source: Annotated) -> list[bool]:
    """Of each image whether it is wider than high; none is read."""
    return [width > height for height, width in map(source.size, range(len(source)))]
