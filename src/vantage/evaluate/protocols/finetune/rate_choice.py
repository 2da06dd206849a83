"""Fine-tuning that chooses the classifier's learning rate, for sets and networks that the papers did not have.

k: images that are trained on
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from jaxtyping import Bool, Int
from torch import Tensor

from vantage import draws
from vantage.data.sources.source import Source
from vantage.data.sources.subset import SourceSubset
from vantage.data.splits import LabeledSplit, hold_out_mask
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.protocols.finetune.finetune import FineTune, mean_and_spread
from vantage.evaluate.protocols.finetune.tuning import Divergence
from vantage.evaluate.result import Outcome
from vantage.frozen.encoder import FrozenEncoder

__all__ = ["HELD_OUT", "FineTuneChosen", "top1_held_out"]

HELD_OUT = 0.2
"""Share of each class of a sample that is held out to choose."""


@dataclass(frozen=True)
class FineTuneChosen:
    """As `FineTune`, with the classifier's learning rate chosen without test labels.

    No paper does so: name this protocol beside its numbers.

    A fifth of each class of every sample is held out, at least one image but never the last. Copies are trained on the
    rest at every rate; the rate with the best top-1 on the held-out images (the lowest, if several tie) trains on the
    whole sample. A training run that diverges counts as 0 %. Every rate costs one more training run for each sample. It
    is an error if no class has two images in a sample.
    """

    name: ClassVar[str] = "finetune-chosen"
    version: ClassVar[int] = 1

    fraction: float = 0.1
    """Share of each class that is trained on, at least one image; 1 for all."""
    samples: int = 1
    """Independent draws of the share; with several, mean and standard deviation are reported."""
    epochs: int = 20
    """Passes over the images."""
    batch_size: int = 256
    """Images per step; learning rates are not scaled by it. Batches of an epoch are as equal in size as possible."""
    backbone_learning_rate: float = 0.01
    """Learning rate of the backbone."""
    head_learning_rates: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0)
    """Learning rates of the classifier to choose from."""
    weight_decay: float | None = None
    """L2 penalty of all parameters. If omitted, the paper's: 5e-4 for less than 5 % of a set's images, else 1e-4."""
    smallest_area: float = 0.08
    """Smallest share of the image that a crop covers."""
    seed: int = 0
    """Seed of the share, the held-out images, the order, the crops and the classifier's start."""

    def __post_init__(self) -> None:
        if len(set(self.head_learning_rates)) < max(2, len(self.head_learning_rates)) or self.samples < 1:
            raise UserError(
                f"{self.name}: head_learning_rates is {self.head_learning_rates} and samples {self.samples}; give two"
                " or more different rates to choose from (for one rate use finetune) and at least 1 sample"
            )
        if self.samples > 1 and self.fraction == 1:
            raise UserError(
                f"{self.name}: samples is {self.samples}, but with fraction 1 every sample has all images: give one"
                " sample, or a smaller fraction"
            )
        for rate in self.head_learning_rates:
            self._single(rate, self.seed)

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Choose and train on images of `train`, evaluate on `test`. The cache keeps every finished training
        run, so a stopped evaluation continues."""
        train, label, _, _ = LabeledSplit.of(train, test)
        outcomes: list[Outcome] = []
        rates: list[float] = []
        top1: list[list[float]] = []
        count = 0
        for sample in range(self.samples):
            seed = draws.mix(self.seed, sample) if sample else self.seed
            single = self._single(self.head_learning_rates[0], seed)
            rows, decay = single.first_sample(train, label)
            mask = hold_out_mask(label[rows], HELD_OUT, seed, "finetune, whose rates are given")
            count = int(mask.sum())
            single = replace(single, weight_decay=decay)
            trials = [replace(single, head_learning_rate=rate) for rate in self.head_learning_rates]
            top1.append([top1_held_out(trial, encoder, train, rows, mask, work) for trial in trials])
            _, best = min(zip(top1[-1], self.head_learning_rates, strict=True), key=lambda pair: (-pair[0], pair[1]))
            rates.append(best)
            outcomes.append(replace(single, head_learning_rate=best)(encoder, train, test, work))
        by = f"top-1, on {count} of the {outcomes[0].train_images} training images, of copies trained on the others"
        choice: dict[str, Any] = {
            "head_learning_rate": rates,
            "by": by,
            "head_learning_rates": list(self.head_learning_rates),
        }
        details = {
            "samples": [outcome.details["samples"][0] for outcome in outcomes],
            "losses": [outcome.details["losses"][0] for outcome in outcomes],
            "held_out_accuracy": top1,
        }
        measures = mean_and_spread([dict(outcome.measures) for outcome in outcomes])
        how = {**outcomes[0].how, "held_out_to_choose": HELD_OUT}
        return Outcome(measures, outcomes[0].train_images, outcomes[0].test_images, choice, details, how)

    def _single(self, rate: float, seed: int) -> FineTune:
        """One training run on one sample."""
        return FineTune(
            self.fraction, "", 1, self.epochs, self.batch_size, self.backbone_learning_rate, rate, self.weight_decay,
            self.smallest_area, seed,
        )  # fmt: skip


def top1_held_out(
    protocol: FineTune,
    encoder: FrozenEncoder,
    train: Source,
    rows: Int[Tensor, "k"],
    mask: Bool[Tensor, "k"],
    work: Work,
) -> float:
    """Top-1, in percent, on the images in the mask, of a copy trained on the others."""
    rest, test = SourceSubset(train, rows[~mask]), SourceSubset(train, rows[mask])
    try:
        return replace(protocol, fraction=1.0)(encoder, rest, test, work).accuracy.top1
    except Divergence as problem:
        work.progress.line(f"head_learning_rate {protocol.head_learning_rate:g}: {problem}")
        return 0.0
