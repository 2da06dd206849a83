"""The same views in other libraries, translated operation by operation from one of our views.

All blurs have the same kernel size as ours. RandAugment is each library's own list at its strongest, drawn twice, each
draw applied half of the time, as in InfoMin; kornia draws one change for a whole batch, and neither draws levels around
a mean.
"""

import importlib.util
import random
from collections.abc import Callable
from typing import Any

import torch
from PIL import Image, ImageFilter
from torchvision import transforms as v1
from torchvision.transforms import v2

from vantage.views import (
    Augmentation,
    ColorJitter,
    GaussianBlur,
    Grayscale,
    HorizontalFlip,
    Normalize,
    RandAugment,
    RandomResizedCrop,
)


class PillowBlur:
    """The papers' blur."""

    def __init__(self, sigma: tuple[float, float]) -> None:
        self.sigma = sigma

    def __call__(self, image: Image.Image) -> Image.Image:
        return image.filter(ImageFilter.GaussianBlur(radius=random.uniform(*self.sigma)))


def _scale(view: Augmentation) -> tuple[float, float]:
    assert isinstance(view.crop, RandomResizedCrop)
    return view.crop.scale


def torchvision_v1(view: Augmentation) -> Callable[[Image.Image], torch.Tensor]:
    """torchvision's views with PIL, image by image."""
    steps: list[Any] = [v1.RandomResizedCrop(view.crop.size, _scale(view))]
    for operation in view.operations:
        match operation:
            case HorizontalFlip(p):
                steps.append(v1.RandomHorizontalFlip(p))
            case ColorJitter():
                steps.append(v1.RandomApply([v1.ColorJitter(*jitter(operation))], operation.probability))
            case Grayscale(p):
                steps.append(v1.RandomGrayscale(p))
            case GaussianBlur(sigma, p):
                steps.append(v1.RandomApply([PillowBlur(sigma)], p))
            case RandAugment():
                steps += [v1.RandomApply([v1.RandAugment(1, 30)], 0.5)] * 2
            case Normalize():
                steps += [v1.ToTensor(), v1.Normalize(operation.mean, operation.std)]
            case other:
                raise ValueError(f"tell view_peers.py what {other} is in torchvision")
    return v1.Compose(steps)


def torchvision_v2(view: Augmentation) -> Callable[[torch.Tensor], torch.Tensor]:
    """torchvision's views on tensors, image by image."""
    steps: list[Any] = [v2.RandomResizedCrop(view.crop.size, _scale(view))]
    for operation in view.operations:
        match operation:
            case HorizontalFlip(p):
                steps.append(v2.RandomHorizontalFlip(p))
            case ColorJitter():
                steps.append(v2.RandomApply([v2.ColorJitter(*jitter(operation))], operation.probability))
            case Grayscale(p):
                steps.append(v2.RandomGrayscale(p))
            case GaussianBlur(sigma, p):
                steps.append(v2.RandomApply([v2.GaussianBlur(2 * operation.radius + 1, sigma)], p))
            case RandAugment():
                steps += [v2.RandomApply([v2.RandAugment(1, 30)], 0.5)] * 2
            case Normalize():
                steps += [v2.ToDtype(torch.float32, True), v2.Normalize(operation.mean, operation.std)]
            case other:
                raise ValueError(f"tell view_peers.py what {other} is in torchvision")
    return v2.Compose(steps)


def kornia(view: Augmentation) -> Callable[[torch.Tensor], object] | None:
    """kornia's views of whole batches; None if it is not installed."""
    if importlib.util.find_spec("kornia") is None:
        return None
    import kornia.augmentation as theirs
    from kornia.augmentation.auto import RandAugment as TheirRandAugment

    side = view.crop.size
    steps: list[Any] = [theirs.RandomResizedCrop((side, side), scale=_scale(view))]
    for operation in view.operations:
        match operation:
            case HorizontalFlip(p):
                steps.append(theirs.RandomHorizontalFlip(p=p))
            case ColorJitter():
                steps.append(theirs.ColorJitter(*jitter(operation), p=operation.probability))
            case Grayscale(p):
                steps.append(theirs.RandomGrayscale(p=p))
            case GaussianBlur(sigma, p):
                steps.append(theirs.RandomGaussianBlur((2 * operation.radius + 1,) * 2, sigma, p=p))
            case RandAugment():
                steps.append(TheirRandAugment(1, 29))
            case Normalize():
                steps.append(theirs.Normalize(torch.tensor(operation.mean), torch.tensor(operation.std)))
            case other:
                raise ValueError(f"tell view_peers.py what {other} is in kornia")
    sequence = torch.nn.Sequential(*steps)
    return lambda batch: sequence(batch.float().div_(255))


def lightly(name: str, size: int) -> Callable[[Image.Image], object] | None:
    """lightly's transform of that name, which returns two views; None if there is none or lightly is not installed."""
    if importlib.util.find_spec("lightly") is None or name == "A-InfoMin":
        return None
    from lightly.transforms import MoCoV2Transform, SimCLRTransform

    blur = 0.0 if size == 32 else 0.5
    if name == "A-SimCLR":
        return SimCLRTransform(input_size=size, cj_strength=0.5 if size == 32 else 1.0, gaussian_blur=blur)
    return MoCoV2Transform(input_size=size, gaussian_blur=blur)


def jitter(operation: ColorJitter) -> tuple[float, float, float, float]:
    """What every library calls brightness, contrast, saturation and hue."""
    return operation.brightness, operation.contrast, operation.saturation, operation.hue
