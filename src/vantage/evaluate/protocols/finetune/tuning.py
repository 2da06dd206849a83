"""The joint training of a copy of a backbone and a linear classifier.

n: images   b: images of a batch   t: guesses per image   c: channels   s: side of a view in pixels
"""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from vantage import draws, processes
from vantage.data.sources.source import Source, cache_key
from vantage.encoders.normalization.choices import BatchNorm
from vantage.encoders.normalization.grouped import GroupedStatistics, average_statistics
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.protocols.linear.crops import epochs_of, report_progress
from vantage.evaluate.protocols.linear.pooled import training_view
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.features import batches
from vantage.measures.accuracy import best_classes
from vantage.processes.sharing import own_slice, same_on_all, sum_gradients
from vantage.progress import task
from vantage.storage.cache import hash_of
from vantage.storage.state import State, StateFile, restore, tensors_of

__all__ = ["TuningSchedule", "Divergence", "TunedCopy", "tune"]


class Divergence(UserError):
    """The loss of a training run is no longer finite."""


@dataclass(frozen=True)
class TuningSchedule:
    """How long, how fast and on what crops a copy is trained."""

    epochs: int
    """Passes over the images."""

    batch_size: int
    """Maximum number of images in a step."""

    learning_rates: tuple[float, float]
    """Learning rates of backbone and classifier."""

    weight_decay: float
    """L2 penalty of all parameters."""

    smallest_area: float
    """Smallest share of the image that a crop covers."""

    seed: int
    """Seed of the order, the crops and the classifier's start."""

    milestones: tuple[float, ...] = (0.6, 0.8)
    """Shares of the epochs after which both learning rates fall."""

    decay: float = 0.2
    """What they are multiplied by each time they fall."""

    momentum: float = 0.9
    """Momentum of SGD."""

    head_start: float = 0.01
    """Standard deviation of the classifier's initial weights, whose mean is 0; biases are 0."""

    @property
    def constants(self) -> dict[str, Any]:
        """Numbers that a protocol fixes or derives from its settings, as plain data."""
        return {
            "weight_decay": self.weight_decay,
            "rates_fall_after_shares": list(self.milestones),
            "rates_fall_by": self.decay,
            "momentum": self.momentum,
            "head_start": self.head_start,
        }

    def factor(self, epoch: int) -> float:
        """The factor of both learning rates in an epoch."""
        return self.decay ** sum(epoch >= round(share * self.epochs) for share in self.milestones)


@dataclass(frozen=True)
class TunedCopy:
    """The trained copy of a backbone, with its classifier."""

    backbone: nn.Module
    """The copy, trained, in evaluation mode."""

    head: nn.Linear
    """The classifier."""

    losses: list[float]
    """Mean cross-entropy of each epoch."""

    how: Mapping[str, Any]
    """Constants of the schedule, how training images are seen, and how their crops were drawn."""

    @torch.no_grad()
    def predict(self, encoder: FrozenEncoder, source: Source, work: Work) -> Int[Tensor, "n t"]:
        """The five best classes of each image (or all, if there are fewer), best first, through the view of
        `encoder`."""
        copy = replace(encoder, backbone=self.backbone, name=f"{encoder.name}, fine-tuned")
        head = self.head.cpu()
        return torch.cat([best_classes(head(features)) for _, features in batches(copy, source, work)])


def tune(
    schedule: TuningSchedule, encoder: FrozenEncoder, source: Source, label: Int[Tensor, "n"], classes: int, work: Work
) -> TunedCopy:
    """Train a copy of a backbone and a linear classifier.

    BatchNorm takes its statistics over the whole batch, whatever pretraining did. Draws depend on seed, epoch and step
    alone, and the state after an epoch is cached every few minutes, so a stopped run ends as if it had never been
    stopped. Processes share the images of a step and normalize them together: losses equal those of one process to
    1e-6 in float64, and up to rounding in float32. Raises `Divergence` if the loss is no longer finite.
    """
    device = work.resolved_device()
    state = _Training(schedule, encoder, classes, device)
    state_file = _state_file(schedule, encoder, source, label, work)
    last = state_file.read("losses")
    if same_on_all(len(last.facts["losses"]) if last else 0) and last:
        state.restore(last)
    size = _images_of_a_step(len(source), schedule.batch_size)
    view = training_view(encoder, schedule.smallest_area)
    images = epochs_of(source, view, size, schedule.seed, work)
    label = label.to(device)
    count, loss_note = len(source), ""
    name, completed = f"fine-tuning, {encoder.name}, images", len(state.losses) * count
    with task(work.progress, name, schedule.epochs * count, completed):
        for epoch in range(len(state.losses), schedule.epochs):
            with torch.random.fork_rng([device] if device.type == "cuda" else []):
                note = f"epoch {epoch + 1} of {schedule.epochs}{loss_note}"
                views = report_progress(images(epoch), work.progress, epoch * count, note)
                loss = state.epoch(views, label, epoch)
            if not loss < float("inf"):
                raise Divergence(
                    f"fine-tuning {encoder.name} diverged in epoch {epoch + 1}: the loss is {loss}; choose lower"
                    " learning rates (--backbone-learning-rate, --head-learning-rate)"
                )
            loss_note = f", loss {loss:.3f}"
            if state_file.due and epoch + 1 < schedule.epochs and processes.rank() == 0:
                state_file.write(tensors_of(state.parts, state.optimizer), {"losses": state.losses})
    state_file.forget()
    how = schedule.constants | {"images_of_a_step": size, "training_view": repr(view), "crops": images.crop_method}
    return TunedCopy(state.backbone.eval().requires_grad_(False), state.head.requires_grad_(False), state.losses, how)


def _state_file(
    schedule: TuningSchedule, encoder: FrozenEncoder, source: Source, label: Int[Tensor, "n"], work: Work
) -> StateFile:
    """The file that caches the state, named by a hash of everything that it depends on."""
    device = work.resolved_device().type
    facts = (encoder.digest(), repr(encoder.view), cache_key(source), repr(schedule), str(label.tolist()), device)
    facts += (str(work.resident_bytes),)  # crops of images that are held in memory are drawn by batch
    return StateFile(work.cache / "finetune" / f"{hash_of(facts)}.safetensors")


def _images_of_a_step(images: int, most: int) -> int:
    """Images per step that make all steps as equal as possible. Raises `UserError` if the processes cannot share
    the last one."""
    size = ceil(images / ceil(images / most))
    if (smallest := images % size or size) < processes.count():
        raise UserError(
            f"fine-tuning: {processes.count()} processes cannot share the {smallest} images of the last step; choose"
            " another batch_size, or fewer devices"
        )
    return size


class _Training:
    """Everything that changes in the course of a training run."""

    def __init__(self, schedule: TuningSchedule, encoder: FrozenEncoder, classes: int, device: torch.device) -> None:
        self.schedule, self.losses = schedule, list[float]()
        with draws.torch_seed(draws.mix(schedule.seed, draws.Purpose.FINETUNE_START)):
            self.head = nn.Linear(encoder.width, classes)
            nn.init.normal_(self.head.weight, std=schedule.head_start)
            nn.init.zeros_(self.head.bias)
        self.backbone = copy.deepcopy(encoder.backbone).requires_grad_(True).train()
        for layer in self.backbone.modules():
            if isinstance(layer, GroupedStatistics):
                layer.groups, layer.parts = 1, 1
        BatchNorm().convert(self.backbone)  # over all processes
        self.head.to(device)
        self.backbone.to(device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        parts = [list(part.parameters()) for part in (self.backbone, self.head)]
        groups = [
            {"params": part, "lr": rate} for part, rate in zip(parts, schedule.learning_rates, strict=True) if part
        ]
        self.optimizer = torch.optim.SGD(groups, momentum=schedule.momentum, weight_decay=schedule.weight_decay)
        self.learning_rates = [group["lr"] for group in groups]

    def epoch(
        self, images: Iterator[tuple[Int[Tensor, "b"], Float[Tensor, "b c s s"]]], label: Int[Tensor, "n"], epoch: int
    ) -> float:
        """Train for one pass over the images; returns the mean loss. A last batch of one image is skipped, since
        BatchNorm needs two."""
        for group, learning_rate in zip(self.optimizer.param_groups, self.learning_rates, strict=True):
            group["lr"] = learning_rate * self.schedule.factor(epoch)
        total, count = torch.zeros((), dtype=torch.float64), 0
        for step, (rows, views) in enumerate(images):
            if len(rows) < 2:
                continue
            seed = draws.mix(self.schedule.seed, draws.Purpose.FINETUNE_STEP, epoch, step)
            draws.set_torch_seed(seed, label.device)  # for dropout
            features = self.backbone(views.contiguous(memory_format=torch.channels_last)).float()
            target = label[rows[own_slice(len(rows))].to(label.device)]
            loss = F.cross_entropy(self.head(features), target) * (len(target) / len(rows))  # this process's part
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            sum_gradients(parameter for part in self.parts.values() for parameter in part.parameters())
            self.optimizer.step()
            total, count = total + processes.total(loss.detach()).double().cpu() * len(rows), count + len(rows)
        average_statistics(self.backbone)
        self.losses.append(float(total / count))
        return self.losses[-1]

    @property
    def parts(self) -> dict[str, nn.Module]:
        """The modules that are trained."""
        return {"backbone": self.backbone, "head": self.head}

    def restore(self, earlier: State) -> None:
        """Continue from a cached state."""
        if restore(self.parts, self.optimizer, earlier.tensors):
            self.losses = earlier.facts["losses"]
