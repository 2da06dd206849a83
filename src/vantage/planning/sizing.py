"""Fit a recipe to a network, a number of images and a number of epochs, by fixed rules and the user's overrides."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from vantage.composition.fields import replace_at
from vantage.composition.fitting import change_all, everywhere, parts_of
from vantage.data.order import steps_in
from vantage.encoders import (
    Backbone,
    BatchNorm,
    Convolutions,
    Encoder,
    Momentum,
    ResNet,
    ResNet9,
    SplitBatchNorm,
    with_backbone,
)
from vantage.encoders.backbone_names import SMALL
from vantage.errors import UserError
from vantage.estimators import InfoNCE
from vantage.memory import Bank, ClusteredBank, LabeledBank, ReclusteredBank
from vantage.planning.ladder import Rung
from vantage.recipes import moco_v2, simclr, with_small_crops
from vantage.schedules import Constant
from vantage.training.optimizers import LARS, SGD
from vantage.training.run import Run
from vantage.training.start.epochs import count_epochs
from vantage.training.start.try_parts import check_groups
from vantage.views import ProgressiveResizing

__all__ = [
    "PlanOptions",
    "check_parts",
    "compose",
    "early_changes",
    "growing_views",
    "least_epochs",
    "override",
    "default_recipe",
    "fit_run",
    "set_early",
    "with_network",
]

_EARLY = ("data", "hardware", "monitoring", "accumulate")
"""Fields that are set before a run is fitted, because the batch size depends on them."""

_ANY_SIZE = (Convolutions, ResNet, ResNet9)  # a user's network may take views of one size only
_FEW_STEPS = 10_000
_SHORT_LEARNING_RATE = 0.12  # for SGD at a batch size of 256
_SHORT_TAU = 0.2
_SMALL_VIEWS, _SMALL_SCALE = 2, (0.1, 0.4)  # half the side of a view, and the shares of the image that they show
_LEAST_GROWN = 32  # pixels; half of a smaller size is too small for a network that halves its maps four times
_SHORT_LARS = 0.2  # for the SGD that replaces LARS


def default_recipe(size: int = 224) -> Run:
    """The recipe of a plan that names none. Up to 96 pixels: SimCLR with τ = 0.2 and SGD at 0.4, on views that grow
    from half their size to full size, with two small views as further queries. Above: MoCo v2, since larger networks
    leave no memory for large batches, and its queue needs none.

    For the same few minutes on a CPU, τ = 0.2 is better than SimCLR's 0.5, growing views are better than full-size
    ones, a learning rate of 0.4 is better than 0.2 and 0.8, and two small views are better than none
    (`benchmarks/choices.py`, on held-out training images).
    """
    if size > SMALL:
        return moco_v2(size)
    run = simclr(size)
    branches = everywhere(run.branches, lambda part: InfoNCE(_SHORT_TAU) if isinstance(part, InfoNCE) else part)
    run = replace(run, branches=branches, resizing=growing_views(size), optimizer=SGD(weight_decay=1e-4))
    return with_small_crops(run, _SMALL_VIEWS, size // 2, _SMALL_SCALE) if run.resizing else run


def growing_views(size: int) -> ProgressiveResizing | None:
    """Views that grow from half of `size` to `size` pixels; None below 32 pixels, and above 96, where the gain was not
    measured."""
    sides = (size // 2, 3 * size // 4)
    return ProgressiveResizing(sides, (0.5, 0.75)) if _LEAST_GROWN <= size <= SMALL else None


@dataclass(frozen=True)
class PlanOptions:
    """The choices made before planning."""

    recipe: Callable[[int], Run] = default_recipe
    """The recipe, as a function of the view size."""

    size: int | None = None
    """Side of a view in pixels; if omitted, the plan chooses it."""

    keep_network: bool = False
    """Whether to keep the recipe's network."""

    keep_recipe: bool = False
    """Whether the recipe was named: its views are then kept, even if the images have no mirror symmetry, and so is one
    group of BatchNorm, even if accumulated parts cannot share it."""

    keep_optimizer: bool = False
    """Whether to keep the recipe's optimizer, even for a short run."""

    changes: Callable[[Run], Mapping[str, Any]] = lambda run: {}
    """Values by path that override the plan, for a run with this composition."""


def compose(options: PlanOptions, rung: Rung) -> Run:
    """The recipe at a rung, not fitted yet, with growing views, and with the user's data and hardware settings.

    Growing views leave the method as it is. In two minutes of CIFAR-10 (JPEG) they give MoCo v2 8.4 points of kNN more
    on held-out training images (one seed, `benchmarks/choices.py`).
    """
    run = options.recipe(rung.size)
    if run.resizing is None:
        run = replace(run, resizing=growing_views(rung.size))
    if rung.backbone is not None:
        run = with_network(run, rung.backbone)
    if any(not isinstance(part.backbone, _ANY_SIZE) for part in parts_of(run.encoders) if isinstance(part, Encoder)):
        run = replace(run, resizing=None)
    run = set_early(run, early_changes(options.changes(run)))
    return run if options.keep_recipe else _with_a_group_for_each_part(run)


def _with_a_group_for_each_part(run: Run) -> Run:
    """The run with as many groups of BatchNorm as accumulated parts, where there is one: parts cannot share it."""
    if run.accumulate == 1:
        return run
    groups = SplitBatchNorm(run.accumulate)
    return replace(run, encoders=change_all(run.encoders, BatchNorm, lambda _: groups))


def set_early(run: Run, early: Mapping[str, Any]) -> Run:
    """The run with its early changes. If its batch does not divide into the parts that they ask for, it becomes the
    next smaller one that does, since a batch of 256 has no thirds; a batch of the user's own is set later."""
    sizes = {f"hardware.{name}": getattr(run.hardware, name) for name in ("devices", "nodes")}
    sizes["accumulate"] = run.accumulate
    parts = max(1, math.prod(early.get(path, size) for path, size in sizes.items()))
    batch_size = max(1, run.batch_size // parts) * parts
    fitting_run = run if batch_size == run.batch_size else run.rescale(batch_size)
    return replace_at(fitting_run, early)


def early_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes that must be applied before a run is fitted."""
    return {path: value for path, value in changes.items() if path.partition(".")[0] in _EARLY}


def check_parts(run: Run, changes: Mapping[str, Any]) -> None:
    """Raises `UserError` if accumulated parts and processes cannot have equal shares of the groups of BatchNorm,
    however many images the run, which is not fitted yet, is fitted to before these changes."""
    early, batch_size = set_early(run, early_changes(changes)), changes.get("batch_size")
    if early.parts == 1:
        return
    encoders = {path: value for path, value in changes.items() if path.partition(".")[0] == "encoders"}
    sizes = [batch_size or early.batch_size]
    while not batch_size and sizes[-1] >= 2 * early.parts:  # all that `Run.fit` could choose
        sizes.append(sizes[-1] // 2)
    refusals = [_refusal(replace_at(early.fit(8 * size, batch_size), encoders)) for size in sizes]
    if first := all(refusals) and refusals[0]:
        raise first


def _refusal(run: Run) -> UserError | None:
    """Why `check_groups` refuses a run; None if it does not."""
    try:
        check_groups(run)
    except UserError as problem:
        return problem


def with_network(run: Run, backbone: Backbone) -> Run:
    """The run with every encoder on another backbone; the heads are adapted to it."""
    encoders = everywhere(
        run.encoders, lambda part: with_backbone(part, backbone) if isinstance(part, Encoder) else part
    )
    return replace(run, encoders=encoders)


def override(run: Run, changes: Mapping[str, Any], images: int | None = None) -> Run:
    """Apply the user's values to a run that is fitted to `images` images; the learning rate follows batch size and
    epochs."""
    resized_run = run.rescale(changes.get("batch_size"), changes.get("epochs"))
    changed_run = replace_at(resized_run if {"batch_size", "epochs"} & set(changes) else run, changes)
    return changed_run if images is None else count_epochs(changed_run, images)


def least_epochs(run: Run) -> int:
    """The number of epochs below which a plan uses fewer images: 5, to leave room for a warm-up; 10 with a bank of all
    images, whose rows mean little until they have been written several times."""
    banks = any(
        isinstance(part, Bank | ClusteredBank | LabeledBank | ReclusteredBank) for part in parts_of(run.branches)
    )
    return 10 if banks else 5


def fit_run(options: PlanOptions, base: Run, images: int, epochs: int) -> Run:
    """A run fitted to `images` images and set to `epochs` epochs, unless the user chose another number.

    `Run.fit` fits batch size, queue, negatives and clusters to the images; schedules in epochs are stretched. Short
    runs (below 10,000 steps) change in three more ways: the momentum encoder catches up within a tenth of the run (its
    momentum is at most 1 − 10 / steps); SGD has a learning rate of at least 0.12 for a batch size of 256, after a
    warm-up; and LARS, which needs many steps, is replaced by SGD at 0.2.
    """
    changes = options.changes(base)
    epochs = changes.get("epochs", epochs)
    run = override(base.fit(images, changes.get("batch_size")), changes).rescale(None, epochs)
    steps = epochs * steps_in(images, run.batch_size)
    run = replace(run, encoders=everywhere(run.encoders, lambda part: _shorten_momentum(part, steps)))
    if steps < _FEW_STEPS:
        run = _short(run, options.keep_optimizer)
    return count_epochs(replace_at(run, options.changes(run)), images)


def _shorten_momentum(part: Any, steps: int) -> Any:
    """A momentum encoder that catches up within a tenth of the run, if its momentum is constant."""
    if isinstance(part, Momentum) and isinstance(part.momentum, Constant):
        return replace(part, momentum=Constant(min(part.momentum.value, max(0.5, 1 - 10 / steps))))
    return part


def _short(run: Run, keep_optimizer: bool) -> Run:
    """The run with a learning rate, a warm-up and an optimizer for few steps; see `fit_run`."""
    learning_rate: Any = run.learning_rate  # a user's own may have no `base`, no warm-up and no milestones
    optimizer, base = run.optimizer, getattr(learning_rate, "base", 0.0) * 256 / run.batch_size
    if isinstance(optimizer, LARS) and not keep_optimizer:
        optimizer = SGD(optimizer.momentum, optimizer.weight_decay)
        learning_rate = learning_rate.scale(_SHORT_LARS / base) if base else learning_rate
    elif isinstance(optimizer, SGD) and 0 < base < _SHORT_LEARNING_RATE:
        learning_rate = learning_rate.scale(_SHORT_LEARNING_RATE / base)
    if isinstance(optimizer, SGD) and getattr(learning_rate, "warmup_epochs", None) == 0 and run.epochs >= 4:
        milestones = getattr(learning_rate, "milestones", ()) or (run.epochs,)
        warmup_epochs = min(max(1, round(0.05 * run.epochs)), milestones[0])
        learning_rate = replace(learning_rate, warmup_epochs=warmup_epochs)
    return replace(run, optimizer=optimizer, learning_rate=learning_rate)
