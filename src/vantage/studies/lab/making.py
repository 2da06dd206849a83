"""How a cell is made: its base, its own training, and what it is asked, each kept and never done again."""

import time
from collections.abc import Iterator
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

import torch

from vantage.composition.codec import encode
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.encoder import load, random_encoder, raw_pixels
from vantage.learner import Learner
from vantage.progress import Progress, QuietProgress
from vantage.storage.provenance import hardware, versions
from vantage.studies.analyse.networks import TrainedNetworks, trained_networks
from vantage.studies.lab.entry import Arm, Cell, Entry, Measure, OfOtherSets, Toy, Untrained, versions_of
from vantage.studies.lab.measuring import Seen
from vantage.studies.lab.sets import Sets, Split
from vantage.studies.lab.store import Lab, digest
from vantage.training import loop
from vantage.training.run import Data, Run

__all__ = ["Maker", "Piece", "arms_of", "composition"]

_FREE = ("data", "hardware", "monitoring", "seed")
"""What a run computes with; images count by their fingerprint."""


@dataclass(frozen=True)
class Piece:
    """One measure of one cell with one seed: the smallest piece of work that is kept."""

    cell: Cell
    """The cell."""

    measure: Measure | None
    """What is measured on it; None for a toy."""

    seed: int
    """The seed."""


def arms_of(made: Any) -> tuple[Arm, ...]:
    """An arm with those it continues from, the first base first; none of a toy or an untrained network."""
    if not isinstance(made, Arm):
        return ()
    return (*(arms_of(made.start) if made.start else ()), made)


def composition(made: Any) -> dict[str, Any]:
    """What a cell is, as plain data without its images' fingerprint: the part of its key that an entry decides.

    Fields at their default are left out, and parts of version 1 too, so that a part that gets a new field leaves cells
    as they are. Where a default comes to mean something else, the part's `version` is raised.
    """
    match made:
        case Arm():
            run = {name: held for name, held in _stated(encode(made.run), made.run).items() if name not in _FREE}
            share = {"hold_out": made.run.data.hold_out, "max_images": made.run.data.max_images}
            start = composition(made.start) if made.start else None
            parts = {name: version for name, version in versions_of(made.run).items() if version > 1}
            return {"run": run, "set": made.images, **share, "start": start, "parts": parts}
        case Untrained():
            return {"untrained": "pixels" if made.pixels else "encoder", "like": composition(made.arm)}
        case Toy():
            settings = asdict(made)  # pyright: ignore[reportArgumentType]
            return {"toy": made.name, "version": getattr(made, "version", 1), "settings": settings}
    raise UserError(f"{made!r} cannot be made")


def _stated(plain: Any, value: Any) -> Any:
    """A part as plain data, without the fields that are at their default."""
    if isinstance(value, tuple):
        return [_stated(*pair) for pair in zip(plain, value, strict=True)]
    if not is_dataclass(value) or not isinstance(plain, dict):
        return plain
    usual = {f.name: f.default if f.default_factory is MISSING else f.default_factory() for f in fields(value)}
    moved = {name: held for name, held in plain.items() if name not in usual or getattr(value, name) != usual[name]}
    return {name: _stated(held, getattr(value, name)) if name in usual else held for name, held in moved.items()}


class Maker:
    """Makes the pieces of entries in a lab's folder."""

    def __init__(self, lab: Lab, sets: Sets, work: Work | None = None, progress: Progress | None = None) -> None:
        self.lab, self.sets, self.progress = lab, sets, progress or QuietProgress()
        self.work = replace(work or Work(), progress=QuietProgress())
        self._known: dict[Any, Split] = {}

    def pieces(self, entry: Entry, seeds: tuple[int, ...]) -> Iterator[Piece]:
        """All of an entry, seed by seed, so that pairs are soon complete."""
        for seed in seeds:
            for cell in entry.made:
                for measure in cell.measures or (None,):
                    yield Piece(cell, measure, seed)

    def numbers(self, piece: Piece) -> dict[str, float] | None:
        """What is kept of a piece."""
        kept = self.lab.result(self.about(piece))
        return None if kept is None else dict(kept["numbers"])

    def about(self, piece: Piece) -> dict[str, Any]:
        """All that a piece depends on."""
        made = piece.cell.made
        about = {"made": composition(made), "seed": 0 if _unseeded(made) else piece.seed}
        if isinstance(made, Toy):
            return about
        assert piece.measure is not None and isinstance(made, Arm | Untrained)
        split = self.split(made if isinstance(made, Arm) else made.arm)
        settings = encode_measure(piece.measure)
        train, test = split.fingerprints
        about |= settings | {"train": train, "test": test}
        if isinstance(piece.measure, OfOtherSets):
            elsewhere = (self._split(name, piece.measure.data) for name in piece.measure.others)
            about["others"] = [list(each.fingerprints) for each in elsewhere]
        return about

    def make(self, piece: Piece) -> bool | None:
        """Do a piece unless it is done: True when it is there, None where another process is at it, False where a
        signal stopped it."""
        if self.numbers(piece) is not None:
            return True
        made = piece.cell.made
        for arm in arms_of(made):
            if (done := self._trained(arm, piece.seed)) is not True:
                return done
        about = self.about(piece)
        with self.lab.held(digest(about)) as ours:
            if not ours:
                return None
            if self.numbers(piece) is None:
                start = time.perf_counter()
                numbers = self._measured(piece)
                seconds, trained = time.perf_counter() - start, {}
                for key in (self.run_key(arm, piece.seed) for arm in arms_of(made)):
                    trained[key] = self.lab.seconds(key) or 0.0
                self.lab.keep(about, numbers, seconds, {"hardware": hardware(), "versions": versions()}, trained)
        return True

    def run_key(self, arm: Arm, seed: int) -> str:
        """Name of the folder of an arm's run."""
        return digest(self._run_about(arm, seed))

    def _run_about(self, arm: Arm, seed: int) -> dict[str, Any]:
        return {"made": composition(arm), "seed": seed, "train": self.split(arm).fingerprints[0]}

    def _trained(self, arm: Arm, seed: int) -> bool | None:
        key = self.run_key(arm, seed)
        if self.lab.trained(key):
            return True
        with self.lab.held(key) as ours:
            if not ours:
                return None
            if self.lab.trained(key):
                return True
            folder, run, source = self.lab.run(key), arm.seeded(seed), self.split(arm).whole
            if (folder / "settings.json").exists():
                outcome = loop.resume(folder, run, self.progress, source=source)
            else:
                outcome = loop.train(run, folder, self.progress, source=source, **self._start(arm, seed))
            if outcome.finished:
                seconds = float(learned_seconds(folder))
                self.lab.finish(key, self._run_about(arm, seed), seconds)
            return outcome.finished

    def _start(self, arm: Arm, seed: int) -> dict[str, Any]:
        return {"init": self.lab.run(self.run_key(arm.start, seed))} if arm.start else {}

    def _measured(self, piece: Piece) -> dict[str, float]:
        made = piece.cell.made
        if isinstance(made, Toy):
            return made.measured(piece.seed)
        assert piece.measure is not None
        if isinstance(made, Arm):
            folder, split = self.lab.run(self.run_key(made, piece.seed)), self.split(made)
            networks = partial(trained_networks, folder)
            return piece.measure(Seen(load(folder), networks, split, piece.seed, self.work, self._split))
        assert isinstance(made, Untrained)
        run, split = made.arm.seeded(piece.seed), self.split(made.arm)
        encoder = raw_pixels(run) if made.pixels else random_encoder(run, piece.seed)

        def networks() -> TrainedNetworks:
            if made.pixels:
                raise UserError("raw pixels have no head")
            return _untrained(run, len(split.train))

        return piece.measure(Seen(encoder, networks, split, piece.seed, self.work, self._split))

    def split(self, arm: Arm) -> Split:
        """The images of an arm."""
        return self._split(arm.images, arm.run.data)

    def _split(self, name: str, data: Data) -> Split:
        """Images of a set, which are opened and hashed once."""
        key = (name, data.hold_out, data.max_images)
        if key not in self._known:
            self._known[key] = self.sets.split(name, data)
        return self._known[key]


def encode_measure(measure: Measure) -> dict[str, Any]:
    """A measure as plain data, each protocol by its name and version."""
    settings: dict[str, Any] = asdict(measure)  # pyright: ignore[reportArgumentType]
    if "protocols" in settings:
        protocols = measure.protocols  # pyright: ignore[reportAttributeAccessIssue]
        settings["protocols"] = [[one.name, one.version, asdict(one)] for one in protocols]
    return {"measure": measure.name, "version": measure.version, "settings": settings}


def learned_seconds(folder: Any) -> float:
    """What a finished training took."""
    from vantage.storage.metrics import read_metrics

    return float(read_metrics(folder)[-1]["seconds"])


def _untrained(run: Run, images: int) -> TrainedNetworks:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        learner = Learner(run.encoders, run.branches, images, run.seed).eval().requires_grad_(False)
    return TrainedNetworks("random encoder", run, learner, images, 0)


def _unseeded(made: Any) -> bool:
    """Whether all seeds are the same: raw pixels are judged once."""
    return isinstance(made, Untrained) and made.pixels
