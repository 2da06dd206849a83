"""Published recipes made small: a two-layer backbone and short memories, so that a step takes milliseconds.

Inputs come from NumPy, so that they are the same in every process and with every version of torch.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vantage.branch import owners
from vantage.encoders import BatchNorm, Encoder, Momentum, Normalization, PerView, Role, Shared
from vantage.learner import Learner
from vantage.memory import Bank, ClusteredBank, InBatch, Queue, ReclusteredBank, StoreOf
from vantage.negatives import (
    AbsoluteRing,
    Ball,
    Count,
    Draw,
    Easiest,
    Hardest,
    OtherClusters,
    OtherImages,
    OwnCluster,
    Ring,
    Share,
    Subset,
)
from vantage.positives import NearMates
from vantage.schedules import Constant, Linear
from vantage.training.run import Run
from vantage.views import Channels, Views, WithJigsaw

IMAGES = 24
"""Images of the tiny data set."""
BATCH = 8
"""Images of a step, over all processes."""
SIDE = 6
"""Pixels of a side."""


@dataclass(frozen=True)
class TwoLayers:
    """A convolution, optionally BatchNorm, and pooling: enough for batch statistics to matter."""

    normalized: bool = True
    channels: int = 3

    def build(self) -> nn.Module:
        """Images (b, c, h, w) to features (b, 10)."""
        norm = nn.BatchNorm2d(10) if self.normalized else nn.Identity()
        network = nn.Sequential(nn.Conv2d(self.channels, 10, 3), norm, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        setattr(network, "width", 10)  # noqa: B010
        return network


def _encoder(encoder: Encoder, normalization: Normalization | None) -> Encoder:
    head = _head(encoder.head)
    jigsaw = encoder.jigsaw and replace(encoder.jigsaw, patch=_head(encoder.jigsaw.patch), width=6)
    channels = getattr(encoder.backbone, "in_channels", 3)
    if normalization is not None:
        return Encoder(TwoLayers(True, channels), head, normalization, jigsaw)
    jigsaw = jigsaw and replace(jigsaw, patch=_Plain(jigsaw.patch))
    return Encoder(TwoLayers(False, channels), _Plain(head), BatchNorm(), jigsaw)


def _head(head: Any) -> Any:
    return replace(head, width=6, **({"hidden": 12} if hasattr(head, "hidden") else {}))


@dataclass(frozen=True)
class _Plain:
    """A head without its BatchNorm layers."""

    head: Any

    @property
    def width(self) -> int:
        """Width of the head."""
        return self.head.width

    def build(self, features: int) -> nn.Module:
        """The head, with BatchNorm layers replaced by nothing."""
        head = self.head.build(features)
        if isinstance(head, nn.Sequential):
            return nn.Sequential(*(part for part in head if not isinstance(part, nn.BatchNorm1d)))
        return head


def shrink(run: Run, normalization: Normalization | None) -> Run:
    """`run` with small networks and memories. `normalization` replaces the encoders' own; `None` removes BatchNorm."""
    role: Role
    match run.encoders:
        case Shared(encoder):
            role = Shared(_encoder(encoder, normalization))
        case Momentum():
            role = replace(run.encoders, encoder=_encoder(run.encoders.encoder, normalization))
        case PerView(encoders):
            role = PerView(tuple(_encoder(encoder, normalization) for encoder in encoders))
        case other:
            raise AssertionError(f"small_recipes.py cannot make {other} small")
    branches = []
    for branch in run.branches:
        match branch.memory:
            case Queue():
                memory = Queue(10)  # shorter than two batches and no multiple of one, so it wraps around
            case Bank() | InBatch() | StoreOf():
                memory = branch.memory
            case ClusteredBank():  # clusters are made after the first epoch, then refreshed and repaired
                memory = replace(branch.memory, clusters=4, refresh_every=1, smallest=3, first=1)
            case ReclusteredBank():
                memory = replace(branch.memory, clusters=5, clusterings=min(2, branch.memory.clusterings), first=1)
            case other:
                raise AssertionError(f"small_recipes.py cannot make {other} small")
        rules = []
        for rule in branch.negatives:
            match rule:
                case Draw():
                    rules.append(replace(rule, count=7))
                case Subset():
                    rules.append(replace(rule, count=20))
                case OtherImages() | OtherClusters() | OwnCluster():
                    rules.append(rule)
                case Hardest(Share()):
                    rules.append(Hardest(Share(Constant(0.6))))  # a tenth of so few images would be one
                case Hardest(Count()):
                    rules.append(Hardest(Count(12)))
                case Easiest(Share()):
                    rules.append(Easiest(Share(Constant(0.6))))
                case AbsoluteRing():
                    rules.append(AbsoluteRing(Linear(0.9, 0.4, 8), Constant(0.25)))
                case Ring():  # annealed within a few steps; a wider inner cut, since there are few keys
                    rules.append(Ring(Linear(0.9, 0.4, 8), Constant(0.25)))
                case Ball():
                    rules.append(Ball(Linear(0.9, 0.4, 8)))
                case other:
                    raise AssertionError(f"small_recipes.py cannot make {other} small")
        positives = NearMates(12) if isinstance(branch.positives, NearMates) else branch.positives
        branches.append(replace(branch, memory=memory, positives=positives, negatives=tuple(rules)))
    return replace(run, encoders=role, branches=tuple(branches))


def only(run: Run, number: int) -> Run:
    """The run with one of its branches, which owns the memory that it reads."""
    branch = replace(run.branches[number], memory=run.branches[owners(run.branches)[number]].memory)
    return replace(run, branches=(branch,))


def fill(module: nn.Module, seed: int = 0) -> None:
    """Replace the values of parameters and stored vectors by NumPy's, independent of torch's generator."""
    generator = np.random.default_rng(seed)

    def numbers(template: Tensor) -> Tensor:
        return torch.from_numpy(generator.standard_normal(tuple(template.shape))).to(template.dtype)

    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if ".slow." in name or name.startswith("slow."):
                continue
            scale = parameter[0].numel() ** -0.5 if parameter.ndim > 1 else 0.1
            offset = 1.0 if parameter.ndim == 1 and name.endswith("weight") else 0.0
            parameter.copy_(offset + scale * numbers(parameter))
        if hasattr(module, "networks") and hasattr(module.networks, "slow"):
            module.networks.slow.load_state_dict(module.networks.network.state_dict())  # pyright: ignore
        for name, buffer in module.named_buffers():
            if name.startswith("stores.") and name.endswith("vector"):
                store: Any = module.get_submodule(name.removesuffix(".vector"))
                rows = numbers(buffer.new_empty(1).expand(store.room, buffer.shape[1]))  # all rows, also of a shard
                buffer.copy_(nn.functional.normalize(rows[store.share], dim=1))


def learner(run: Run, dtype: torch.dtype = torch.float64) -> Learner:
    """The learner of a shrunk run, with values from NumPy."""
    torch.manual_seed(0)
    network = Learner(run.encoders, run.branches, images=IMAGES, seed=run.seed).to(dtype)
    fill(network)
    return network


Shapes = tuple[tuple[int, ...], ...]


def shapes(run: Run) -> Shapes:
    """The shape of an image in each view that the branches of a run use."""
    whole, views = (3, SIDE, SIDE), run.views
    shape_of_view = (whole,) * views.count
    if isinstance(views, Views):
        shape_of_view = tuple(
            whole if view.crop.size == views.views[0].crop.size else (3, 4, 4) for view in views.views
        )
    if isinstance(views, WithJigsaw):
        shape_of_view = (*shape_of_view[:-1], (views.jigsaw.cells**2, 3, 4, 4))
    if isinstance(views, Channels):
        shape_of_view = tuple((len(part), SIDE, SIDE) for part in views.channels)
    return shape_of_view[: max(branch.views for branch in run.branches)]


def batches(steps: int, views: int | Shapes, dtype: torch.dtype = torch.float64) -> list[tuple[list[Tensor], Tensor]]:
    """The views and the image numbers of each step. `views` is a number of whole images, or the shapes of the views.
    Every epoch of three steps has a new order of the same images."""
    views = ((3, SIDE, SIDE),) * views if isinstance(views, int) else views
    generator, batch_list = np.random.default_rng(7), []
    order = np.concatenate([generator.permutation(IMAGES) for _ in range(steps * BATCH // IMAGES + 1)])
    for step in range(steps):
        image = torch.from_numpy(order[step * BATCH : (step + 1) * BATCH].copy())
        tensors = [torch.from_numpy(generator.standard_normal((BATCH, *shape))).to(dtype) for shape in views]
        batch_list.append((tensors, image))
    return batch_list
