"""The views of the published methods. Operations are in the order of each method's own code.

Throughout: `size` is the side of a view in pixels, `count` the number of views of each image, and `statistics` what
pixels are normalized with. At 224 pixels these are the papers' views. For small images two things depend on the
size:

* the blur's sigma is a length in pixels of a 224-pixel view, so it scales with size / 224. Up to 32 pixels there is no
  blur, as in SimCLR's experiments on CIFAR-10 (arXiv 2002.05709, B.9);
* up to 64 pixels no crop takes less than 0.2 of the image, as in instance discrimination's code for CIFAR-10: 0.08 of a
  32-pixel image would be 9 pixels square.

Statistics do not depend on the size: pass `CIFAR10` or `STL10` for those sets; Tiny ImageNet uses ImageNet's.
"""

from vantage.composition.field_types import expect
from vantage.errors import UserError
from vantage.views.augmentation import Augmentation, Views
from vantage.views.colors.statistics import IMAGENET, Statistics
from vantage.views.operations.color import ColorJitter, Grayscale
from vantage.views.operations.crops import RandomResizedCrop
from vantage.views.operations.filters import GaussianBlur
from vantage.views.operations.flip import HorizontalFlip
from vantage.views.operations.operation import Operation
from vantage.views.operations.randaugment import RandAugment

PAPER_SIZE = 224
"""Side, in pixels, of the views in the papers."""


def npid_views(size: int = 224, count: int = 2, statistics: Statistics = IMAGENET) -> Views:
    """Views of instance discrimination (arXiv 1805.01978), MoCo v1 and local aggregation, with grayscale *before*
    jitter.

    Instance discrimination makes one view of each image (`count` 1), MoCo v1 two. Its CIFAR-10 code jitters before
    grayscale and does not flip; here the order is the same, with a flip, at every size.
    """
    operations = (Grayscale(0.2), ColorJitter(0.4, 0.4, 0.4, 0.4), HorizontalFlip(0.5))
    return repeat_view(size, 0.2, operations, count, statistics)


def pycontrast_a_views(
    size: int = 224, count: int = 2, statistics: Statistics = IMAGENET, smallest_area: float = 0.2
) -> Views:
    """Views "A" of the PyContrast code, which InfoMin (arXiv 2005.10243) starts from: `npid_views` with jitter before
    grayscale.

    `smallest_area` is the least share of the image that a crop takes: the code has 0.2 with a queue, 0.08 with a bank.
    """
    operations = (HorizontalFlip(0.5), ColorJitter(0.4, 0.4, 0.4, 0.4), Grayscale(0.2))
    return repeat_view(size, smallest_area, operations, count, statistics)


def moco_v2_views(size: int = 224, count: int = 2, statistics: Statistics = IMAGENET) -> Views:
    """Views of MoCo v2 (arXiv 2003.04297); JCL uses them too."""
    operations = (ColorJitter(0.4, 0.4, 0.4, 0.1, 0.8), Grayscale(0.2), *_blur(size), HorizontalFlip(0.5))
    return repeat_view(size, 0.2, operations, count, statistics)


def interclr_views(size: int = 224, count: int = 1, statistics: Statistics = IMAGENET) -> Views:
    """Views of InterCLR with a bank (arXiv 2008.11702): `npid_views` with blur, and with jitter of saturation and hue
    only, at full strength.

    The paper gives neither order nor probabilities. Here jitter is applied to every image, as in `npid_views`, and the
    rest follows MoCo v2.
    """
    operations = (HorizontalFlip(0.5), ColorJitter(0.0, 0.0, 1.0, 0.5), Grayscale(0.2), *_blur(size))
    return repeat_view(size, 0.2, operations, count, statistics)


def simclr_views(size: int = 224, count: int = 2, statistics: Statistics = IMAGENET, strength: float = 1.0) -> Views:
    """Views of SimCLR (arXiv 2002.05709). `strength` scales the color jitter: 1 for ImageNet, 0.5 for CIFAR-10."""
    _check_strength("simclr", strength)
    jitter = ColorJitter(0.8 * strength, 0.8 * strength, 0.8 * strength, 0.2 * strength, 0.8)
    return repeat_view(size, 0.08, (HorizontalFlip(0.5), jitter, Grayscale(0.2), *_blur(size)), count, statistics)


def infomin_views(size: int = 224, count: int = 2, statistics: Statistics = IMAGENET, strength: float = 1.0) -> Views:
    """Views of InfoMin (arXiv 2005.10243, section 3.4 and appendix C), "D" of its code: SimCLR's jitter and blur, then
    RandAugment, then grayscale, on crops from 0.2 of the image. Its jigsaw is a separate view: `WithJigsaw`.

    `strength` scales the color jitter; in the paper's sweep from 0.125 to 2.5 the best is 1.
    """
    _check_strength("infomin", strength)
    jitter = ColorJitter(0.8 * strength, 0.8 * strength, 0.8 * strength, 0.2 * strength, 0.8)
    operations = (HorizontalFlip(0.5), jitter, *_blur(size, reach=5.5), RandAugment(), Grayscale(0.2))
    return repeat_view(size, 0.2, operations, count, statistics)


def _check_strength(name: str, strength: float) -> None:
    """Refuse, with a `UserError`, a strength of jitter outside [0, 2.5]."""
    if not 0 <= strength <= 2.5:
        raise UserError(f"{name}'s strength must be from 0 to 2.5 (where the hue is uniform), found {strength}")


def repeat_view(
    size: int, smallest_area: float, operations: tuple[Operation, ...], count: int, statistics: Statistics
) -> Views:
    """The same view, drawn `count` times."""
    if count < 1:
        raise UserError(f"the number of views of each image must be at least 1, found {count}")
    least = max(smallest_area, 0.2) if _is_at_most(64, size) else smallest_area
    crop = RandomResizedCrop(size, (least, 1.0))
    return Views((Augmentation(crop, (*operations, statistics.normalize())),) * count)


def _blur(size: int, reach: float = 3.0) -> tuple[GaussianBlur, ...]:
    """The blur for this size, or none."""
    if _is_at_most(32, size):
        return ()
    return (GaussianBlur((0.1 * size / PAPER_SIZE, 2.0 * size / PAPER_SIZE), 0.5, reach),)


def _is_at_most(most: int, size: int) -> bool:
    expect(size, int, "the size of the views", "a whole number of pixels, such as 32")
    return size <= most
