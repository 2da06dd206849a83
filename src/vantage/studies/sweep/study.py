"""A sweep: every value and seed is trained by the library's own loop and measured; each row is stored immediately."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from vantage.composition.codec import encode
from vantage.composition.field_types import expect
from vantage.composition.own_code import own_code
from vantage.data.sources.source import Source, refuse_path
from vantage.encoding import Work
from vantage.errors import UserError, WriteError, quantity
from vantage.evaluate import KNN, EvaluationProtocol, LinearCached
from vantage.evaluate.result import checked
from vantage.evaluate.task import check_protocol
from vantage.frozen.encoder import FrozenEncoder, load
from vantage.frozen.networks import trained_networks
from vantage.machine.usual_torch import usual_torch
from vantage.progress import Progress, QuietProgress
from vantage.storage.metrics import last_numbers
from vantage.studies.analyse.held_out import HeldOutInformation
from vantage.studies.sweep.baselines import baselines
from vantage.studies.sweep.checks import check_test_images, check_train_images, points_on, try_points
from vantage.studies.sweep.discarding import mark_to_discard, remove_marked, tidy_marked
from vantage.studies.sweep.nested_progress import NestedProgress, WarnsOnce
from vantage.studies.sweep.result import SweepResult
from vantage.studies.sweep.rows import SweepRow, information_fields, key_of, stored_rows
from vantage.studies.sweep.sweeps import Sweep, SweepPoint
from vantage.training import loop
from vantage.training.folder.writer import only_writer
from vantage.training.run import Run

__all__ = ["Study", "run_study"]

_IGNORED_FIELDS = ("data", "hardware", "monitoring", "seed")  # of the base, in the identity of a sweep


@dataclass(frozen=True)
class Study:
    """What is varied, in which run, and how the runs are evaluated."""

    sweep: Sweep
    """What is varied."""

    base: Run
    """The run that is varied, fitted to the images that `base.data` names, or to those given if it names none."""

    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds; each value is trained once with each."""

    information: HeldOutInformation | None = HeldOutInformation()
    """How I_NCE is estimated; `None`: it is not, which saves the time that it takes after every run."""

    protocols: tuple[EvaluationProtocol, ...] = field(default_factory=lambda: (LinearCached(), KNN(k=20)))
    """How accuracy is measured; the first protocol is plotted."""

    baselines: bool = True
    """Whether raw pixels and random encoders are evaluated too."""

    discard: bool = False
    """Whether the folder of a run is removed once its row is written."""

    def __post_init__(self) -> None:
        expect(self.sweep, Sweep, "the sweep", "a value, such as vantage.studies.sweep.Field('temperature', ('0.1',))")
        expect(self.base, Run, "the run", "a value, such as vantage.moco_v2().fit(images=10_000)")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise UserError(f"the seeds of the sweep are {self.seeds}: give at least one, and each only once")
        for protocol in self.protocols:
            check_protocol(protocol)
        names = [protocol.name for protocol in self.protocols]
        if not names or len(set(names)) < len(names):
            raise UserError(f"the protocols of the sweep are {names}: give at least one, and each name only once")


@usual_torch()
def run_study(
    study: Study, train: Source, test: Source, folder: Path | str, work: Work | None = None,
    progress: Progress | None = None,
) -> SweepResult:  # fmt: skip
    """Train and measure every value with every seed, and store the rows in a folder.

    `train` holds the training images that `base.data` selects (a source of your own, if its `path` is empty), and
    `test` others, on which I_NCE and accuracies are measured and nothing is chosen. Rows that the folder already holds
    are not measured again, unless the code of a part of yours was edited since, and interrupted training continues. If
    a signal stops the training, the rows so far are returned, with `finished` false.

    Raises `UserError`, before anything is trained, if values do not fit the images, `train` holds others than
    `base.data` selects, labels are missing, the test images are among the training images, or the folder holds another
    sweep or one that is still running.
    """
    refuse_path(train, test)
    with only_writer(Path(folder), "sweeping in"):
        return _StudyRun(study, train, test, Path(folder), work or Work(), progress or QuietProgress()).result()


class _StudyRun:
    """A study in progress."""

    def __init__(self, study: Study, train: Source, test: Source, folder: Path, work: Work, progress: Progress) -> None:
        self.study, self.folder, self.progress = study, folder, progress
        self.work = replace(work, progress=WarnsOnce(progress))
        self.train, self.test = train, check_test_images(train, test, self.work.progress)
        self.points = points_on(train, study.sweep, study.base)
        self.information = None if study.information is None else asdict(study.information)
        self.negatives = 0 if study.information is None else study.information.negative_count(len(test))
        self.protocols = [[protocol.name, protocol.version, asdict(protocol)] for protocol in study.protocols]  # pyright: ignore
        self.judged_by = (self.protocols, *own_code(study.protocols))
        self.source = None if study.base.data.path else train
        self.trained_on = check_train_images(self.points, study.base, train, self.source)
        try_points(self.points, train, progress)
        self.pairs = [(point, seed) for seed in study.seeds for point in self.points]
        # Once: own code may change what it names, as when it counts its calls.
        self.keys = {(id(point), seed): self._key_of(point, seed) for point, seed in self.pairs}
        self.rows = stored_rows(folder, self._identity())

    def _identity(self) -> dict[str, Any]:
        """The settings that must be equal for rows to belong in one table; values and seeds may be added."""
        study = self.study
        settings = {name: value for name, value in asdict(study.sweep).items() if name != "values"}  # pyright: ignore
        return {
            "sweep": study.sweep.name,
            "settings": settings,
            "axis": study.sweep.axis,
            "train": {"images": len(self.train), "fingerprint": self.train.fingerprint()},
            "test": {"images": len(self.test), "fingerprint": self.test.fingerprint()},
            "information": self.information,
            "protocols": self.protocols,
            "base": {name: setting for name, setting in encode(study.base).items() if name not in _IGNORED_FIELDS},
        }

    def result(self) -> SweepResult:
        """Train and measure everything, seed by seed, so that every value has a row early on."""
        pairs = self.pairs
        missing = [pair for pair in pairs if self._row_key(*pair) not in self.rows]
        for pair in pairs:
            tidy_marked(self._run_folder(*pair), has_row=self._row_key(*pair) in self.rows)
        steps = sum(self._steps(point) for point, _ in pairs)
        completed_steps = steps - sum(self._steps(point) for point, _ in missing)
        self.progress.start(f"sweep {self.study.sweep.name}", steps, completed_steps)
        if completed_steps:
            self.progress.line(f"done already: {len(pairs) - len(missing)} of {quantity(len(pairs), 'run')}")
        finished = True
        self.rows.write()  # before the first training, which may be interrupted
        try:
            for point, seed in missing:
                finished = self._measure(point, seed, completed_steps)
                if not finished:
                    break
                completed_steps += self._steps(point)
            if finished:
                self._judge_baselines()
        except BaseException:
            self._clean_up()
            raise
        finally:
            self.progress.stop()
        return self._result(finished)

    def _clean_up(self) -> None:
        """After a failure without any row or checkpoint, remove what would block another sweep in this folder."""
        runs = self.folder / "runs"
        if any(self.rows) or (runs.exists() and any(runs.iterdir())):
            return
        if runs.exists():
            runs.rmdir()
        self.rows.file.unlink(missing_ok=True)

    def _steps(self, point: SweepPoint) -> int:
        return point.run.epochs * point.run.steps_per_epoch(len(self.train))

    def _measure(self, point: SweepPoint, seed: int, steps_before: int) -> bool:
        """Train one value with one seed and store its row; returns whether the training finished."""
        name = f"{point.label}, seed {seed}"
        run, run_folder = replace(point.run, seed=seed), self._run_folder(point, seed)
        progress = NestedProgress(self.progress, steps_before, name, run.recipe)
        try:
            exists = (run_folder / "settings.json").exists()
            if exists:
                outcome = loop.resume(run_folder, run, progress, source=self.source)
            else:
                outcome = loop.train(run, run_folder, progress, source=self.source)
        except WriteError:  # not the fault of this value
            raise
        except UserError as problem:
            raise UserError(f"{name}: {problem}. Finished rows are kept; leave this value out to continue") from problem
        if not outcome.finished:
            return False
        self.progress.advance(steps_before + self._steps(point), f"{name}  measuring")
        loss, seconds = last_numbers(run_folder, "loss", "seconds")
        row = SweepRow(
            self._row_key(point, seed), run.recipe, point.label, point.number, seed, self._accuracy(load(run_folder)),
            **self._shared(run_folder), loss=loss, seconds=seconds,
        )  # fmt: skip
        if self.study.discard:
            mark_to_discard(run_folder)
        self.rows.add(row.key, row)
        self.progress.line(f"{name}: {row.words()}")
        remove_marked(run_folder)
        return True

    def _run_folder(self, point: SweepPoint, seed: int) -> Path:
        key = key_of(replace(point.run, seed=seed), self.trained_on[point.run.data])
        return self.folder / "runs" / f"{_folder_name(point.label)}-seed-{seed}-{key[:6]}"

    def _shared(self, run_folder: Path) -> dict[str, Any]:
        if self.study.information is None:
            return {}
        return information_fields(self.study.information.of(trained_networks(run_folder), self.test, self.work))

    def _baselines(self) -> list[tuple[SweepRow, Callable[[], FrozenEncoder]]]:
        if not self.study.baselines:
            return []
        images = [self.train.fingerprint(), self.test.fingerprint()]
        return list(baselines(self.points, self.study.seeds, images, *self.judged_by))

    def _judge_baselines(self) -> None:
        for empty, make in self._baselines():
            if empty.key not in self.rows:
                self.rows.add(empty.key, replace(empty, accuracy=self._accuracy(make())))

    def _accuracy(self, encoder: FrozenEncoder) -> dict[str, float]:
        judged = ((each.name, each(encoder, self.train, self.test, self.work)) for each in self.study.protocols)
        outcomes = {name: checked(outcome, name) for name, outcome in judged}
        return {name: next(iter(outcome.measures.values())) for name, outcome in outcomes.items()}

    def _row_key(self, point: SweepPoint, seed: int) -> str:
        return self.keys[id(point), seed]

    def _key_of(self, point: SweepPoint, seed: int) -> str:
        images = [self.trained_on[point.run.data], self.test.fingerprint()]
        return key_of(replace(point.run, seed=seed), images, self.information, *self.judged_by)

    def _result(self, finished: bool) -> SweepResult:
        """The rows of this study, in order."""
        keys = [(self._row_key(point, seed), point) for point in self.points for seed in self.study.seeds]
        rows = [replace(self.rows[key], label=p.label, number=p.number) for key, p in keys if key in self.rows]
        baselines = [
            replace(self.rows[row.key], label=row.label) for row, _ in self._baselines() if row.key in self.rows
        ]
        most = len(self.test) if self.study.information is None else self.study.information.images
        return SweepResult(
            self.study.sweep.name, self.study.sweep.axis, tuple(rows), tuple(baselines), finished,
            self.negatives, min(len(self.test), most),
        )  # fmt: skip


def _folder_name(label: str) -> str:
    """A label in a form that can be part of a folder name."""
    return "".join(letter if letter.isalnum() or letter in ".-" else "_" for letter in label).strip("_.") or "value"
