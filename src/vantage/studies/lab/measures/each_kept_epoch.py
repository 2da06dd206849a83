"""A measure on the way: of every epoch that a cell's run has kept, and the mean over them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from vantage.errors import UserError
from vantage.frozen.encoder import load
from vantage.frozen.networks import trained_networks
from vantage.studies.lab.contracts import Measure, Subject
from vantage.studies.lab.measures.vectors import ProtocolAccuracy
from vantage.training.folder.kept_epochs import kept_epochs

__all__ = ["EachKeptEpoch", "at_kept_epochs"]


@dataclass(frozen=True)
class EachKeptEpoch:
    """Another measure, of each kept epoch (`Monitoring.keep_every`)."""

    measure: Measure = field(default_factory=ProtocolAccuracy)
    """What is measured."""

    name = "by epoch"
    version = 1

    def __call__(self, subject: Subject) -> dict[str, float]:
        """The numbers as "name, epoch 2", and their mean over the epochs as "name, all epochs".

        Raises `UserError` for a baseline, and for a run that kept no epochs.
        """
        rows = {epoch: self.measure(then) for epoch, then in at_kept_epochs(subject)}
        numbers = {f"{name}, epoch {epoch}": value for epoch, row in rows.items() for name, value in row.items()}
        means = {name: sum(row[name] for row in rows.values()) / len(rows) for name in next(iter(rows.values()))}
        return numbers | {f"{name}, all epochs": mean for name, mean in means.items()}


def at_kept_epochs(subject: Subject) -> Iterator[tuple[int, Subject]]:
    """Each epoch that a run has kept, from the first one, and the run as it was then. Raises `UserError` for a
    baseline, and for a run that kept no epochs."""
    kept = kept_epochs(subject.folder) if subject.folder else {}
    if not kept:
        raise UserError(f"{subject.encoder.name} kept no epochs: set monitoring.keep_every in its run")
    for epoch, folder in kept.items():
        networks = partial(trained_networks, folder)
        yield epoch, replace(subject, encoder=load(folder), networks=networks, folder=folder)
