"""Images and targets for training: which images, in which order, and which of them mirrored.

n: instances in an image   k: keypoints   h, w: height and width in pixels
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from vantage import draws
from vantage.data.threads import prefetch
from vantage.errors import UserError
from vantage.evaluate.protocols.detection.outputs import Keypoints, Masks, Output
from vantage.evaluate.protocols.detection.sources.annotated import AnnotatedSource
from vantage.evaluate.protocols.detection.sources.masks import mask_of
from vantage.evaluate.protocols.detection.sources.selections import SelectedImages

__all__ = ["Example", "batches_from", "example", "mirror_order", "mirror_example", "training_images"]

_AHEAD = 2


@dataclass(frozen=True)
class Example:
    """An image, and what a detector should find in it."""

    image: UInt8[Tensor, "3 h w"]
    """The pixels."""
    box: Float[Tensor, "n 4"]
    """Left, top, right, bottom in pixels."""
    label: Int[Tensor, "n"]
    """Class counted from 1; 0 is the background."""
    masks: Bool[Tensor, "n h w"] | None = None
    """Pixels of each instance."""
    points: Float[Tensor, "n k 3"] | None = None
    """Column, row and visibility of each keypoint."""

    def target(self, device: torch.device) -> dict[str, Tensor]:
        """The target in the form of torchvision's detectors."""
        tensors = {"boxes": self.box, "labels": self.label}
        if self.masks is not None:
            tensors["masks"] = self.masks.to(torch.uint8)
        if self.points is not None:
            tensors["keypoints"] = self.points
        return {name: value.to(device) for name, value in tensors.items()}


def example(source: AnnotatedSource, number: int, output: Output) -> Example:
    """An image with its instances, except for crowds."""
    instances = source.instances(number)
    rows = (~instances.crowd).nonzero().flatten()
    instances = instances.of(rows)
    image, masks = source.image(number), None
    if isinstance(output, Masks):
        runs = source.masks(number)
        pixels = [mask_of(runs[row]) for row in rows.tolist()]
        masks = torch.stack(pixels) if pixels else torch.zeros(0, *image.shape[1:], dtype=torch.bool)
    points = instances.points if isinstance(output, Keypoints) else None
    return Example(image, instances.box, instances.label + 1, masks, points)


def mirror_example(one: Example, swap: Sequence[int]) -> Example:
    """The example with left and right exchanged. `swap` maps each keypoint to its counterpart: a left eye is a right
    eye in a mirror. A column x, counted from 0, becomes w − 1 − x; the edges of boxes lie between pixels, and become w
    − x."""
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
    """For each keypoint its counterpart in a mirror: the other side if its name has left or right, else itself."""

    def other(name: str) -> str:
        return name.replace("left", "\0").replace("right", "left").replace("\0", "right")

    return tuple(names.index(other(name)) if other(name) in names else number for number, name in enumerate(names))


def training_images(source: AnnotatedSource, output: Output, keep_empty: bool) -> AnnotatedSource:
    """The images that a detector is trained on: those with an instance (crowds do not count), or, for keypoints, with a
    labeled keypoint; all images with `keep_empty`.

    Raises `UserError` if no image is left, or if the images lack the annotations to learn from.
    """
    if isinstance(output, Masks) and not source.has_masks:
        raise UserError("instance segmentation needs a mask of every instance, but the images have boxes only")
    useful = [_has_targets(source, number, output) for number in range(len(source))]
    numbers = [number for number, use in enumerate(useful) if use or keep_empty]
    if not any(useful):
        what = "labeled keypoints" if isinstance(output, Keypoints) else "boxes"
        raise UserError(f"none of the {len(source)} training images has {what} (crowds do not count): name others")
    return source if len(numbers) == len(source) else SelectedImages(source, numbers)


def _has_targets(source: AnnotatedSource, number: int, output: Output) -> bool:
    instances = source.instances(number)
    if isinstance(output, Keypoints):
        return instances.points is not None and bool((instances.points[~instances.crowd][..., 2] > 0).any())
    return bool((~instances.crowd).any())


def batches_from(
    source: AnnotatedSource,
    output: Output,
    order: Callable[[int], list[tuple[int, int]]],
    seed: int,
    steps: range,
    workers: int,
) -> Iterator[list[Example]]:
    """The examples of some steps, each image mirrored or not; a few steps are prepared in advance. `order` gives the
    position in the training and the number of each image of a step, as `StepOrder` does.

    Every random number is a function of the seed, the step and the image, so that an interrupted training continues
    exactly.
    """
    swap = mirror_order(next(iter(source.keypoints.values()), ()))

    def make(item: tuple[int, int]) -> Example:
        position, number = item
        one = example(source, number, output)
        return mirror_example(one, swap) if draws.mix(seed, draws.Purpose.DETECTION_MIRROR, position) % 2 else one

    return prefetch(make, map(order, steps), workers, _AHEAD)
