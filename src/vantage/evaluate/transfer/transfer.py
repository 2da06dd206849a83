"""One run on many labeled sets, in one table: what a backbone is worth away from the images it was trained on.

Ring (arXiv 2010.02037, table 3) does this on sets of Meta-Dataset (arXiv 1903.03096), each normalized by its own mean
and standard deviation, with its linear classifier on the deepest map: `LinearRing`, `--by linear-ring` on the command
line. Any other protocol can evaluate the sets, such as the faster `LinearCached`, but its numbers do not compare with
that table's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from vantage.composition.changes import changes
from vantage.data.scan import OnBadImage, readable, scan
from vantage.data.sources.opening import open_source
from vantage.data.sources.relabeled import Relabeled
from vantage.data.sources.source import Source, cache_key, marks_in
from vantage.data.splits import with_labels
from vantage.encoding import Work
from vantage.errors import DataError, UserError, WriteError
from vantage.evaluate.judge import judge_once, result_of, with_baselines
from vantage.evaluate.protocols.linear.depths import statistics_of
from vantage.evaluate.task import EvaluationProtocol, Task, task_of
from vantage.evaluate.transfer.sets import TransferSet
from vantage.evaluate.transfer.table import TransferRow, TransferTable
from vantage.frozen.encoder import FrozenEncoder, load
from vantage.frozen.outside import home_of
from vantage.progress import counting
from vantage.storage.cache import hash_of, read_cached, try_write_json
from vantage.views.colors.statistics import Statistics

__all__ = ["transfer"]


def transfer(
    run_folder: Path,
    sets: Sequence[TransferSet],
    protocol: EvaluationProtocol,
    *,
    suite: Sequence[TransferSet] = (),
    on_bad_image: OnBadImage = "skip",
    baselines: bool = False,
    network: int | None = None,
    work: Work | None = None,
) -> TransferTable:
    """Evaluate a run's newest checkpoint on each of the sets by one protocol, each normalized by its own statistics.

    A set of `sets` that cannot be used is an error, raised before anything is evaluated. A set of the `suite`
    (`available_sets`) that cannot be opened, or has only one class, is named in the table with the reason, and so is
    any set that the protocol cannot evaluate. Unreadable images are left out, up to 1 % of a set or three of them;
    with more, or with any if `on_bad_image` is "stop", the set cannot be used. Finished results are kept under
    `run_folder`/evaluations/transfer, a file for each set and encoder, and are read from there as long as the versions
    of the libraries stay the same.

    Raises `UserError` if the run has no usable checkpoint, if two sets have the same name, or if no set can be
    evaluated; `DataError` for one of `sets` that is not at its path.
    """
    work = work or Work()
    names = [one.name for one in (*sets, *suite)]
    if not names or len(set(names)) < len(names):
        raise UserError("transfer needs sets with different names: --sets NAME=PATH NAME=PATH")
    encoder = load(run_folder, network)
    tasks = [(one, _task(one, protocol, on_bad_image, work)) for one in sets]
    reasons: dict[str, str] = {}
    tasks += list(_usable(suite, protocol, on_bad_image, work, reasons))
    encoders = with_baselines(encoder, network, tasks[0][1]) if baselines and tasks else [encoder]
    rows = list(_rows(tasks, encoders, run_folder, work, reasons))
    if not rows:
        raise UserError("no set could be evaluated: " + "; ".join(f"{name}: {why}" for name, why in reasons.items()))
    result, given = result_of(tasks[0][1], encoder, {}, work), _given(tasks, reasons)
    return TransferTable(
        result.protocol, result.version, result.settings, tuple(rows), reasons, changes(protocol),
        checkpoint=result.checkpoint, device=result.device, libraries=result.libraries, statistics=given,
    )  # fmt: skip


def _given(tasks: Sequence[tuple[TransferSet, Task]], reasons: Mapping[str, str]) -> dict[str, Statistics]:
    """The given statistics of the sets that were evaluated."""
    return {one.name: one.statistics for one, _ in tasks if one.statistics and one.name not in reasons}


def _rows(
    tasks: Sequence[tuple[TransferSet, Task]],
    encoders: Sequence[FrozenEncoder],
    run_folder: Path,
    work: Work,
    reasons: dict[str, str],
) -> Iterator[TransferRow]:
    """The rows of every set; for a set that cannot be evaluated the reason goes to `reasons`."""
    for number, (one, task) in enumerate(tasks, 1):
        images = f"{len(task.train):,} and {len(task.test):,} images"
        work.progress.line(f"{one.name}: set {number} of {len(tasks)}, {images}")
        try:
            statistics = one.statistics or _measure_statistics(encoders[0], task.train, work)
            for encoder in encoders:
                encoder_of_set = replace(encoder, view=replace(encoder.view, statistics=statistics))
                yield _row(one.name, task, encoder_of_set, run_folder, work)
        except WriteError:  # the results of the other sets could not be written either
            raise
        except UserError as problem:
            reasons[one.name] = str(problem)
            work.progress.warn(f"{one.name} is left out: {problem}")


def _row(name: str, task: Task, encoder: FrozenEncoder, run_folder: Path, work: Work) -> TransferRow:
    """One encoder on one set: evaluated, or read from the record of an earlier evaluation."""
    result = result_of(task, encoder, {}, work)
    images = cache_key(task.train) + cache_key(task.test)  # they change when an image file does
    key = hash_of([name, encoder.name, result.file_name, images])
    path = home_of(run_folder) / "evaluations" / "transfer" / f"{result.protocol}-v{result.version}-{key[:12]}.json"

    def report(from_record: bool) -> None:
        if from_record:
            work.progress.line(f"{name}, {encoder.name}: read from its record")

    outcome = judge_once(task, encoder, work, run_folder, path, report=report)
    measure = next(iter(outcome.measures))
    return TransferRow(
        name, encoder.name, measure, outcome.measures[measure], outcome.train_images, outcome.test_images
    )


def _usable(
    suite: Sequence[TransferSet],
    protocol: EvaluationProtocol,
    on_bad_image: OnBadImage,
    work: Work,
    reasons: dict[str, str],
) -> Iterator[tuple[TransferSet, Task]]:
    """The sets that can be opened; for the others the reason goes to `reasons`."""
    for one in suite:
        try:
            yield one, _task(one, protocol, on_bad_image, work)
        except DataError as problem:
            reasons[one.name] = str(problem).removeprefix(f"{one.name}: ")
            work.progress.warn(f"{problem}; the set is left out")


def _task(one: TransferSet, protocol: EvaluationProtocol, on_bad_image: OnBadImage, work: Work) -> Task:
    """A protocol with the images of a set. Raises `DataError`, which names the set."""
    try:
        train = _readable(one.train, on_bad_image, f"training images of {one.name}", work)
        if marks_in(train) is None:
            train, label = with_labels(train)
            if len(label.unique()) < 2:
                raise DataError(f"all labeled images of {one.train} have the same class; name a set of two or more")
        test = _readable(one.test, on_bad_image, f"test images of {one.name}", work) if one.test else None
        return task_of(protocol, train, test)
    except UserError as problem:
        raise DataError(f"{one.name}: {problem}") from problem


def _readable(path: str, on_bad_image: OnBadImage, what: str, work: Work) -> Source:
    """The images at a path that can be read."""
    source = open_source(path)
    with counting(work.progress, f"looking at the {what}") as progress:
        result = scan(source, work.num_workers, work.cache, progress=progress, together=True)
    if result.bad:
        work.progress.line(f"{what}: {result.summary()}")
    return readable(source, result, on_bad_image)


def _measure_statistics(encoder: FrozenEncoder, train: Source, work: Work) -> Statistics:
    """Mean and standard deviation of a set, measured once and cached."""
    plain = replace(encoder.view, statistics=Statistics((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
    file = work.cache / "statistics" / f"{hash_of([cache_key(train), repr(plain)])}.json"
    record = read_cached(file)
    if isinstance(record, dict) and set(record) == {"mean", "std"}:
        return Statistics(tuple(record["mean"]), tuple(record["std"]))
    statistics = statistics_of(encoder, train if marks_in(train) is None else _OneClass(train), work)
    try_write_json(file, asdict(statistics))
    return statistics


class _OneClass(Relabeled):
    """Images that show several classes each, as if they showed one: mean and deviation do not depend on classes."""

    classes = ("any",)

    def label(self, number: int) -> int | None:
        return 0
