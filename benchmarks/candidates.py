"""Candidates of `choices.py`: recipes that a plan could use, and the network of each."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from vantage import Decoupled, Run, with_small_crops
from vantage.composition.fields import replace_at
from vantage.composition.fitting import everywhere
from vantage.encoders import Backbone, Convolutions, ResNet9
from vantage.estimators import Estimator
from vantage.recipes import interclr, moco_v1, moco_v2, simclr
from vantage.training.optimizers import SGD, AdamW, Optimizer
from vantage.views import Augmentation, ProgressiveResizing, Views, moco_v2_views
from vantage.views.operations.color import ColorJitter
from vantage.views.operations.crops import RandomResizedCrop
from vantage.views.operations.flip import HorizontalFlip

GROWING = ProgressiveResizing((16, 24), (0.5, 0.75))
NARROW, WIDE, FOUR = ResNet9(16), ResNet9(16, features=256), Convolutions()
Recipe = Callable[[int], Run]


def at_temperature(recipe: Recipe, temperature: float, size: int) -> Run:
    """A recipe at another temperature."""
    run = recipe(size)
    return replace_at(run, {f"branches.{n}.estimator.temperature": temperature for n in range(len(run.branches))})


def at_batch_size(recipe: Recipe, batch_size: int, size: int) -> Run:
    """A recipe with another batch size, at the learning rate that belongs to it."""
    return recipe(size).rescale(batch_size)


def with_views_of(views: Callable[[int, int], Views], recipe: Recipe, size: int) -> Run:
    """A recipe that sees one view of each image, made as another method makes it."""
    return replace(recipe(size), views=views(size, 1))


def with_operations(change: Callable[[Any], Any], recipe: Recipe, size: int) -> Run:
    """A recipe whose views lack the operations for which `change` returns None, and change the others."""
    run = recipe(size)

    def other(augmentation: Augmentation) -> Augmentation:
        changed = (change(operation) for operation in (augmentation.crop, *augmentation.operations))
        crop, *operations = (operation for operation in changed if operation is not None)
        return Augmentation(crop, tuple(operations))

    views = everywhere(run.views, lambda part: other(part) if isinstance(part, Augmentation) else part)
    return replace(run, views=views)


def larger_crops(area: float, operation: Any) -> Any:
    """Crops that take at least this share of the image."""
    return replace(operation, scale=(area, 1.0)) if isinstance(operation, RandomResizedCrop) else operation


def less_jitter(share: float, operation: Any) -> Any:
    """Jitter of color at a share of its strength."""
    if not isinstance(operation, ColorJitter):
        return operation
    values = {name: share * getattr(operation, name) for name in ("brightness", "contrast", "saturation", "hue")}
    return replace(operation, **values)


def with_estimator(estimator: Estimator, recipe: Recipe, size: int) -> Run:
    """A recipe with another loss."""
    run = recipe(size)
    return replace(run, branches=tuple(replace(branch, estimator=estimator) for branch in run.branches))


def with_small_views(count: int, recipe: Recipe, size: int) -> Run:
    """A recipe with more queries: views of half the side, which show a tenth to four tenths of the image."""
    return with_small_crops(recipe(size), count, size // 2, (0.1, 0.4))


def on_squares(side: int, recipe: Recipe, size: int) -> Run:
    """A recipe on images that are kept as squares of this side, in pixels."""
    return replace_at(recipe(size), {"data.resident_side": side})


def full_size(recipe: Recipe, size: int) -> Run:
    """A recipe whose views do not grow."""
    return replace(recipe(size), resizing=None)


def no_flip(operation: Any) -> Any:
    """All but flips."""
    return None if isinstance(operation, HorizontalFlip) else operation


def with_optimizer(optimizer: Optimizer, rate: float, recipe: Recipe, size: int) -> Run:
    """A recipe with another optimizer, at its learning rate (for a batch of 256)."""
    return replace(replace_at(recipe(size), {"learning_rate.base": rate}), optimizer=optimizer)


def with_growing_views(recipe: Recipe, size: int) -> Run:
    """A recipe whose views grow."""
    return replace(recipe(size), resizing=GROWING)


def at_learning_rate(recipe: Recipe, rate: float, size: int) -> Run:
    """A recipe at another learning rate (for a batch of 256)."""
    return replace(replace_at(recipe(size), {"learning_rate.base": rate}), optimizer=SGD(weight_decay=1e-4))


def growing_later(recipe: Recipe, size: int) -> Run:
    """A recipe whose views stay small for a longer share of the run."""
    return replace(recipe(size), resizing=ProgressiveResizing((16, 24), (0.6, 0.85)))


PAIRS: Recipe = partial(with_growing_views, partial(at_learning_rate, partial(at_temperature, simclr, 0.2), 0.4))
"""The plan's recipe without its small views."""

CHOICES: dict[str, tuple[Recipe, Backbone]] = {
    "SimCLR, τ .5": (simclr, NARROW),
    "SimCLR, τ .2": (partial(at_temperature, simclr, 0.2), NARROW),
    "SimCLR, τ .1": (partial(at_temperature, simclr, 0.1), NARROW),
    "SimCLR, τ .5, growing views": (partial(with_growing_views, simclr), NARROW),
    "SimCLR, τ .2, growing views": (partial(with_growing_views, partial(at_temperature, simclr, 0.2)), NARROW),
    "SimCLR, τ .1, growing views": (partial(with_growing_views, partial(at_temperature, simclr, 0.1)), NARROW),
    "SimCLR, τ .2, growing views, rate .4": (PAIRS, NARROW),
    "the plan: the same, 256 features": (PAIRS, WIDE),
    "the same, 512 features": (PAIRS, replace(NARROW, features=512)),
    "the plan, batch 128": (partial(at_batch_size, PAIRS, 128), WIDE),
    "the plan, batch 512": (partial(at_batch_size, PAIRS, 512), WIDE),
    "the plan, crops from .35": (partial(with_operations, partial(larger_crops, 0.35), PAIRS), WIDE),
    "the plan, half the jitter": (partial(with_operations, partial(less_jitter, 0.5), PAIRS), WIDE),
    "the plan, twice the jitter": (partial(with_operations, partial(less_jitter, 2.0), PAIRS), WIDE),
    "the plan, decay 5e-4": (partial(with_optimizer, SGD(weight_decay=5e-4), 0.4, PAIRS), WIDE),
    "the plan, momentum .95": (partial(with_optimizer, SGD(0.95, 1e-4), 0.2, PAIRS), WIDE),
    "the plan, AdamW at .002": (partial(with_optimizer, AdamW(), 0.002, PAIRS), WIDE),
    "the plan, no flip": (partial(with_operations, no_flip, PAIRS), WIDE),
    "the plan, no flip, crops from .35": (
        partial(with_operations, lambda one: no_flip(larger_crops(0.35, one)), PAIRS),
        WIDE,
    ),
    "the plan, decoupled": (partial(with_estimator, Decoupled(0.2), PAIRS), WIDE),
    "the plan, decoupled, τ .1, rate .2": (
        partial(with_optimizer, SGD(weight_decay=1e-4), 0.2, partial(with_estimator, Decoupled(0.1), PAIRS)),
        WIDE,
    ),
    "the plan, two small views": (partial(with_small_views, 2, PAIRS), WIDE),
    "the plan, two small views, 128 features": (partial(with_small_views, 2, PAIRS), NARROW),
    "the plan, two small views, batch 128": (
        partial(at_batch_size, partial(with_small_views, 2, PAIRS), 128),
        WIDE,
    ),
    "the plan, two small views, squares of 64": (
        partial(on_squares, 64, partial(with_small_views, 2, PAIRS)),
        WIDE,
    ),
    **{
        f"the plan, two small views, τ {text}": (
            partial(at_temperature, partial(with_small_views, 2, PAIRS), float(text)),
            WIDE,
        )
        for text in (".07", ".1", ".15")
    },
    "the plan, two small views, growing later": (
        partial(growing_later, partial(with_small_views, 2, PAIRS)),
        WIDE,
    ),
    "the plan, one small view": (partial(with_small_views, 1, PAIRS), WIDE),
    "the plan, four small views": (partial(with_small_views, 4, PAIRS), WIDE),
    "the plan, two small views, no flip": (
        partial(with_operations, no_flip, partial(with_small_views, 2, PAIRS)),
        WIDE,
    ),
    "the plan, two small views, full size": (
        partial(full_size, partial(with_small_views, 2, PAIRS)),
        WIDE,
    ),
    "SimCLR, τ .1, growing views, rate .4": (
        partial(with_growing_views, partial(at_learning_rate, partial(at_temperature, simclr, 0.1), 0.4)),
        NARROW,
    ),
    "SimCLR, τ .2, growing views, rate .8": (
        partial(with_growing_views, partial(at_learning_rate, partial(at_temperature, simclr, 0.2), 0.8)),
        NARROW,
    ),
    "SimCLR, τ .2, four convolutions": (partial(at_temperature, simclr, 0.2), FOUR),
    "the plan's recipe, four convolutions": (PAIRS, FOUR),
    "MoCo v2, τ .2": (moco_v2, NARROW),
    "MoCo v1, τ .07": (moco_v1, NARROW),
    "MoCo v2, growing views": (partial(with_growing_views, moco_v2), NARROW),
    "MoCo v2, rate .4": (partial(at_learning_rate, moco_v2, 0.4), NARROW),
    "MoCo v2, growing views, rate .4": (
        partial(with_growing_views, partial(at_learning_rate, moco_v2, 0.4)),
        NARROW,
    ),
    "MoCo v2, growing views, batch 64": (partial(with_growing_views, partial(at_batch_size, moco_v2, 64)), NARROW),
    "InterCLR": (interclr, NARROW),
    "InterCLR, growing views": (partial(with_growing_views, interclr), NARROW),
    "InterCLR, growing views, MoCo v2's augmentation": (
        partial(with_growing_views, partial(with_views_of, moco_v2_views, interclr)),
        NARROW,
    ),
    "InterCLR, growing views, rate .4": (
        partial(with_growing_views, partial(at_learning_rate, interclr, 0.4)),
        NARROW,
    ),
    "InterCLR, growing views, batch 64": (partial(with_growing_views, partial(at_batch_size, interclr, 64)), NARROW),
    "InterCLR, growing views, batch 64, rate .4": (
        partial(with_growing_views, partial(at_batch_size, partial(at_learning_rate, interclr, 0.4), 64)),
        NARROW,
    ),
}
"""Recipe and network of each choice; all at 32 px with batches of 256, by SGD at the rate of short plans (.2) unless
another is named."""
