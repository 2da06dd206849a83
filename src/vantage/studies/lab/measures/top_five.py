"""Top-5 accuracy of a linear classifier, for the tables that report it."""

from dataclasses import dataclass, field

from vantage.errors import UserError
from vantage.evaluate import LinearCached
from vantage.studies.lab.contracts import Subject

__all__ = ["TOP_FIVE", "TopFive"]

TOP_FIVE = "linear-cached, top-5"
"""The name of the number that claims are about."""


@dataclass(frozen=True)
class TopFive:
    """Top-5 accuracy of the linear classifier whose top-1 accuracy is in `ProtocolAccuracy`."""

    protocol: LinearCached = field(default_factory=lambda: LinearCached(l2=(1e-3,)))
    """The classifier."""

    name = "top-5"

    @property
    def version(self) -> int:
        """The version of the protocol."""
        return self.protocol.version

    def __call__(self, subject: Subject) -> dict[str, float]:
        """The accuracy in percent. Raises `UserError` if the set has no more than five classes."""
        outcome = self.protocol(subject.encoder, subject.split.train, subject.split.test, subject.work)
        accuracy = outcome.accuracy.top5
        if accuracy is None:
            raise UserError("top-5 accuracy needs more than five classes")
        return {TOP_FIVE: accuracy}
