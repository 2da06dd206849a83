"""How a cell is run: its base, its own training and its measurements, each stored so that it is done only once."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.encoder import load, random_encoder, raw_pixels
from vantage.frozen.networks import TrainedNetworks, trained_networks, untrained_networks
from vantage.progress import Progress, QuietProgress
from vantage.storage.cache import digest
from vantage.storage.metrics import last_numbers
from vantage.storage.provenance import hardware, versions
from vantage.studies.lab.contracts import Measure, OfAnother, OfOtherSets, OnSets, Subject, Toy
from vantage.studies.lab.entry import Arm, Cell, Entry, Untrained
from vantage.studies.lab.making.compositions import arm_chain, arm_of, composition, encode_measure
from vantage.studies.lab.making.store import LabFolder
from vantage.studies.lab.sets import ImageSets, Split
from vantage.training import loop
from vantage.training.run import Data

__all__ = ["Maker", "Piece"]


@dataclass(frozen=True)
class Piece:
    """One measure of one cell with one seed: the smallest unit of work that is stored."""

    cell: Cell
    """The cell."""

    measure: Measure | None
    """What is measured on it; None for an experiment that measures itself."""

    seed: int
    """The seed."""


class Maker:
    """Runs the pieces of entries and stores them in the lab's folder."""

    def __init__(
        self, lab: LabFolder, sets: ImageSets, work: Work | None = None, progress: Progress | None = None
    ) -> None:
        self.lab, self.sets, self.progress = lab, sets, progress or QuietProgress()
        self.work = replace(work or Work(), progress=QuietProgress())
        self._splits: dict[Any, Split] = {}
        self._compositions: dict[int, tuple[Any, dict[str, Any]]] = {}

    @property
    def on_gpu(self) -> bool:
        """Whether runs train on a GPU, which processes share."""
        return self.work.resolved_device().type != "cpu"

    def pieces(self, entry: Entry, seeds: tuple[int, ...]) -> Iterator[Piece]:
        """All pieces of an entry, seed by seed, so that paired differences are available early."""
        for seed in seeds:
            for cell in entry.runnable_cells:
                yield from self.pieces_of(cell, seed)

    def pieces_of(self, cell: Cell, seed: int) -> tuple[Piece, ...]:
        """The pieces of a cell with one seed."""
        return tuple(Piece(cell, measure, seed) for measure in cell.measures or (None,))

    def numbers(self, piece: Piece) -> dict[str, float] | None:
        """The stored numbers of a piece; None if it is not done."""
        record = self.lab.result(self.dependencies(piece))
        return None if record is None else {name: float(value) for name, value in record["numbers"].items()}

    def dependencies(self, piece: Piece) -> dict[str, Any]:
        """Everything that a piece depends on, as plain data."""
        experiment = piece.cell.experiment
        dependencies = {"made": self._composition(experiment), "seed": 0 if _ignores_seed(experiment) else piece.seed}
        if isinstance(experiment, Toy):
            return dependencies
        if isinstance(experiment, OnSets):
            parts = (self._split(name, experiment.data) for name in experiment.sets)
            return dependencies | {"sets": [list(each.fingerprints) for each in parts]}
        assert piece.measure is not None and isinstance(experiment, Arm | Untrained)
        split = self.split(arm_of(experiment))
        train, test = split.fingerprints
        dependencies |= encode_measure(piece.measure) | {"train": train, "test": test}
        measure = piece.measure.measure if isinstance(piece.measure, OfAnother) else piece.measure
        if isinstance(measure, OfOtherSets):
            elsewhere = (self._split(name, measure.data) for name in measure.others)
            dependencies["others"] = [list(each.fingerprints) for each in elsewhere]
        return dependencies

    def make(self, piece: Piece) -> bool | None:
        """Run a piece unless it is done: True if its result is stored, None if another process is working on it, False
        if a signal stopped it."""
        if self.numbers(piece) is not None:
            return True
        experiment = piece.cell.experiment
        for arm in arm_chain(experiment):
            if (outcome := self._train(arm, piece.seed)) is not True:
                return outcome
        dependencies = self.dependencies(piece)
        with self.lab.lock(digest(dependencies)) as is_ours:
            if not is_ours:
                return None
            if self.numbers(piece) is None:
                start = time.perf_counter()
                numbers = self._measure(piece)
                seconds = time.perf_counter() - start
                keys = (self.run_key(arm, piece.seed) for arm in arm_chain(experiment))
                trained = {key: self.lab.seconds(key) or 0.0 for key in keys}
                computer = {"hardware": hardware(), "versions": versions()}
                self.lab.keep(dependencies, numbers, seconds, computer, trained)
        return True

    def run_key(self, arm: Arm, seed: int) -> str:
        """Name of the folder of an arm's run."""
        return digest(self._run_dependencies(arm, seed))

    def _run_dependencies(self, arm: Arm, seed: int) -> dict[str, Any]:
        return {"made": self._composition(arm), "seed": seed, "train": self.split(arm).fingerprints[0]}

    def _composition(self, experiment: Any) -> dict[str, Any]:
        """`composition`, once for each object: every seed and measure asks for it. Not for each value, since 1 and 1.0
        are equal and are not written alike."""
        if id(experiment) not in self._compositions:
            self._compositions[id(experiment)] = experiment, composition(experiment)
        return self._compositions[id(experiment)][1]

    def _train(self, arm: Arm, seed: int) -> bool | None:
        key = self.run_key(arm, seed)
        if self.lab.is_trained(key):
            return True
        with self.lab.lock(key) as is_ours:
            if not is_ours:
                return None
            if self.lab.is_trained(key):
                return True
            folder, run, source = self.lab.run(key), arm.with_seed(seed), self.split(arm).whole
            if (folder / "settings.json").exists():
                outcome = loop.resume(folder, run, self.progress, source=source)
            else:
                outcome = loop.train(run, folder, self.progress, source=source, **self._start(arm, seed))
            if outcome.finished:
                (seconds,) = last_numbers(folder, "seconds")
                self.lab.finish(key, self._run_dependencies(arm, seed), seconds)
            return outcome.finished

    def _start(self, arm: Arm, seed: int) -> dict[str, Any]:
        return {"init": self.lab.run(self.run_key(arm.start, seed))} if arm.start else {}

    def _measure(self, piece: Piece) -> dict[str, float]:
        experiment = piece.cell.experiment
        if isinstance(experiment, Toy):
            return experiment.measure(piece.seed)
        if isinstance(experiment, OnSets):
            splits = tuple(self._split(name, experiment.data) for name in experiment.sets)
            return experiment.measure_on(piece.seed, splits, self.work)
        assert piece.measure is not None
        if isinstance(experiment, Arm):
            folder, split = self.lab.run(self.run_key(experiment, piece.seed)), self.split(experiment)
            networks = partial(trained_networks, folder)
            return piece.measure(Subject(load(folder), networks, split, piece.seed, self.work, self._split, folder))
        assert isinstance(experiment, Untrained)
        run, split = experiment.arm.with_seed(piece.seed), self.split(experiment.arm)
        encoder = raw_pixels(run) if experiment.pixels else random_encoder(run, piece.seed)

        def networks() -> TrainedNetworks:
            if experiment.pixels:
                raise UserError("raw pixels have no head")
            return untrained_networks(run, len(split.train), run.seed)

        return piece.measure(Subject(encoder, networks, split, piece.seed, self.work, self._split))

    def split(self, arm: Arm) -> Split:
        """The images of an arm."""
        return self._split(arm.images, arm.run.data)

    def _split(self, name: str, data: Data) -> Split:
        """The images of a set, opened and hashed only once."""
        key = (name, data.hold_out, data.max_images)
        if key not in self._splits:
            self._splits[key] = self.sets.split(name, data)
        return self._splits[key]


def _ignores_seed(experiment: Any) -> bool:
    """Whether the seed makes no difference, as for raw pixels, which are measured once."""
    return isinstance(experiment, Untrained) and experiment.pixels
