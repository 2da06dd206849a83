"""Linear classification on the deepest feature map of a frozen backbone, before pooling.

b: images   c: channels   s: side of a view in pixels
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vantage.data.sources.source import Source
from vantage.data.splits import with_labels
from vantage.encoders.backbones.depths import AtDepth
from vantage.encoding import Work, in_threads
from vantage.errors import UserError
from vantage.evaluate.protocols.linear.plan import LinearTraining, torch_start
from vantage.evaluate.protocols.linear.pooled import on_features, training_view
from vantage.evaluate.result import Outcome
from vantage.frozen.encoder import FrozenEncoder, Pixels
from vantage.processes.sharing import own_parts, parts_in_order
from vantage.progress import counting
from vantage.views.colors.statistics import Statistics
from vantage.views.evaluation import EvaluationView, Straight

__all__ = ["LinearRing", "example_of", "statistics_of"]

_MOST = 10_000
"""Maximum number of images from which mean and deviation are computed."""


@dataclass(frozen=True)
class LinearRing(LinearTraining):
    """Linear classification as Ring reports it (arXiv 2010.02037, §5): on the deepest feature map before pooling.

    The map is flattened: 512 x 7 x 7 numbers for ResNet-18 at 224 pixels. SGD with momentum .9, no weight decay and a
    constant learning rate of .01; pixels are normalized by mean and standard deviation of the training images
    themselves (of 10,000 spread evenly over them, if there are more). For a run with several encoders, the maps of
    all are used. The paper does not say how images are cropped in this training: here by random resized crops of at
    least .2 of the image, as in its pre-training, and flips. The released code trains with BatchNorm in training mode;
    here the backbone does not change, which is checked.

    Raises `UserError` for a backbone that gives no feature maps.
    """

    name: ClassVar[str] = "linear-ring"
    version: ClassVar[int] = 1

    learning_rates: tuple[float, ...] = (0.01,)
    """Learning rates trained side by side, for a batch of 256; the paper's is .01. With one rate nothing is held out;
    among several, a tenth of the training images decides."""
    smallest_area: float = 0.2
    """Smallest share of the image that a crop covers."""

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Train on `train`, score on `test`."""
        statistics = statistics_of(encoder, train, work)
        at_depth = replace(encoder, view=_with_statistics(encoder.view, statistics))
        if not isinstance(encoder.backbone, Pixels):  # raw pixels have no depth
            at_depth = replace(
                at_depth, backbone=AtDepth(encoder.backbone, -1, nn.Identity(), example_of(encoder)).eval()
            )
        crops = training_view(at_depth, self.smallest_area)
        outcome = on_features(self.plan(crops, (), 1.0, torch_start), at_depth, train, test, work)
        details = {"mean": list(statistics.mean), "std": list(statistics.std), "features": at_depth.width}
        return replace(outcome, details=details, how={**outcome.how, "most_images_measured": _MOST})


def example_of(encoder: FrozenEncoder) -> Float[Tensor, "1 c s s"]:
    """A blank image of the shape that the encoder sees, on the device of its parameters."""
    device = next((value.device for value in encoder.backbone.state_dict().values()), torch.device("cpu"))
    side = encoder.view.size
    return torch.zeros(1, len(encoder.view.channels), side, side, device=device)


def _with_statistics(
    view: EvaluationView | Straight, statistics: Statistics, channels: tuple[int, ...] | None = None
) -> EvaluationView | Straight:
    """The same view with other statistics, and with other channels unless None."""
    if isinstance(view, Straight):
        return replace(view, base=_with_statistics(view.base, statistics, channels))
    return replace(view, statistics=statistics, channels=view.channels if channels is None else channels)


def statistics_of(encoder: FrozenEncoder, source: Source, work: Work) -> Statistics:
    """Mean and standard deviation of each channel over the labeled images, cropped and converted as in testing; over
    10,000 of them, evenly spread, if there are more.

    Raises `UserError` if no image has a label, or if a channel is constant.
    """
    source, _ = with_labels(source)
    count = min(len(source), _MOST)
    numbers = [number * len(source) // count for number in range(count)]
    starts = range(0, count, work.batch_size)
    parts = (numbers[start : start + work.batch_size] for start in own_parts(starts))
    plain = _with_statistics(encoder.view, Statistics((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)), (0, 1, 2))
    crops = in_threads(lambda number: plain.crop(source.image(number)), parts, work.num_workers)
    sums = torch.zeros(3, 3, dtype=torch.float64)
    with counting(work.progress, "mean and deviation") as progress:
        all_sums = parts_in_order(
            (_sums(plain.finish(part).double()) for part in crops), len(starts), (3, 3), torch.float64
        )
        for start, part in zip(starts, all_sums, strict=True):
            sums += part[0]
            progress(min(count, start + work.batch_size), count)
    pixels, total, squares = sums
    mean = total / pixels
    deviation = (squares / pixels - mean.square()).clamp(min=1e-12).sqrt()
    if bool((deviation < 1e-5).any()):
        raise UserError("a channel of the training images is constant, so images cannot be normalized by it")
    red, green, blue = mean.tolist()
    first, second, third = deviation.tolist()
    return Statistics((red, green, blue), (first, second, third))


def _sums(values: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "1 3 3"]:
    """For each channel: the number of pixels, their sum, and the sum of their squares."""
    pixels = torch.full((3,), float(values[:, 0].numel()), dtype=torch.float64)
    return torch.stack([pixels, values.sum((0, 2, 3)), values.square().sum((0, 2, 3))])[None]
