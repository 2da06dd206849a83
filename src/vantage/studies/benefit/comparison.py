"""Does pretraining help on these images? Every way, number of labels and seed; each result is stored immediately.

k: images in a subset
"""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from jaxtyping import Int
from torch import Tensor

from vantage.curation import find_leaks, write_findings
from vantage.data.sources.names import text_of
from vantage.data.sources.source import Source, refuse_path
from vantage.data.splits import LabeledSplit, train_and_test
from vantage.durations import check_minutes, clock, duration
from vantage.encoding import Work
from vantage.errors import UserError, quantity
from vantage.evaluate import FineTune, LinearCached
from vantage.evaluate.protocols.finetune.finetune import share_of_each_class
from vantage.frozen.encoder import load
from vantage.machine.usual_torch import usual_torch
from vantage.progress import QuietProgress, task
from vantage.storage.cache import read_json
from vantage.storage.results import ResultsFile, refuse_others
from vantage.studies.benefit.encoders import count_pretraining_images, encoders_by_name
from vantage.studies.benefit.figure import write_benefit
from vantage.studies.benefit.plan import BenefitPlan, Budget
from vantage.studies.benefit.result import BenefitResult, ClassifierResult, SplitImages, pack_bits
from vantage.studies.benefit.timing import Job, estimate_seconds, fit_budget, measure_unit_times
from vantage.studies.benefit.ways import all_ways, can_choose, train_classifier
from vantage.training.folder.writer import only_writer

__all__ = ["check", "measure_benefit"]

_FILE, _WHAT = "benefit.json", "comparison with pretraining"
_LONG = 3 * 3600
_DEFAULT_PLAN = BenefitPlan()


@usual_torch()
def measure_benefit(
    run: Path | str,
    images: Source,
    test: Source | None,
    folder: Path | str,
    plan: BenefitPlan = _DEFAULT_PLAN,
    *,
    others: Sequence[Path | str] = (),
    minutes: float | None = None,
    network: int | None = None,
    work: Work | None = None,
) -> BenefitResult:
    """Compare a run, fine-tuned and frozen, with training from scratch, a random network and raw pixels, at several
    numbers of labels, and store the classifiers' results, verdict, table and picture in a folder.

    `images` are labeled; if `test` is omitted, a fifth of each class is the test set. For each seed and share, a subset
    is drawn that has at least one image of each class, and every way trains a classifier on that same subset. Training
    from scratch and fine-tuning use the same network, steps, crops and candidate learning rates. Choices are made on
    images held out of the subset; test labels are used only for scoring. `others` are other weights or runs, used like
    the run. With `minutes`, training lasts as many epochs as fit.

    The expected time is reported before anything is trained. Results that the folder already holds are not computed
    again, and an interrupted comparison continues with the same epochs. Raises `UserError` if the images are not
    suitable, if the minutes do not suffice, or if the folder holds another comparison.
    """
    run, folder = Path(run), Path(folder)
    refuse_path(images, test)
    if minutes is not None:
        check_minutes(minutes, f"minutes is {minutes}")
    with only_writer(folder, "comparing in"):
        comparison = _Comparison(run, images, test, folder, plan, [*map(Path, others)], network, work or Work())
        result = comparison.result(None if minutes is None else 60 * minutes)
        write_benefit(result, folder)
        if result.images.leaks:
            write_findings(comparison.leaks, folder / "leaks.csv", folder / "leaks.png")
    return result


def check(run: Path, folder: Path, *, others: Sequence[Path] = (), network: int | None = None) -> None:
    """Check the runs and the folder before any image is read; raises the errors that `measure_benefit` would raise."""
    load(run, network)
    encoders_by_name(run, others)
    refuse_others(folder / _FILE, _WHAT)


class _Comparison:
    """A comparison in progress."""

    def __init__(
        self,
        run: Path,
        images: Source,
        test: Source | None,
        folder: Path,
        plan: BenefitPlan,
        others: Sequence[Path],
        network: int | None,
        work: Work,
    ) -> None:
        self.start = time.monotonic()
        self.plan, self.folder, self.progress = plan, folder, work.progress
        self.work = replace(work, progress=_NoWarnings())
        self.encoder = load(run, network)
        self.others = encoders_by_name(run, others)
        self.ways = all_ways(self.encoder, self.others, network)
        train, test_source, self.split = train_and_test(images, test)
        self.data = LabeledSplit.of(train, test_source, self.progress)
        self.jobs = self._jobs()
        self.previous = read_json(folder / _FILE)
        self.leaks = find_leaks(self.encoder, self.data.train, self.data.test, work)
        self.seen = count_pretraining_images(run, self.encoder, images, self.data.test) if test is None else None

    def _rows(self, share: float, seed: int) -> Int[Tensor, "k"]:
        return share_of_each_class(self.data.label, share, seed)

    def _jobs(self) -> list[Job]:
        """All classifiers to train; a share with no more labels than a smaller one is left out."""
        shares: dict[int, float] = {}
        for share in sorted(self.plan.shares):
            images = len(self._rows(share, self.plan.seeds[0]))
            if images in shares:
                self.progress.line(f"{100 * share:g} % are the same {images:,} labels as {100 * shares[images]:g} %")
            shares.setdefault(images, share)
        jobs = []
        for seed, share in replace(self.plan, shares=tuple(shares.values())).pairs():
            rows = self._rows(share, seed)
            jobs += [Job(way, seed, share, len(rows), can_choose(self.data.label[rows])) for way in self.ways]
        return jobs

    def result(self, seconds: float | None) -> BenefitResult:
        """Train the missing classifiers, and return all results."""
        budget = self._previous_budget() if seconds is not None else self.plan.budget
        results = None if budget is None else self._open(budget)
        missing = [job for job in self.jobs if results is None or _key(job) not in results]
        if missing:
            budget = self._plan_budget(missing, budget, seconds)
        assert budget is not None
        results = results or self._open(budget)
        self._make(missing, budget, results)
        images = SplitImages(len(self.data.train), len(self.data.test), self.split, self._leak_numbers(), self.seen)
        cells = sorted((results[_key(job)] for job in self.jobs), key=lambda cell: cell.labels)
        return BenefitResult(tuple(cells), tuple(way.name for way in self.ways), images, budget)

    def _previous_budget(self) -> Budget | None:
        """The budget of the results that the folder already holds; None if there are none."""
        try:
            epochs = self.previous["budget"]["epochs"] if self.previous["rows"] else None
        except (TypeError, KeyError):
            return None
        return replace(self.plan.budget, epochs=epochs) if type(epochs) is int and epochs > 0 else None

    def _open(self, budget: Budget) -> ResultsFile[ClassifierResult]:
        identity = {
            "train": {"images": len(self.data.train), "fingerprint": self.data.train.fingerprint()},
            "test": {"images": len(self.data.test), "fingerprint": self.data.test.fingerprint()},
            "encoder": self.encoder.digest(),
            "view": repr(self.encoder.view),
            "budget": asdict(budget),
            "protocols": [[kind.name, kind.version] for kind in (FineTune, LinearCached)],
        }
        results = ResultsFile(self.folder / _FILE, identity, _WHAT, _parse_classifier, asdict)
        for job, cell in ((job, results[_key(job)]) for job in self.jobs if _key(job) in results):
            facts = (cell.way, cell.share, cell.labels, cell.seed, len(cell.right))
            if facts != (job.way.name, job.share, job.images, job.seed, 2 * math.ceil(len(self.data.test) / 8)):
                raise UserError(f"{results.file} is damaged ({_key(job)} is another result): name another folder")
        return results

    def _plan_budget(self, jobs: list[Job], budget: Budget | None, seconds: float | None) -> Budget:
        """The budget; prints a line about the expected time."""
        self.progress.line("measuring the speed of this machine on these images")
        first = self.plan.budget if budget is None else budget
        networks = {"": self.encoder} | {one.digest(): one for one in self.others.values()}
        self.unit_times = {
            digest: measure_unit_times(one, self.data, first, self.work) for digest, one in networks.items()
        }
        sizes = len(self.data.train), len(self.data.test)
        if budget is None:
            assert seconds is not None
            remaining = seconds - (time.monotonic() - self.start)
            budget = fit_budget(self.plan, jobs, self.unit_times, *sizes, remaining)
        total = sum(estimate_seconds(jobs, self.unit_times, budget, *sizes).values())
        length = f"at least {quantity(budget.epochs, 'epoch')}"
        self.progress.line(
            f"{len(jobs)} of {len(self.jobs)} classifiers are to be trained, each for {length}: about"
            f" {duration(total)}, until {clock(total)}"
        )
        if seconds is None and total > _LONG:
            self.progress.line("to save time, give --minutes 60 for shorter trainings, or fewer --seeds or --shares")
        return budget

    def _leak_numbers(self) -> tuple[int, ...]:
        names, test = set(self.leaks.columns["test_image"]), self.data.test
        return tuple(number for number in range(len(test)) if text_of(test.name(number)) in names)

    def _make(self, jobs: list[Job], budget: Budget, results: ResultsFile[ClassifierResult]) -> None:
        """Train each classifier and store its result."""
        if not jobs:
            return
        seconds = estimate_seconds(jobs, self.unit_times, budget, len(self.data.train), len(self.data.test))
        expected_seconds = 0.0
        with task(self.progress, "expected seconds", max(1, round(sum(seconds.values())))):
            for job in jobs:
                start, rows = time.monotonic(), self._rows(job.share, job.seed)
                correct, choice = train_classifier(job.way, job.seed, self.data, rows, budget, self.work)
                seconds_taken = round(time.monotonic() - start, 2)
                results.add(
                    _key(job),
                    ClassifierResult(
                        job.way.name, job.share, job.images, job.seed, pack_bits(correct), choice, seconds_taken
                    ),
                )
                expected_seconds += seconds[job]
                self.progress.advance(
                    round(expected_seconds), f"{job.way.name}, {job.images:,} labels, seed {job.seed}"
                )
                top1 = 100 * float(correct.double().mean())
                self.progress.line(f"seed {job.seed}, {job.images:,} labels, {job.way.name}: {top1:.1f} %")


class _NoWarnings(QuietProgress):
    """Hides the progress of the parts. The comparison shows its own, and has already warned about classes."""

    def warn(self, text: str) -> None:
        """Do nothing."""


def _key(job: Job) -> str:
    return ", ".join(filter(None, (job.way.name, job.way.digest[:12], f"{job.share:g}", f"seed {job.seed}")))


def _parse_classifier(row: dict[str, Any]) -> ClassifierResult:
    row.pop("key")
    cell = ClassifierResult(**row)
    bytes.fromhex(cell.right)
    if not isinstance(cell.chosen, dict) or not isinstance(cell.seconds, float | int):
        raise ValueError(f"a row is malformed: {str(row)[:200]!r}")
    return cell
