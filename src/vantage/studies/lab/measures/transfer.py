"""Accuracies beyond the full labels of a cell's own set: on other sets, and with few labels."""

from dataclasses import dataclass, field, replace
from statistics import fmean

from vantage import draws
from vantage.data import SourceSubset
from vantage.evaluate import FineTune, LinearCached, LowShotChosen
from vantage.studies.lab.contracts import Subject
from vantage.training.run import Data

__all__ = ["FewShotAccuracy", "FineTunedAccuracy", "TransferAccuracy"]


@dataclass(frozen=True)
class TransferAccuracy:
    """CNCE's Table 3: linear classifiers on frozen features, for other sets."""

    others: tuple[str, ...] = ("cifar-10", "flowers5", "mnist")
    """Names of the sets (`vantage.studies.lab.sets`)."""

    protocol: LinearCached = field(default_factory=lambda: LinearCached(l2=(1e-3,)))
    """The classifier."""

    most: int = 2_500
    """Maximum number of training images per set, equally many of each class."""

    name = "transfer"

    @property
    def version(self) -> int:
        """The version of the protocol."""
        return self.protocol.version

    @property
    def data(self) -> Data:
        """How many images of each set are used."""
        return Data(max_images=self.most)

    def __call__(self, subject: Subject) -> dict[str, float]:
        """Top-1 of each set, in percent, and their mean."""
        numbers = {}
        for name in self.others:
            split = subject.other(name, self.data)
            outcome = self.protocol(subject.encoder, split.train, split.test, subject.work)
            numbers[f"transfer, {name}"] = next(iter(outcome.measures.values()))
        return {"transfer": fmean(numbers.values()), **numbers}


@dataclass(frozen=True)
class FewShotAccuracy:
    """InterCLR's Figure 5: linear SVMs trained on a few images of each class, at C = 1."""

    protocol: LowShotChosen = field(default_factory=lambda: LowShotChosen(shots=(1, 2, 8), samples=2, costs=(1.0,)))
    """The protocol."""

    name = "few shots"

    @property
    def version(self) -> int:
        """The version of the protocol."""
        return self.protocol.version

    def __call__(self, subject: Subject) -> dict[str, float]:
        """Mean average precision in percent: over all numbers of images, with the fewest, and with the most."""
        measures = self.protocol(subject.encoder, subject.split.train, subject.split.test, subject.work).measures
        fewest, most = (measures[f"k={edge(self.protocol.shots)}"] for edge in (min, max))
        return {"few shots": measures["mAP"], "few shots, fewest": fewest, "few shots, most": most}


@dataclass(frozen=True)
class FineTunedAccuracy:
    """InterCLR's Table 2: networks fine-tuned on a few labels of each class.

    Both learning rates are chosen together for each network, by its top-1 on training images that are held out of the
    tuning: a network from scratch and a pretrained one need different rates, and so do small sets.
    """

    protocols: tuple[FineTune, ...] = field(
        default_factory=lambda: tuple(
            FineTune(fraction=share, epochs=epochs, batch_size=64) for share, epochs in ((0.02, 40), (0.1, 20))
        )
    )
    """The protocols, one for each share of the labels."""

    rates: tuple[tuple[float, float], ...] = ((0.01, 0.1), (0.3, 0.3))
    """Learning rates of backbone and classifier to choose from."""

    held_out: int = 1_000
    """Number of training images held out to choose the rates."""

    name = "fine-tuned"

    @property
    def version(self) -> int:
        """A number that changes with the version of the protocol."""
        return 1 + self.protocols[0].version

    def __call__(self, subject: Subject) -> dict[str, float]:
        """Top-5 in percent as in the paper (top-1 with at most five classes), by the share of the labels."""
        train, numbers = subject.split.train, {}
        order = draws.permutation(len(train), subject.seed)
        count = min(self.held_out, len(train) // 4)
        others, own = (SourceSubset(train, rows.sort().values) for rows in (order[:count], order[count:]))
        for protocol in self.protocols:
            trials = [
                replace(protocol, seed=subject.seed, backbone_learning_rate=backbone, head_learning_rate=head)
                for backbone, head in self.rates
            ]
            top1 = [trial(subject.encoder, own, others, subject.work).measures["top-1"] for trial in trials]
            best = trials[top1.index(max(top1))]
            measures = best(subject.encoder, own, subject.split.test, subject.work).measures
            numbers[f"fine-tuned, {100 * protocol.fraction:g} %"] = measures.get("top-5", measures["top-1"])
        return numbers
