"""How much information the views of a run share: the quantity that InfoMin plots accuracy against."""

from dataclasses import dataclass

from vantage.studies.analyse.held_out import HeldOutInformation
from vantage.studies.lab.contracts import Subject

__all__ = ["ViewInformation"]


@dataclass(frozen=True)
class ViewInformation:
    """I_NCE of a run's own views on test images, by its own critic (`vantage.studies.analyse.held_out`).

    All other images in the sample are negatives, so the bound is the logarithm of the number of images.
    """

    images: int = 2_048
    """Test images, each of which makes a pair; I_NCE is at most the logarithm of this number."""

    draws: int = 3
    """Number of times that views and negatives are drawn; the estimates are averaged."""

    name = "shared information"
    version = 1

    def __call__(self, subject: Subject) -> dict[str, float]:
        """I_NCE of the first branch, in nats."""
        estimate = HeldOutInformation(images=self.images, draws=self.draws, seed=subject.seed)
        return {"I_NCE": estimate.of(subject.networks(), subject.split.test, subject.work)[0].nats}
