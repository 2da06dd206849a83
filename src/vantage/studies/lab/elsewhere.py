"""What a cell is asked beyond its own classes' full labels: other sets, and few labels."""

from dataclasses import dataclass, field
from statistics import fmean

from vantage.evaluate import LinearCached, LowShotChosen
from vantage.studies.lab.measuring import Seen
from vantage.training.run import Data

__all__ = ["FewShots", "Transferred"]


@dataclass(frozen=True)
class Transferred:
    """CNCE's Table 3: linear classifiers of other sets on frozen features."""

    others: tuple[str, ...] = ("cifar-10", "flowers5", "mnist")
    """Names of the sets (`vantage.studies.lab.sets`)."""

    protocol: LinearCached = field(default_factory=lambda: LinearCached(l2=(1e-3,)))
    """The classifier."""

    most: int = 2_500
    """How many training images of each set, equally many of each class."""

    name = "transfer"

    @property
    def version(self) -> int:
        """That of the protocol counts."""
        return self.protocol.version

    @property
    def data(self) -> Data:
        """What is taken of each set."""
        return Data(max_images=self.most)

    def __call__(self, seen: Seen) -> dict[str, float]:
        """Top-1 of each set, in percent, and their mean."""
        numbers = {}
        for name in self.others:
            split = seen.other(name, self.data)
            outcome = self.protocol(seen.encoder, split.train, split.test, seen.work)
            numbers[f"transfer, {name}"] = next(iter(outcome.measures.values()))
        return {"transfer": fmean(numbers.values()), **numbers}


@dataclass(frozen=True)
class FewShots:
    """InterCLR's Figure 5: linear SVMs on a few images of each class, at C = 1."""

    protocol: LowShotChosen = field(default_factory=lambda: LowShotChosen(shots=(1, 2, 8), samples=2, costs=(1.0,)))
    """The protocol."""

    name = "few shots"

    @property
    def version(self) -> int:
        """That of the protocol counts."""
        return self.protocol.version

    def __call__(self, seen: Seen) -> dict[str, float]:
        """Mean average precision, in percent: over all numbers of images, with the fewest, and with the most."""
        measures = self.protocol(seen.encoder, seen.split.train, seen.split.test, seen.work).measures
        fewest, most = (measures[f"k={edge(self.protocol.shots)}"] for edge in (min, max))
        return {"few shots": measures["mAP"], "few shots, fewest": fewest, "few shots, most": most}
