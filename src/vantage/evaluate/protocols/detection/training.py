"""Train a detector, continuing after interruptions, and detect with it.

b: images of a step   h, w: height and width in pixels
"""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor, nn

from vantage import draws, processes
from vantage.data.threads import prefetch
from vantage.draws import torch_seed
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.protocols.detection.detector import Detector
from vantage.evaluate.protocols.detection.examples import Example, batches_from
from vantage.evaluate.protocols.detection.order import StepOrder, wide
from vantage.evaluate.protocols.detection.outputs import Keypoints, Output
from vantage.evaluate.protocols.detection.schedules import DetectionSchedule
from vantage.evaluate.protocols.detection.scoring import Detections
from vantage.evaluate.protocols.detection.shared_steps import SharedSteps
from vantage.evaluate.protocols.detection.sources.annotated import AnnotatedSource
from vantage.evaluate.protocols.detection.sources.masks import run_lengths
from vantage.processes.sharing import own_parts, own_slice, parts_in_order, same_on_all, sum_gradients
from vantage.progress import task
from vantage.storage.state import StateFile, restore, tensors_of

__all__ = ["DetectorTraining", "detect"]

_AHEAD = 2  # groups decoded in advance, each of as many images as there are threads
_NORMS = (nn.BatchNorm2d, nn.GroupNorm, nn.LayerNorm)


@dataclass(frozen=True)
class DetectorTraining:
    """How a detector is trained: SGD with momentum .9, weight decay 1e-4 (not of norms), as in Detectron2.

    On a CPU an interrupted training continues bit for bit. On a GPU it continues with the same images and random
    numbers, but gradients of regions are summed in no fixed order there. Processes share the images of a step
    (`SharedSteps`).
    """

    schedule: DetectionSchedule
    """Steps, batch size and learning rate."""
    seed: int
    """Seed of the order, mirrored images, sides and sampled regions."""
    precise_batches: int
    """Training batches over which the trainable BatchNorms average their statistics before testing."""
    state_file: Path
    """File in which the state is kept; `forget` removes it."""
    minutes: float = 5.0
    """Minutes between two states."""
    shapes_apart: bool = True
    """Whether landscape and portrait images are in separate steps."""

    def __call__(
        self, detector: Detector, source: AnnotatedSource, output: Output, work: Work, name: str
    ) -> list[float]:
        """Train, then set the statistics. Returns the loss of every step, including those before an interruption.
        Raises `UserError` when the loss is not finite."""
        device, schedule = work.resolved_device(), self.schedule
        detector.model.to(device)
        detector.train_mode()
        shared_steps = SharedSteps(detector, schedule.batch_size) if processes.count() > 1 else None
        optimizer = _optimizer(detector.model)
        state, parts, losses = StateFile(self.state_file, self.minutes), {"model": detector.model}, list[float]()
        last = state.read("losses")
        is_same = same_on_all(len(last.facts["losses"]) if last else 0)
        if is_same and last and restore(parts, optimizer, last.tensors):
            losses = last.facts["losses"]
        start = len(losses)
        with task(work.progress, f"training a detector, {name}", schedule.steps, start):
            steps = range(start, schedule.steps)
            for step, batch in zip(steps, self._batches(source, output, steps, work), strict=True):
                losses.append(self._step(detector, optimizer, batch, step, device, shared_steps))
                work.progress.advance(step + 1, f"loss {losses[-1]:.3f}")
                if state.due and processes.rank() == 0:
                    state.write(tensors_of(parts, optimizer), {"losses": losses})
        if start < schedule.steps and processes.rank() == 0:
            state.write(tensors_of(parts, optimizer), {"losses": losses})
        self._set_statistics(detector, source, output, work, shared_steps)
        return losses

    def forget(self) -> None:
        """Remove the state file, once the detector has been evaluated."""
        StateFile(self.state_file).forget()

    def _batches(self, source: AnnotatedSource, output: Output, steps: range, work: Work) -> Iterator[list[Example]]:
        order = StepOrder(len(source), self.schedule.batch_size, self.seed, wide(source) if self.shapes_apart else None)
        share = own_slice(self.schedule.batch_size)
        return batches_from(source, output, lambda step: order(step)[share], self.seed, steps, work.num_workers)

    def _step(
        self,
        detector: Detector,
        optimizer: torch.optim.Optimizer,
        batch: list[Example],
        step: int,
        device: torch.device,
        shared_steps: SharedSteps | None,
    ) -> float:
        for group in optimizer.param_groups:
            group["lr"] = self.schedule.learning_rate_at(step)
        with torch_seed(draws.mix(self.seed, draws.Purpose.DETECTION_STEP, step), device):
            loss = _loss(detector, batch, device, shared_steps)
        value = float(processes.total(loss.detach()))
        if not math.isfinite(value):
            raise UserError(
                f"the loss of step {step} is {value}: the learning rate {self.schedule.learning_rate:g}"
                " is too high for these images; give a lower one (--learning-rate)"
            )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        sum_gradients(detector.model.parameters())
        optimizer.step()
        return value

    @torch.no_grad()
    def _set_statistics(
        self, detector: Detector, source: AnnotatedSource, output: Output, work: Work, shared_steps: SharedSteps | None
    ) -> None:
        """Set running statistics to plain means over some batches with the final weights (precise BatchNorm)."""
        count, device = min(self.precise_batches, self.schedule.steps), work.resolved_device()
        norms = [part for part in detector.model.modules() if isinstance(part, nn.BatchNorm2d) and part.training]
        if not norms or not count:
            return
        momenta = [norm.momentum for norm in norms]
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None
        steps = range(self.schedule.steps, self.schedule.steps + count)
        try:
            with task(work.progress, "statistics of BatchNorm", count):
                for step, batch in zip(steps, self._batches(source, output, steps, work), strict=True):
                    with torch_seed(draws.mix(self.seed, draws.Purpose.DETECTION_STEP, step), device):
                        _loss(detector, batch, device, shared_steps)
                    work.progress.advance(step + 1 - steps.start)
        finally:
            for norm, momentum in zip(norms, momenta, strict=True):
                norm.momentum = momentum


@torch.no_grad()
def detect(detector: Detector, source: AnnotatedSource, output: Output, work: Work, name: str) -> list[Detections]:
    """What a detector finds in each image, one at a time, so that no image depends on its neighbors; meanwhile
    `work.num_workers` threads decode the next images. Processes share the images, and all get the same detections."""
    device = work.resolved_device()
    detector.model.to(device)
    detector.eval_mode()
    detections: list[Detections] = []
    batch_size, numbers = max(1, work.num_workers), own_parts(range(len(source)))
    parts = (numbers[first : first + batch_size] for first in range(0, len(numbers), batch_size))

    def own_detections() -> Iterator[Tensor]:
        for image in chain.from_iterable(prefetch(source.image, parts, work.num_workers, _AHEAD)):
            (result,) = detector.model([image.to(device).float() / 255])
            yield _detections(result, output).to_bytes()

    with task(work.progress, f"detections, {name}", len(source)):
        for content in parts_in_order(own_detections(), len(source), (), torch.uint8):
            detections.append(Detections.from_bytes(content))
            work.progress.advance(len(detections))
    return detections


def _loss(detector: Detector, batch: list[Example], device: torch.device, shared_steps: SharedSteps | None) -> Tensor:
    """The sum of a batch's losses, or what the images of this process add to it."""
    images = [one.image.to(device, non_blocking=True).float() / 255 for one in batch]
    with nullcontext() if shared_steps is None else shared_steps.one_step():
        losses = detector.model(images, [one.target(device) for one in batch])
    return torch.stack(list(losses.values())).sum() if shared_steps is None else shared_steps.part(losses)


def _detections(result: dict[str, Tensor], output: Output) -> Detections:
    masks = None
    if "masks" in result:
        masks = tuple(run_lengths(mask[0]) for mask in (result["masks"] > 0.5).cpu())
    points = result["keypoints"].cpu() if isinstance(output, Keypoints) else None
    return Detections(result["boxes"].cpu(), result["labels"].cpu() - 1, result["scores"].cpu(), masks, points)


def _optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """SGD with weight decay, except on the scales and shifts of norms."""
    norms = {id(weight) for part in model.modules() if isinstance(part, _NORMS) for weight in part.parameters()}
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    groups = [
        {"params": [weight for weight in weights if id(weight) not in norms], "weight_decay": 1e-4},
        {"params": [weight for weight in weights if id(weight) in norms], "weight_decay": 0.0},
    ]
    return torch.optim.SGD([group for group in groups if group["params"]], lr=0.0, momentum=0.9)
