"""What a recipe is, in the words in which papers and releases state it, so that a test can compare the two."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from vantage.branch import Branch, owners
from vantage.composition.fitting import parts_of
from vantage.encoders import Encoder, Momentum, ResNet
from vantage.estimators import JCL, InfoNCE
from vantage.memory import Bank, ClusteredBank, InBatch, Queue, ReclusteredBank
from vantage.negatives import BandRule, Draw, Rule, Subset
from vantage.positives import NearMates, Neighbors, Positives
from vantage.training.optimizers import AdamW
from vantage.training.run import Run
from vantage.views import Channels, Normalize, RandomResizedCrop, ViewMaker, WithJigsaw

IMAGENET = 1_281_167
EPOCHS, KEYS = (0, 50, 100, 199), 1_000_000  # when bands of negatives are looked at, and of how many keys they are

Course = dict[int, float]


class Band(NamedTuple):
    """Negatives by their rank."""

    rule: str
    """Its kind."""
    ranks: tuple[tuple[int, int], ...]
    """[inner, outer) of a million keys, at each of `EPOCHS`."""


@dataclass(frozen=True)
class Contrast:
    """One branch: what it compares, what it remembers, τ, and which negatives it takes."""

    memory: str
    temperature: float
    negatives: tuple[str | Band, ...] = ()
    """Rules, left to right: kinds of pairs, kinds of draws with their number and salt, or bands."""
    weight: float = 1.0
    margin: float = 0.0
    strength: float = 0.0
    """JCL's λ."""
    prior: float = 0.0
    """Debiased learning's τ⁺."""
    hardness: float = 0.0
    """HCL's β."""
    estimator: str = "InfoNCE"
    positives: str = "OtherViews"
    query: int = 0
    """The view that asks."""
    keys: tuple[int, ...] = (1,)
    """Views that answer; none, where the bank does."""
    pool: tuple[int, ...] = (1,)
    """Views that are remembered."""
    remember: str = "EachKey"
    """What is remembered of them."""
    store: int = 0
    """The branch whose memory it is."""


@dataclass(frozen=True)
class Row:
    """What is published of a method."""

    recipe: str
    course: Course
    contrasts: tuple[Contrast, ...]
    epochs: int = 200
    batch: int = 256
    momentum: float = 0.9
    decay: float = 1e-4
    excluded: str = "NoParameters"
    """What does not decay."""
    slow: float | None = None
    """Momentum of the momentum encoder."""
    trust: float | None = None
    """LARS' trust."""
    adam: bool = False
    """Whether it is Adam, whose momentum is β₁."""
    backbone: tuple[str, ...] = ("ResNet-50",)
    """The network of each encoder, and its channels where they are not three."""
    head: str = "linear"
    """From features to the 128 numbers that are compared."""
    views: tuple[str, ...] = field(kw_only=True)
    """How each view is made."""
    groups: int = 1
    """Of BatchNorm, in the joint batch."""
    shuffle: str | None = None
    """What shuffle-BN mixes."""


def row_of(run: Run, epochs: tuple[int, ...]) -> Row:
    """The row of a recipe."""
    optimizer: Any = run.optimizer
    encoders = [part for part in parts_of(run.encoders) if isinstance(part, Encoder)]
    ((head, groups),) = {(_head(encoder), encoder.normalization.groups) for encoder in encoders}
    return Row(
        recipe=run.recipe,
        course={epoch: run.learning_rate(epoch, 1, run.epochs) for epoch in epochs},
        contrasts=_contrasts(run),
        epochs=run.epochs,
        batch=run.batch_size,
        momentum=optimizer.beta1 if isinstance(optimizer, AdamW) else optimizer.momentum,
        decay=optimizer.weight_decay,
        excluded=" ".join([type(optimizer.exclude).__name__, *vars(optimizer.exclude).values()]),
        slow=run.encoders.momentum(0) if isinstance(run.encoders, Momentum) else None,
        trust=getattr(optimizer, "trust_coefficient", None),
        adam=isinstance(optimizer, AdamW),
        backbone=tuple(map(_backbone, encoders)),
        head=head,
        views=_views(run.views),
        groups=groups,
        shuffle=run.encoders.shuffle if isinstance(run.encoders, Momentum) else None,
    )


def _contrasts(run: Run) -> tuple[Contrast, ...]:
    pairs = zip(owners(run.branches), run.fit(IMAGENET).branches, strict=True)
    steps = IMAGENET // run.batch_size
    return tuple(_contrast(branch, number, run.branches[number].memory, steps) for number, branch in pairs)


def _contrast(branch: Branch, store: int, memory: object, steps: int) -> Contrast:
    estimator: Any = branch.estimator
    return Contrast(
        memory=_memory(memory),
        temperature=estimator.temperature,
        negatives=tuple(_negatives(rule, steps) for rule in branch.negatives),
        weight=branch.weight(0),
        margin=estimator.margin if isinstance(estimator, InfoNCE) else 0.0,
        strength=estimator.strength(0) if isinstance(estimator, JCL) else 0.0,
        prior=getattr(estimator, "prior", 0.0),
        hardness=getattr(estimator, "hardness", 0.0),
        estimator=type(estimator).__name__,
        positives=_positives(branch.positives, branch.negatives),
        query=branch.query,
        keys=branch.keys,
        pool=branch.pool_views,
        remember=type(branch.remember).__name__,
        store=store,
    )


def _positives(positives: Positives, negatives: tuple[Rule, ...]) -> str:
    match positives:
        case NearMates():
            return f"NearMates {positives.count}"
        case Neighbors():  # the keys that the branch's own ring drops
            assert positives.ring in negatives
            return f"Neighbors and {type(positives.own).__name__}"
    return type(positives).__name__


def _negatives(rule: Rule, steps: int) -> str | Band:
    name = type(rule).__name__
    match rule:
        case Draw() | Subset():
            return f"{name} {rule.count}" + (f" salt {rule.salt}" if rule.salt else "")
        case BandRule():
            ranks = (rule.ranks(torch.tensor([KEYS]), epoch * steps) for epoch in EPOCHS)
            return Band(name, tuple((int(inner), int(outer)) for inner, outer in ranks))
    return name


def _memory(memory: object) -> str:
    match memory:
        case Queue():
            return f"queue {memory.length}"
        case InBatch():
            return "batch"
        case Bank():
            return f"bank {_short(memory.momentum)}"
        case ClusteredBank():
            clusters = f"{memory.clusters} online clusters of {memory.smallest} from epoch {memory.first}"
            nearest = f"{type(memory.closeness).__name__} of centroids every {memory.refresh_every}"
            return f"bank {_short(memory.momentum)}, {clusters}, {nearest}, {memory.iterations} iterations"
        case ReclusteredBank():
            count = f"{memory.clusters} × {memory.clusterings} clusters of {memory.images_per_cluster}"
            clusters = f"{count} every {memory.every} from epoch {memory.first}, {type(memory.start).__name__} before"
            return f"bank {_short(memory.momentum)}, {clusters}, {memory.iterations} iterations"
    raise AssertionError(f"published.py does not know {memory}")


def _backbone(encoder: Encoder) -> str:
    """A plain residual network, as torchvision has it."""
    network = encoder.backbone
    assert isinstance(network, ResNet)
    zero, channels, times = network.zero_init_residual, network.in_channels, network.width_multiplier
    plain = ResNet(network.depth, in_channels=channels, zero_init_residual=zero, width_multiplier=times)
    assert network == plain and zero == (type(encoder.head).__name__ == "NormalizedMLP")  # SimCLR
    wide = "" if times == 1 else f" ×{_short(times)}"
    return f"ResNet-{network.depth}{wide}" + ("" if channels == 3 else f" of {channels}")


def _head(encoder: Encoder) -> str:
    """The head for images; that for the patches of a jigsaw is like it."""
    head: Any = encoder.head
    assert head.width == 128 and (encoder.jigsaw is None or encoder.jigsaw.patch == head)
    name = {"LinearHead": "linear", "MLP": "MLP", "NormalizedMLP": "normalized"}[type(head).__name__]
    return f"{name} {head.hidden}" if hasattr(head, "hidden") else name


def _views(views: ViewMaker) -> tuple[str, ...]:
    """How each view is made, without the normalization."""
    match views:
        case WithJigsaw():
            operations = (*views.jigsaw.operations, *views.jigsaw.patch_operations)
            patches = f"{views.jigsaw.cells**2} patches of {views.jigsaw.patch} of"
            return (*_views(views.views), f"{patches} {_view(views.jigsaw.crop, operations)}")
        case Channels():
            view = _view(views.view.crop, views.view.operations)
            return tuple(f"{''.join(map(str, channels))} of {view}" for channels in views.channels)
    others: Any = views
    return tuple(_view(view.crop, view.operations) for view in others.views)


def _view(crop: Any, operations: tuple[Any, ...]) -> str:
    if isinstance(crop, RandomResizedCrop):
        least, most = map(_short, crop.scale)
        whole = (most, crop.size) == ("1", 224)
        text = f"crop {least}" if whole else f"crop {least}-{most} of {crop.size}"
    else:
        text = f"{crop.size} of {crop.resize}"
    return ", ".join([text, *(_operation(one) for one in operations if not isinstance(one, Normalize))])


def _operation(one: Any) -> str:
    match type(one).__name__:
        case "ColorJitter":
            return _words("jitter", one.brightness, one.contrast, one.saturation, one.hue, one.probability)
        case "GaussianBlur":
            taps = "" if one.radius == 6 else f" of {2 * one.radius + 1}"
            return _words("blur", *one.sigma, one.probability) + taps
        case "RandAugment":
            return _words("randaugment", one.count, one.magnitude, one.spread, one.probability)
        case "InSpace":
            return type(one.space).__name__
    return _words({"Grayscale": "gray", "HorizontalFlip": "flip"}[type(one).__name__], one.probability)


def _words(name: str, *numbers: float) -> str:
    return " ".join([name, *map(_short, numbers)])


def _short(number: float) -> str:
    return f"{number:g}".removeprefix("0") or "0"
