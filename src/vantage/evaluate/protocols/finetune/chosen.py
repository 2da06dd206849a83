"""Fine-tuning whose classifier has a rate of its own choice, for sets and networks that the papers did not have.

k: images that are trained on
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from jaxtyping import Bool, Int
from torch import Tensor

from vantage import draws
from vantage.data.sources.source import Source, SourceSubset
from vantage.data.splits import check_classes, held_out, with_labels
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.protocols.finetune.finetune import FineTune, mean_and_spread
from vantage.evaluate.protocols.finetune.tuning import Diverged
from vantage.evaluate.result import Outcome
from vantage.frozen.encoder import FrozenEncoder

__all__ = ["FineTuneChosen"]

_HELD_OUT = 0.2


@dataclass(frozen=True)
class FineTuneChosen:
    """As `FineTune`, with the classifier's rate chosen without test labels, which no paper does: name it with its
    numbers.

    Of every sample a fifth of each class is held out, at least one image but never the last; copies are trained on the
    rest at every rate, and that of the best top-1 on the images held out (of equal ones the lowest) is taken to train
    on all of the sample. A rate at which the training diverges has none right. Costs as many trainings more as there
    are rates. Raises `UserError` where no class has two images in a sample.
    """

    name: ClassVar[str] = "finetune-chosen"
    version: ClassVar[int] = 1

    fraction: float = 0.1
    """Share of the images of each class that are trained on, at least one; 1 for all."""
    samples: int = 1
    """Independent draws of the share; with several, mean and standard deviation are told."""
    epochs: int = 20
    """Passes over the images."""
    batch_size: int = 256
    """Images of a step; rates are not scaled by it. Batches of an epoch are of one size as far as possible."""
    backbone_learning_rate: float = 0.01
    """Learning rate of the backbone."""
    head_learning_rates: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0)
    """Learning rates of the classifier to choose from."""
    weight_decay: float | None = None
    """L2 penalty of all parameters; none: the paper's, 5e-4 for less than 5 % of the images of a set, else 1e-4."""
    smallest_area: float = 0.08
    """Least share of the image that a crop takes."""
    seed: int = 0
    """Of the share, the images held out, the order, the crops and the classifier's start."""

    def __post_init__(self) -> None:
        if len(set(self.head_learning_rates)) < max(2, len(self.head_learning_rates)) or self.samples < 1:
            raise UserError(
                f"{self.name}: head_learning_rates is {self.head_learning_rates} and samples {self.samples}; give two"
                " or more different rates to choose from (finetune has one) and at least 1 sample"
            )
        if self.samples > 1 and self.fraction == 1:
            raise UserError(
                f"{self.name}: {self.samples} samples were asked for of all images, which are the same each time: ask"
                " for one sample, or for a fraction"
            )
        for rate in self.head_learning_rates:
            self._alone(rate, self.seed)

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Choose and train on images of `train`, count on `test`. What is done is kept in the cache, training by
        training, so that a stopped evaluation goes on."""
        train, label = with_labels(train)
        check_classes(label, with_labels(test)[1], test.classes)
        outcomes: list[Outcome] = []
        rates: list[float] = []
        known: list[list[float]] = []
        count = 0
        for sample in range(self.samples):
            seed = draws.mix(self.seed, sample) if sample else self.seed
            alone = self._alone(self.head_learning_rates[0], seed)
            rows, decay = alone.drawn(train, label)
            held = held_out(label[rows], _HELD_OUT, seed)
            count = int(held.sum())
            alone = replace(alone, weight_decay=decay)
            tries = [replace(alone, head_learning_rate=rate) for rate in self.head_learning_rates]
            known.append([_top1_held_out(one, encoder, train, rows, held, work) for one in tries])
            best = min(zip(known[-1], self.head_learning_rates, strict=True), key=lambda one: (-one[0], one[1]))
            rates.append(best[1])
            outcomes.append(replace(alone, head_learning_rate=best[1])(encoder, train, test, work))
        by = f"top-1 on {count} of the {outcomes[0].train_images} training images, held out of other copies"
        chosen: dict[str, Any] = {
            "head_rate": rates,
            "by": by,
            "head_rates": list(self.head_learning_rates),
        }
        details = {
            "samples": [outcome.details["samples"][0] for outcome in outcomes],
            "losses": [outcome.details["losses"][0] for outcome in outcomes],
            "held_out_accuracy": known,
        }
        measures = mean_and_spread([dict(outcome.measures) for outcome in outcomes])
        how = {**outcomes[0].how, "held_out_to_choose": _HELD_OUT}
        return Outcome(measures, outcomes[0].train_images, outcomes[0].test_images, chosen, details, how)

    def _alone(self, rate: float, seed: int) -> FineTune:
        """One training of one sample."""
        return FineTune(
            self.fraction, "", 1, self.epochs, self.batch_size, self.backbone_learning_rate, rate, self.weight_decay,
            self.smallest_area, seed,
        )  # fmt: skip


def _top1_held_out(
    protocol: FineTune,
    encoder: FrozenEncoder,
    train: Source,
    rows: Int[Tensor, "k"],
    held: Bool[Tensor, "k"],
    work: Work,
) -> float:
    """Top-1 on the images held out, in percent, of a copy trained on the others."""
    rest, asked = SourceSubset(train, rows[~held]), SourceSubset(train, rows[held])
    try:
        return replace(protocol, fraction=1.0)(encoder, rest, asked, work).accuracy.top1
    except Diverged as problem:
        work.progress.line(f"head_learning_rate {protocol.head_learning_rate:g}: {problem}")
        return 0.0
