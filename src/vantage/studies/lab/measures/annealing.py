"""Ring's Figures 2b and 2c: the accuracy of a run by epoch, and how far it has annealed (arXiv 2010.02037, Appendix E).

Epochs are named by their share of the run, such as "1-NN, at 50 %".
"""

from dataclasses import dataclass

from vantage.errors import UserError
from vantage.evaluate import KNN
from vantage.storage.metrics import read_metrics
from vantage.studies.lab.contracts import Subject
from vantage.studies.lab.measures.each_kept_epoch import at_kept_epochs

__all__ = ["AdaptedShare", "NearestByEpoch"]

_NAMED = 20
"""Epochs of a run that have numbers of their own, at equal distances."""


@dataclass(frozen=True)
class NearestByEpoch:
    """Accuracy of the nearest neighbor on the test images, at each epoch that a run has kept."""

    share: float = 0.95
    """Share of its last accuracy that a run must reach."""

    name = "nearest by epoch"
    version = 1

    def __call__(self, subject: Subject) -> dict[str, float]:
        """The accuracies in percent, and the first epoch that reaches the share, in percent of the run. Raises
        `UserError` for a baseline, and for a run that kept no epochs."""
        train, test = subject.split.train, subject.split.test
        accuracy = {
            epoch: next(iter(KNN(k=1)(then.encoder, train, test, subject.work).measures.values()))
            for epoch, then in at_kept_epochs(subject)
        }
        last = max(accuracy)
        reached = min(epoch for epoch, one in accuracy.items() if one >= self.share * accuracy[last])
        named = {f"1-NN, at {_place(epoch, last)}": one for epoch, one in accuracy.items() if _is_named(epoch, last)}
        return named | {f"1-NN, {100 * self.share:g} % of its end after": 100 * reached / last}


@dataclass(frozen=True)
class AdaptedShare:
    """The share of keys that an adaptive policy (`vantage.schedules.Adaptive`) kept, from the metrics of a run."""

    end: float = 0.1
    """Where the policy leads."""

    name = "adapted share"
    version = 1

    def __call__(self, subject: Subject) -> dict[str, float]:
        """The shares and the lowest one, in percent, and the first epoch that ended within a hundredth of `end`, in
        percent of the run; 100 if none did. Raises `UserError` for a run without adaptive numbers."""
        rows = read_metrics(subject.folder) if subject.folder else []
        kept = {row["epoch"]: 100 * row["adapted.0"] for row in rows if "adapted.0" in row}
        if not kept:
            raise UserError(f"{subject.encoder.name} has no number that follows how training goes")
        last = max(kept)
        reached = min((epoch for epoch, one in kept.items() if one < 100 * self.end + 1), default=last)
        named = {f"keys kept, at {_place(epoch, last)}": one for epoch, one in kept.items() if _is_named(epoch, last)}
        return named | {"keys kept, least": min(kept.values()), "keys kept, end reached after": 100 * reached / last}


def _is_named(epoch: int, last: int) -> bool:
    return epoch * _NAMED % last == 0


def _place(epoch: int, last: int) -> str:
    return f"{100 * epoch / last:g} %"
