"""Images and targets for training: which images, in which order, and the mirrored ones.

n: instances in an image   k: keypoints   h, w: height and width in pixels
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from vantage import draws
from vantage.data.threads import prefetch
from vantage.errors import UserError
from vantage.evaluate.protocols.detection.order import Order
from vantage.evaluate.protocols.detection.outputs import Keypoints, Masks, Output
from vantage.evaluate.protocols.detection.sources.annotated import Annotated
from vantage.evaluate.protocols.detection.sources.masks import mask_of
from vantage.evaluate.protocols.detection.sources.selections import SelectedImages

__all__ = ["Example", "batches_from", "example", "mirror_order", "mirror_example", "training_images"]

_MIRROR = 0xDE72  # what a seed is for
_AHEAD = 2


@dataclass(frozen=True)
class Example:
    """An image, and what a detector is to find in it."""

    image: UInt8[Tensor, "3 h w"]
    """The pixels."""
    box: Float[Tensor, "n 4"]
    """Left, top, right, bottom in pixels."""
    label: Int[Tensor, "n"]
    """Class counted from 1, since 0 is the background."""
    masks: Bool[Tensor, "n h w"] | None = None
    """Pixels of each."""
    points: Float[Tensor, "n k 3"] | None = None
    """Column, row, visibility."""

    def target(self, device: torch.device) -> dict[str, Tensor]:
        """As torchvision's detectors want it."""
        found = {"boxes": self.box, "labels": self.label}
        if self.masks is not None:
            found["masks"] = self.masks.to(torch.uint8)
        if self.points is not None:
            found["keypoints"] = self.points
        return {name: value.to(device) for name, value in found.items()}


def example(source: Annotated, number: int, output: Output) -> Example:
    """An image with its instances, less the crowds."""
    shown = source.instances(number)
    kept = (~shown.crowd).nonzero().flatten()
    own = shown.of(kept)
    image, masks = source.image(number), None
    if isinstance(output, Masks):
        runs = source.masks(number)
        pixels = [mask_of(runs[row]) for row in kept.tolist()]
        masks = torch.stack(pixels) if pixels else torch.zeros(0, *image.shape[1:], dtype=torch.bool)
    points = own.points if isinstance(output, Keypoints) else None
    return Example(image, own.box, own.label + 1, masks, points)


def mirror_example(one: Example, swap: Sequence[int]) -> Example:
    """Left and right exchanged. `swap` says which keypoint each becomes: a left eye is a right eye in a mirror. A
    column x, counted from 0, becomes w − 1 − x; the edges of boxes lie between pixels, and become w − x."""
    width = one.image.shape[2]
    left, top, right, bottom = one.box.unbind(1)
    points = one.points
    if points is not None:
        points = points[:, list(swap)].clone()
        points[..., 0] = torch.where(points[..., 2] > 0, width - 1 - points[..., 0], points[..., 0])
    return Example(
        one.image.flip(2),
        torch.stack((width - right, top, width - left, bottom), 1),
        one.label,
        None if one.masks is None else one.masks.flip(2),
        points,
    )


def mirror_order(names: Sequence[str]) -> tuple[int, ...]:
    """For each keypoint the one that it is in a mirror: its partner where names tell left and right, else itself."""

    def other(name: str) -> str:
        return name.replace("left", "\0").replace("right", "left").replace("\0", "right")

    return tuple(names.index(other(name)) if other(name) in names else place for place, name in enumerate(names))


def training_images(source: Annotated, output: Output, keep_empty: bool) -> Annotated:
    """The images that a detector learns from: those with an instance (crowds do not count), and where keypoints are
    learned, with a labeled keypoint; all of them with `keep_empty`.

    Raises `UserError` where no image is left, or where what is to be learned is not told.
    """
    if isinstance(output, Masks) and not source.has_masks:
        raise UserError("instance segmentation needs the pixels of every instance, and the images have boxes only")
    counted = [_teaches(source, number, output) for number in range(len(source))]
    kept = [number for number, found in enumerate(counted) if found or keep_empty]
    if not any(counted):
        wanted = "labeled keypoints" if isinstance(output, Keypoints) else "boxes"
        raise UserError(f"none of the {len(source)} training images has {wanted} (crowds do not count): name others")
    return source if len(kept) == len(source) else SelectedImages(source, kept)


def _teaches(source: Annotated, number: int, output: Output) -> bool:
    shown = source.instances(number)
    if isinstance(output, Keypoints):
        return shown.points is not None and bool((shown.points[~shown.crowd][..., 2] > 0).any())
    return bool((~shown.crowd).any())


def batches_from(
    source: Annotated, output: Output, order: Order, seed: int, steps: range, workers: int
) -> Iterator[list[Example]]:
    """The examples of some steps, each image mirrored or not; some steps ahead are in the making.

    Every number is a function of the seed, the step and the image, so that a course that was stopped goes on as if it
    had not been.
    """
    swap = mirror_order(next(iter(source.keypoints.values()), ()))

    def make(chosen: tuple[int, int]) -> Example:
        place, number = chosen
        one = example(source, number, output)
        return mirror_example(one, swap) if draws.mix(seed, _MIRROR, place) % 2 else one

    return prefetch(make, map(order, steps), workers, _AHEAD)
