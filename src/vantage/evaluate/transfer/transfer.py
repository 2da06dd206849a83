"""One run on many labeled sets, in one table: what a backbone is worth away from the images it was trained on.

Ring (arXiv 2010.02037, table 3) does so on sets of Meta-Dataset (arXiv 1903.03096), each normalized by its own mean
and standard deviation, with its linear classifier on the deepest map: `LinearRing`, `--by linear-ring` on the command
line. Any other protocol judges too, such as the faster `LinearCached`, but its numbers are not those of that table.

h, w: height and width in pixels
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from jaxtyping import UInt8
from torch import Tensor

from vantage.composition.changes import changes
from vantage.data.scan import OnBadImage, readable, scan
from vantage.data.sources.opening import open_source
from vantage.data.sources.source import Source, cache_key, marks_in, stamp_of
from vantage.data.splits import with_labels
from vantage.encoding import Work
from vantage.errors import DataError, UserError
from vantage.evaluate.judge import judge_once, result_of, with_baselines
from vantage.evaluate.protocols.linear.depths import statistics_of
from vantage.evaluate.task import EvaluationProtocol, Task, task_of
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
    encoder = load(run_folder, network)
    tasks = [(one, _task(one, protocol, on_bad_image, work)) for one in sets]  # a mistake is told before hours of work
    reasons: dict[str, str] = {}
    tasks += list(_usable(found, protocol, on_bad_image, work, reasons))
    encoders = with_baselines(encoder, network, tasks[0][1]) if baselines and tasks else [encoder]
    rows: list[Row] = []
    for number, (one, task) in enumerate(tasks):
        images = f"{len(task.train):,} and {len(task.test):,} images"
        work.progress.line(f"{one.name}: set {number + 1} of {len(tasks)}, {images}")
        try:
            statistics = one.statistics or _measured(encoder, task.train, work)
            for each in encoders:
                normalized = replace(each, view=replace(each.view, statistics=statistics))
                rows.append(_row(one.name, task, normalized, run_folder, work))
        except UserError as problem:
            reasons[one.name] = str(problem)
            work.progress.warn(f"{one.name} is left out: {problem}")
    if not rows:
        raise UserError("no set could be judged: " + "; ".join(f"{name}: {why}" for name, why in reasons.items()))
    result = result_of(tasks[0][1], encoder, {}, work)
    return TransferTable(
        result.protocol, result.version, result.settings, tuple(rows), reasons, changes(protocol),
        checkpoint=result.checkpoint, device=result.device, libraries=result.libraries,
    )  # fmt: skip


def _row(name: str, task: Task, encoder: FrozenEncoder, run_folder: Path, work: Work) -> Row:
    """Judged now, or read where it was judged before, by the same versions of the libraries."""
    result = result_of(task, encoder, {}, work)
    images = cache_key(task.train) + cache_key(task.test)  # which follow the files' time stamps
    key = hash_of([name.encode(), encoder.name.encode(), result.file_name.encode(), images.encode()])
    path = run_folder / "evaluations" / "transfer" / f"{result.protocol}-v{result.version}-{key[:12]}.json"

    def report(known: bool) -> None:
        if known:
            work.progress.line(f"{name}, {encoder.name}: read from its record")

    outcome = judge_once(task, encoder, work, run_folder, path, report=report)
    measure = next(iter(outcome.measures))
    return Row(name, encoder.name, measure, outcome.measures[measure], outcome.train_images, outcome.test_images)


def _usable(
    found: Sequence[TransferSet],
    protocol: EvaluationProtocol,
    on_bad_image: OnBadImage,
    work: Work,
    reasons: dict[str, str],
) -> Iterator[tuple[TransferSet, Task]]:
    """The sets that can be opened; why others cannot goes to `reasons`."""
    for one in found:
        try:
            yield one, _task(one, protocol, on_bad_image, work)
        except DataError as problem:
            reasons[one.name] = str(problem).removeprefix(f"{one.name}: ")
            work.progress.warn(f"{problem}; the set is left out")


def _task(one: TransferSet, protocol: EvaluationProtocol, on_bad_image: OnBadImage, work: Work) -> Task:
    """A protocol with the images of a set. Raises `DataError` that names the set."""
    try:
        train = _looked_at(one.train, on_bad_image, f"training images of {one.name}", work)
        if marks_in(train) is None:
            train, label = with_labels(train)
            if len(label.unique()) < 2:
                raise DataError(f"all labeled images of {one.train} are of one class; name a set with two or more")
        test = _looked_at(one.test, on_bad_image, f"test images of {one.name}", work) if one.test else None
        return task_of(protocol, train, test)
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


def _measured(encoder: FrozenEncoder, train: Source, work: Work) -> Statistics:
    """Mean and standard deviation of a set, measured once."""
    plain = replace(encoder.view, statistics=Statistics((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
    kept = work.cache / "statistics" / f"{hash_of([cache_key(train).encode(), repr(plain).encode()])}.json"
    known = read_json(kept)
    if isinstance(known, dict) and set(known) == {"mean", "std"}:
        return Statistics(tuple(known["mean"]), tuple(known["std"]))
    found = statistics_of(encoder, train if marks_in(train) is None else _Unmarked(train), work)
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
