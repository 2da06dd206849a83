"""How much the views of a run share: what InfoMin plots accuracy against."""

from dataclasses import dataclass

from vantage.studies.analyse.held_out import HeldOutInformation
from vantage.studies.lab.measuring import Seen

__all__ = ["SharedInformation"]


@dataclass(frozen=True)
class SharedInformation:
    """I_NCE of a run's own views on test images, by its own critic (`vantage.studies.analyse.held_out`).

    Every other image drawn is a negative, so that the bound is the logarithm of their number.
    """

    images: int = 2_048
    """Test images, each of which makes a pair; I_NCE is at most the logarithm of this number."""

    draws: int = 3
    """How often views and negatives are drawn; the mean is taken."""

    name = "shared information"
    version = 1

    def __call__(self, seen: Seen) -> dict[str, float]:
        """I_NCE of the first branch, in nats."""
        estimate = HeldOutInformation(images=self.images, draws=self.draws, seed=seen.seed)
        return {"I_NCE": estimate(seen.networks(), seen.split.test, seen.work)[0].nats}
