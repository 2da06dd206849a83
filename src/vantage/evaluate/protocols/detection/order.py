"""Which images each step of a detector's training uses: epochs without a gap, landscape and portrait images apart."""

from collections.abc import Sequence

from vantage import draws
from vantage.data.order import epoch_order
from vantage.evaluate.protocols.detection.sources.annotated import AnnotatedSource

__all__ = ["StepOrder", "wide"]

_STEPS_TOGETHER = 16


class StepOrder:
    """The images of a step, as a function of the seed and the step alone.

    Epochs follow each other without a gap. The images of a step are padded to one size, so landscape and portrait
    images go into separate steps, in the order in which these fill up, as in Detectron2 (there for the images of one
    GPU, here for all images of a step). In Detectron2, images of the rarer shape can wait for epochs and then appear
    several times at once. Here every 16 steps (or one epoch, if that is shorter) use exactly the images that are next
    in order, and the last of these steps takes what is left of both shapes.
    """

    def __init__(self, images: int, batch: int, seed: int, wide: Sequence[bool] | None = None) -> None:
        """Steps of `batch` out of `images` images. `wide` marks the landscape images; if omitted, shapes are mixed."""
        self._images, self._batch, self._seed, self._wide = images, batch, seed, wide
        self._together = min(_STEPS_TOGETHER, max(1, images // batch)) if wide is not None else 1
        self._orders: dict[int, list[int]] = {}

    def __call__(self, step: int) -> list[tuple[int, int]]:
        """Position in the whole training, counted from 0, and number of each image of a step."""
        group, index = divmod(step, self._together)
        size = self._together * self._batch
        items = [(position, self._image(position)) for position in range(group * size, (group + 1) * size)]
        return items if self._wide is None else self._split_by_shape(items, self._wide)[index]

    def _split_by_shape(self, items: list[tuple[int, int]], wide: Sequence[bool]) -> list[list[tuple[int, int]]]:
        steps: list[list[tuple[int, int]]] = []
        filling: dict[bool, list[tuple[int, int]]] = {False: [], True: []}
        for position, image in items:
            filling[wide[image]].append((position, image))
            if len(filling[wide[image]]) == self._batch:
                steps.append(filling[wide[image]])
                filling[wide[image]] = []
        rest = filling[False] + filling[True]
        return [*steps, rest] if rest else steps

    def _image(self, position: int) -> int:
        epoch, index = divmod(position, self._images)
        if epoch not in self._orders:
            self._orders[epoch] = epoch_order(
                self._images, draws.mix(self._seed, draws.Purpose.DETECTION_ORDER), epoch
            ).tolist()
            self._orders.pop(epoch - 2, None)
        return self._orders[epoch][index]


def wide(source: AnnotatedSource) -> list[bool]:
    """Which images are wider than high; no image is read."""
    return [width > height for height, width in map(source.size, range(len(source)))]
