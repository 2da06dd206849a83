"""One run on many labeled sets, in one table: what a backbone is worth away from the images it was trained on.

Ring (arXiv 2010.02037, table 3) does so on sets of Meta-Dataset (arXiv 1903.03096), each normalized by its own mean
and standard deviation, with its linear classifier on the deepest map: `LinearRing`, `--by linear-ring` on the command
line. Any other protocol judges too, such as the faster `LinearCached`, but its numbers are not those of that table.

h, w: height and width in pixels
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from jaxtyping import UInt8
from torch import Tensor

from vantage.data.scan import OnBadImage, readable, scan
from vantage.data.sources.opening import open_source
from vantage.data.sources.source import Source, cache_key, marks_in, stamp_of
from vantage.data.splits import train_and_test, with_labels
from vantage.encoding import Work
from vantage.errors import DataError, UserError
from vantage.evaluate.changed import changed
from vantage.evaluate.judge import Result, file_name, keep, result_of, with_baselines
from vantage.evaluate.outcome import EvaluationProtocol, Outcome
from vantage.evaluate.protocols.linear.depths import statistics_of
from vantage.evaluate.transfer.sets import TransferSet
from vantage.evaluate.transfer.table import Row, TransferTable
from vantage.frozen.encoder import FrozenEncoder, load
from vantage.progress import counting
from vantage.storage.cache import hash_of, read_json, try_write_json
from vantage.views.colors.statistics import Statistics

__all__ = ["transfer"]


def transfer(
    run_folder: Path,
    sets: Sequence[TransferSet],
    protocol: EvaluationProtocol,
    *,
    found: Sequence[TransferSet] = (),
    on_bad_image: OnBadImage = "skip",
    baselines: bool = False,
    network: int | None = None,
    work: Work | None = None,
) -> TransferTable:
    """Judge a run's newest checkpoint on each of the sets by one protocol.

    `sets` were named one by one: one that cannot be used is a mistake, told before anything is judged. `found` are
    those of a suite (`found_sets`): one that cannot be opened, or is of one class, is named in the table with the
    reason, and so is any set that the protocol cannot judge. Of a set's images those that cannot be read are left out,
    up to 1 %; with more, or with any where `on_bad_image` is "stop", the set cannot be used.

    Each set's images are normalized by their own mean and standard deviation. What is done is kept under
    `run_folder`/evaluations/transfer, a file for each set and encoder, and read there the next time if the library
    versions are the same, so that a table that was stopped goes on.

    Raises `UserError` where the run has no usable checkpoint, where two sets have one name, and where no set can be
    judged; `DataError` for one of `sets` that is not at its place.
    """
    work = work or Work()
    every = (*sets, *found)
    if not every or len({one.name for one in every}) < len(every):
        raise UserError("transfer needs sets, each with a name of its own: --sets NAME=PLACE NAME=PLACE")
    trained = load(run_folder, network)
    encoders = with_baselines(trained, network) if baselines else [trained]
    opened = [(one, _opened(one, on_bad_image, work)) for one in sets]  # a mistake in the last is told before the first
    reasons: dict[str, str] = {}
    opened += list(_usable(found, on_bad_image, work, reasons))
    rows: list[Row] = []
    for number, (one, (train, test, kind)) in enumerate(opened):
        work.progress.line(f"{one.name}: set {number + 1} of {len(opened)}, {len(train):,} and {len(test):,} images")
        try:
            statistics = one.statistics or _measured(trained, train, work)
            for encoder in encoders:
                seen = replace(encoder, view=replace(encoder.view, statistics=statistics))
                rows.append(_row(_Task(one.name, seen, train, test, kind), protocol, run_folder, work))
        except UserError as problem:
            reasons[one.name] = str(problem)
            work.progress.warn(f"{one.name} is left out: {problem}")
    if not rows:
        raise UserError("no set could be judged: " + "; ".join(f"{name}: {why}" for name, why in reasons.items()))
    made = result_of(protocol, trained, *opened[0][1], {}, work)
    return TransferTable(
        made.protocol, made.version, made.settings, tuple(rows), reasons, changed(protocol),
        checkpoint=made.checkpoint, device=made.device, libraries=made.libraries,
    )  # fmt: skip


@dataclass(frozen=True)
class _Task:
    """One row: an encoder on a set."""

    name: str
    encoder: FrozenEncoder
    train: Source
    test: Source
    kind: str


def _row(task: _Task, protocol: EvaluationProtocol, run_folder: Path, work: Work) -> Row:
    """Judged now, or read where it was judged before, by the same versions of the libraries."""

    def result(outcomes: dict[str, Outcome]) -> Result:
        return result_of(protocol, task.encoder, task.train, task.test, task.kind, outcomes, work)

    empty = result({})
    images = cache_key(task.train) + cache_key(task.test)  # which follow the files' time stamps
    key = hash_of([task.name.encode(), task.encoder.name.encode(), file_name(empty).encode(), images.encode()])
    kept = run_folder / "evaluations" / "transfer" / f"{protocol.name}-v{protocol.version}-{key[:12]}.json"
    known = read_json(kept)
    if isinstance(known, dict) and known.get("outcomes") and _facts(known) == _facts(asdict(empty)):
        (outcome,) = (Outcome(**one) for one in known["outcomes"].values())
        work.progress.line(f"{task.name}, {task.encoder.name}: done before")
    else:
        outcome = protocol(task.encoder, task.train, task.test, work)
        keep(result({task.encoder.name: outcome}), run_folder, kept)
    quoted = next(iter(outcome.measures))
    return Row(
        task.name, task.encoder.name, quoted, outcome.measures[quoted], outcome.train_images, outcome.test_images
    )


def _facts(record: Mapping[str, Any]) -> Any:
    """All that decides an outcome, as plain data."""
    return json.loads(json.dumps({key: value for key, value in record.items() if key != "outcomes"}))


def _usable(
    found: Sequence[TransferSet], on_bad_image: OnBadImage, work: Work, reasons: dict[str, str]
) -> Iterator[tuple[TransferSet, tuple[Source, Source, str]]]:
    """The sets that can be opened; why others cannot goes to `reasons`."""
    for one in found:
        try:
            yield one, _opened(one, on_bad_image, work)
        except DataError as problem:
            reasons[one.name] = str(problem).removeprefix(f"{one.name}: ")
            work.progress.warn(f"{problem}; the set is left out")


def _opened(one: TransferSet, on_bad_image: OnBadImage, work: Work) -> tuple[Source, Source, str]:
    """Training and test images of a set, and where the test images come from. Raises `DataError` that names the set."""
    try:
        train = _looked_at(one.train, on_bad_image, f"training images of {one.name}", work)
        if marks_in(train) is None:
            train, label = with_labels(train)
            if len(label.unique()) < 2:
                raise DataError(f"all labeled images of {one.train} are of one class; name a set with two or more")
        test = _looked_at(one.test, on_bad_image, f"test images of {one.name}", work) if one.test else None
        return train_and_test(train, test)
    except UserError as problem:
        raise DataError(f"{one.name}: {problem}") from problem


def _looked_at(place: str, on_bad_image: OnBadImage, what: str, work: Work) -> Source:
    """The images of a place that can be read."""
    source = open_source(place)
    with counting(work.progress, f"looking at the {what}") as progress:
        bad = scan(source, work.num_workers, work.cache, progress=progress)
    if bad.bad:
        work.progress.line(f"{what}: {bad.summary()}")
    return readable(source, bad, on_bad_image)


def _measured(trained: FrozenEncoder, train: Source, work: Work) -> Statistics:
    """Mean and standard deviation of a set, measured once."""
    plain = replace(trained.view, statistics=Statistics((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
    kept = work.cache / "statistics" / f"{hash_of([cache_key(train).encode(), repr(plain).encode()])}.json"
    known = read_json(kept)
    if isinstance(known, dict) and set(known) == {"mean", "std"}:
        return Statistics(tuple(known["mean"]), tuple(known["std"]))
    found = statistics_of(trained, train if marks_in(train) is None else _Unmarked(train), work)
    try_write_json(kept, asdict(found))
    return found


class _Unmarked:
    """Images that show several classes each as if they showed one: mean and deviation do not ask which."""

    classes = ("any",)

    def __init__(self, source: Source) -> None:
        self.source = source

    def __len__(self) -> int:
        return len(self.source)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        return self.source.image(number)

    def label(self, number: int) -> int | None:
        return 0

    def name(self, number: int) -> str:
        return self.source.name(number)

    def fingerprint(self) -> str:
        return self.source.fingerprint()

    def stamp(self) -> str:
        return stamp_of(self.source)
