"""Ways to use some labels, with pretraining and without, and what each is worth.

n: training images   k: those of a subset   m: test images   t: guesses an image
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from jaxtyping import Bool, Int
from torch import Tensor

from vantage.data.sources.source import Source, SourceSubset
from vantage.data.splits import hold_out_mask
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.protocols.features import LabeledFeatures, labeled_features
from vantage.evaluate.protocols.finetune.chosen import HELD_OUT, top1_held_out
from vantage.evaluate.protocols.finetune.tuning import Divergence, tune
from vantage.frozen.encoder import FrozenEncoder, random_encoder, raw_pixels
from vantage.studies.benefit.plan import Budget

__all__ = [
    "FROZEN", "PIXELS", "RANDOM", "SCRATCH", "TUNED", "Labeled", "Way", "can_choose", "is_pretrained", "ways_of",
    "worth",
]  # fmt: skip

TUNED, FROZEN = "pretrained, fine-tuned", "pretrained, frozen"
SCRATCH, RANDOM, PIXELS = "from scratch", "random network, frozen", "raw pixels"
"""What the ways are called."""


@dataclass(frozen=True)
class Way:
    """One way to make a classifier of some labeled images."""

    name: str
    """What tables call it."""

    trains: bool
    """Whether the whole network is trained; otherwise a linear classifier on its features."""

    encoder: Callable[[int], FrozenEncoder]
    """The network that it starts from, by the seed."""

    seeded: bool = False
    """Whether that network is another one for each seed."""

    digest: str = ""
    """Hash of weights that are not those of the run; empty for the others."""


def ways_of(encoder: FrozenEncoder, others: Mapping[str, FrozenEncoder], network: int | None) -> tuple[Way, ...]:
    """All ways: those of the run, those without pretraining, and those of other weights, by their names."""

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
    """Whether a way begins with weights that were trained before."""
    return name not in (SCRATCH, RANDOM, PIXELS)


def can_choose(label: Int[Tensor, "k"]) -> bool:
    """Whether an image can be held out: a class has two."""
    return bool((label.unique(return_counts=True)[1] > 1).any())


@dataclass(frozen=True)
class Labeled:
    """Labeled images to make classifiers of, and to judge them by."""

    train: Source
    """Images to train on."""
    label: Int[Tensor, "n"]
    """Their classes."""
    test: Source
    """Images to score on."""
    test_label: Int[Tensor, "m"]
    """Their classes, which only score."""

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return max(len(self.test.classes), int(self.label.max()) + 1, int(self.test_label.max()) + 1)


def worth(
    way: Way, seed: int, images: Labeled, rows: Int[Tensor, "k"], budget: Budget, work: Work
) -> tuple[Bool[Tensor, "m"], dict[str, Any]]:
    """Which test images a classifier made of some of the training images gets right; and what was chosen on images held
    out of those."""
    encoder = way.encoder(seed)
    if way.trains:
        guess, chosen = _trained(encoder, seed, images, rows, budget, work)
    else:
        bank, queries = labeled_features(encoder, images.train, work), labeled_features(encoder, images.test, work)
        rows = rows.to(bank.label.device)
        subset = LabeledFeatures(bank.vector[rows], bank.label[rows], images.classes)
        probe = budget.probe(seed, can_choose(bank.label[rows]))
        guess, how = probe.guesses(subset, queries.vector, images.classes, work)
        chosen = {"l2": how["l2"]}
    return guess[:, 0].cpu() == images.test_label, chosen


def _trained(
    encoder: FrozenEncoder, seed: int, images: Labeled, rows: Int[Tensor, "k"], budget: Budget, work: Work
) -> tuple[Int[Tensor, "m t"], dict[str, Any]]:
    """Guesses of a network trained on the subset, at the learning rate that was best on a fifth held out of it (the one
    nearest to the middle of equals), or else at the next best that does not diverge."""
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
        chosen = {"learning_rate": one.head_learning_rate, "epochs": one.epochs, "held_out_top1": top1}
        return result.predict(encoder, images.test, work), chosen
    raise UserError(f"{encoder.name} diverges at every learning rate of {budget.learning_rates}: give lower ones")


def _best_first(top1: Sequence[float]) -> list[int]:
    """Numbers of the candidates, the best first; of equals the one nearest to the middle, the lower of two."""
    center = (len(top1) - 1) // 2
    return sorted(range(len(top1)), key=lambda number: (-top1[number], abs(number - center), number))
