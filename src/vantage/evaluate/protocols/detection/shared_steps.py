"""Steps of a detector's training whose images the processes share, with the losses and gradients of one process.

Each process computes the losses of its images. What one process would do with all of them together is done together:
images are padded to the largest of all, BatchNorm takes its statistics over all, sides and regions are drawn as if in
the order of all, and each mean is weighted by its number of regions, so that the parts sum to the joint mean.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torchvision.models.detection.roi_heads import RoIHeads, keypoints_to_heatmap
from torchvision.models.detection.transform import GeneralizedRCNNTransform

from vantage import processes
from vantage.encoders.normalization.choices import BatchNorm
from vantage.errors import UserError
from vantage.evaluate.protocols.detection.cascade import CascadeHeads
from vantage.evaluate.protocols.detection.detector import Detector
from vantage.processes.sharing import gather_parts, own_slice

__all__ = ["SharedSteps"]

_RPN_LOSSES, _MASK_LOSS, _POINT_LOSS = ("loss_objectness", "loss_rpn_box_reg"), "loss_mask", "loss_keypoint"


class SharedSteps:
    """A detector whose steps the processes share."""

    def __init__(self, detector: Detector, images: int) -> None:
        """Changes the detector, in place, for steps of `images` images over all processes. Raises `UserError` for fewer
        images than processes."""
        if images < processes.count():
            raise UserError(
                f"detection: {processes.count()} processes cannot share steps of {images} images; choose a larger"
                " batch_size, or fewer devices"
            )
        transform, rpn, heads = detector.model.transform, detector.model.rpn, detector.model.roi_heads
        assert isinstance(transform, GeneralizedRCNNTransform)
        self._images, self._transform = images, transform
        BatchNorm().convert(detector.model)
        self._cascade = heads if isinstance(heads, CascadeHeads) else None
        heads = heads.heads if isinstance(heads, CascadeHeads) else heads
        assert isinstance(heads, RoIHeads)
        self._anchors, self._regions = _Sampler(rpn.fg_bg_sampler), _Sampler(heads.fg_bg_sampler)
        vars(rpn)["fg_bg_sampler"], vars(heads)["fg_bg_sampler"] = self._anchors, self._regions
        self._points = _PointCount(heads) if heads.has_keypoint() else None

    @contextmanager
    def one_step(self) -> Iterator[None]:
        """A context in which the detector's losses are those of this process's images in one step."""
        settings = vars(self._transform)
        sides = [self._transform.torch_choice(settings["min_size"]) for _ in range(self._images)]
        own_sides = iter(sides[own_slice(self._images)])
        settings["torch_choice"] = lambda _: next(own_sides)
        settings["max_by_axis"] = _largest
        try:
            yield
        finally:
            del settings["torch_choice"], settings["max_by_axis"]

    def part(self, losses: dict[str, Tensor]) -> Float[Tensor, ""]:
        """What the images of this process add to the sum of the joint losses."""
        regions, objects = self._regions.counts.tolist()
        region_counts = dict.fromkeys(losses, regions)
        region_counts |= dict.fromkeys(_RPN_LOSSES, float(self._anchors.counts[0])) | {_MASK_LOSS: objects}
        region_counts |= {_POINT_LOSS: float(self._points.count)} if self._points else {}
        region_counts |= self._cascade.region_counts if self._cascade else {}
        counts = torch.tensor([region_counts[name] for name in losses], dtype=torch.float64)
        weights = (counts / processes.total(counts).clamp(min=1)).tolist()
        return torch.stack([weight * loss for weight, loss in zip(weights, losses.values(), strict=True)]).sum()


class _Sampler:
    """torchvision's sampler of anchors or regions, which draws for the images of all processes in their order, and
    keeps the samples of this process's images."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler
        self.counts = torch.zeros(2)
        """How many regions were sampled on this process, and how many of them show an object."""

    def __call__(self, labels: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        objects, backgrounds = list[Tensor](), list[Tensor]()
        sizes = torch.tensor([[int((one >= 1).sum()), int((one == 0).sum())] for one in labels])
        for rank, images in enumerate(gather_parts(sizes)):
            for number, counts in enumerate(images.tolist()):
                if rank == processes.rank():
                    (object_mask,), (background_mask,) = self._sampler([labels[number]])
                    objects.append(object_mask)
                    backgrounds.append(background_mask)
                else:  # draw as many random numbers as the image takes on its process
                    for size in counts:
                        torch.randperm(size, device=labels[0].device)
        positive = sum(int(one.sum()) for one in objects)
        self.counts = torch.tensor([positive + sum(int(one.sum()) for one in backgrounds), positive]).double()
        return objects, backgrounds


class _PointCount:
    """The number of keypoints over which this step's loss is the mean: those labeled within their region."""

    def __init__(self, heads: RoIHeads) -> None:
        self.count = 0
        self._select, self._samples = heads.select_training_samples, list[tuple[Tensor, ...]]()
        vars(heads)["select_training_samples"] = self._select_samples
        assert isinstance(heads.keypoint_predictor, nn.Module)
        heads.keypoint_predictor.register_forward_hook(self._count_points)

    def _select_samples(self, proposals: list[Tensor], targets: list[dict[str, Tensor]]) -> tuple[Any, ...]:
        selection = self._select(proposals, targets)
        regions, instances, labels, _ = selection
        self._samples = list(zip(regions, instances, labels, (one["keypoints"] for one in targets), strict=True))
        return selection

    def _count_points(self, _: nn.Module, inputs: tuple[Tensor, ...], heatmaps: Tensor) -> None:
        self.count = 0
        for region, instances, label, points in self._samples:
            rows = (label > 0).nonzero()[:, 0]
            self.count += int(keypoints_to_heatmap(points[instances[rows]], region[rows], heatmaps.shape[-1])[1].sum())
        self._samples = []


def _largest(sizes: list[list[int]]) -> list[int]:
    """The largest size along each axis, of the images of all processes."""
    return processes.gather(torch.tensor(sizes).amax(0, keepdim=True)).amax(0).tolist()
