"""Ways to make a classifier from a number of labels, with and without pretraining.

k: images in a subset   m: test images   t: guesses for each image
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from jaxtyping import Bool, Int
from torch import Tensor

from vantage.data.sources.subset import SourceSubset
from vantage.data.splits import LabeledSplit, hold_out_mask
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.protocols.finetune.rate_choice import HELD_OUT, top1_held_out
from vantage.evaluate.protocols.finetune.tuning import Divergence, tune
from vantage.frozen.encoder import FrozenEncoder, random_encoder, raw_pixels
from vantage.frozen.labeled_features import LabeledFeatures, labeled_features
from vantage.studies.benefit.plan import Budget

__all__ = [
    "FROZEN", "PIXELS", "RANDOM", "SCRATCH", "TUNED", "Way", "can_choose", "is_pretrained", "all_ways",
    "train_classifier",
]  # fmt: skip

TUNED, FROZEN = "pretrained, fine-tuned", "pretrained, frozen"
SCRATCH, RANDOM, PIXELS = "from scratch", "random network, frozen", "raw pixels"
"""Names of the ways."""


@dataclass(frozen=True)
class Way:
    """One way to make a classifier from some labeled images."""

    name: str
    """Its name in tables."""

    trains: bool
    """Whether the whole network is trained, rather than a linear classifier on its features."""

    encoder: Callable[[int], FrozenEncoder]
    """Returns the network to start from, for a seed."""

    per_seed: bool = False
    """Whether each seed has a different network."""

    digest: str = ""
    """Hash of the weights if they come from elsewhere; empty for the run's own ways and the baselines."""


def all_ways(encoder: FrozenEncoder, others: Mapping[str, FrozenEncoder], network: int | None) -> tuple[Way, ...]:
    """All ways: those of the run, those without pretraining, and those of other weights by their names."""

    def scratch(seed: int) -> FrozenEncoder:
        return random_encoder(encoder.run, seed, network)

    def same(one: FrozenEncoder, seed: int) -> FrozenEncoder:
        return one

    ways = [
        Way(TUNED, True, partial(same, encoder)),
        Way(FROZEN, False, partial(same, encoder)),
        Way(SCRATCH, True, scratch, True),
        Way(RANDOM, False, scratch, True),
        Way(PIXELS, False, partial(same, raw_pixels(encoder.run, network))),
    ]
    for name, other in others.items():
        digest = other.digest()
        ways.append(Way(f"{name}, fine-tuned", True, partial(same, other), False, digest))
        ways.append(Way(f"{name}, frozen", False, partial(same, other), False, digest))
    return tuple(ways)


def is_pretrained(name: str) -> bool:
    """Whether a way starts from pretrained weights."""
    return name not in (SCRATCH, RANDOM, PIXELS)


def can_choose(label: Int[Tensor, "k"]) -> bool:
    """Whether images can be held out: whether some class has at least two."""
    return bool((label.unique(return_counts=True)[1] > 1).any())


def train_classifier(
    way: Way, seed: int, images: LabeledSplit, rows: Int[Tensor, "k"], budget: Budget, work: Work
) -> tuple[Bool[Tensor, "m"], dict[str, Any]]:
    """Train a classifier on some of the training images; returns which test images it gets right, and the settings
    chosen on images held out of that subset."""
    encoder = way.encoder(seed)
    if way.trains:
        guess, choice = _fine_tune(encoder, seed, images, rows, budget, work)
    else:
        bank, queries = labeled_features(encoder, images.train, work), labeled_features(encoder, images.test, work)
        rows = rows.to(bank.label.device)
        subset = LabeledFeatures(bank.vector[rows], bank.label[rows], images.classes)
        probe = budget.probe(seed, can_choose(bank.label[rows]))
        guess, settings = probe.guesses(subset, queries.vector, images.classes, work)
        choice = {"l2": settings["l2"]}
    return guess[:, 0].cpu() == images.test_label, choice


def _fine_tune(
    encoder: FrozenEncoder, seed: int, images: LabeledSplit, rows: Int[Tensor, "k"], budget: Budget, work: Work
) -> tuple[Int[Tensor, "m t"], dict[str, Any]]:
    """Predictions of a network trained on the subset, with the learning rate that is best on a fifth held out of it;
    if that diverges, with the next best. Ties go to the rate closest to the middle."""
    trainings, label = budget.trainings(len(rows), seed), images.label[rows]
    top1 = [0.0] * len(trainings)
    if can_choose(label) and len(trainings) > 1:
        mask = hold_out_mask(label, HELD_OUT, seed)
        top1 = [top1_held_out(one, encoder, images.train, rows, mask, work) for one in trainings]
    for number in _best_first(top1):
        one = trainings[number]
        subset = SourceSubset(images.train, rows)
        try:
            result = tune(one.schedule(1.0, seed), encoder, subset, label, images.classes, work)
        except Divergence:
            continue
        choice = {"learning_rate": one.head_learning_rate, "epochs": one.epochs, "held_out_top1": top1}
        return result.predict(encoder, images.test, work), choice
    raise UserError(f"{encoder.name} diverges at every learning rate of {budget.learning_rates}: give lower ones")


def _best_first(top1: Sequence[float]) -> list[int]:
    """Indices of the candidates, the best first. Ties go to the one closest to the middle, then to the lower one."""
    center = (len(top1) - 1) // 2
    return sorted(range(len(top1)), key=lambda number: (-top1[number], abs(number - center), number))
