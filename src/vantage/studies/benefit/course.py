"""Does pretraining help on these images? Every way at every number of labels with every seed, each kept at once.

k: images of a subset
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from jaxtyping import Int
from torch import Tensor

from vantage.curation import find_leaks, write_findings
from vantage.data.sources.names import text_of
from vantage.data.sources.source import Source
from vantage.data.splits import check_classes, train_and_test, with_labels
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate import FineTune, LinearCached
from vantage.evaluate.protocols.finetune.finetune import share_of_each_class
from vantage.frozen.encoder import FrozenEncoder, load
from vantage.frozen.outside import outside_weights
from vantage.planning.words import clock, duration
from vantage.progress import QuietProgress
from vantage.storage.cache import read_json
from vantage.storage.provenance import read_provenance
from vantage.storage.results import KeptResults, refuse_others
from vantage.studies.benefit.figure import write_benefit
from vantage.studies.benefit.plan import Benefit, Budget
from vantage.studies.benefit.result import BenefitResult, Cell, Images, packed
from vantage.studies.benefit.timing import Job, expected, fitted, measured
from vantage.studies.benefit.ways import Labeled, can_choose, ways_of, worth
from vantage.training.feed import training_part
from vantage.training.writer import only_writer

__all__ = ["benefit", "check"]

_FILE, _WHAT = "benefit.json", "comparison with pretraining"
_LONG = 3 * 3600
_USUAL = Benefit()


def benefit(
    run: Path,
    images: Source,
    test: Source | None,
    folder: Path,
    plan: Benefit = _USUAL,
    *,
    others: Sequence[Path] = (),
    minutes: float | None = None,
    network: int | None = None,
    work: Work | None = None,
) -> BenefitResult:
    """Compare a run, fine-tuned and frozen, with training from scratch, a random network and raw pixels, at several
    numbers of labels, and keep cells, verdict, table and picture in a folder.

    `images` are labeled; if `test` is omitted, a fifth of each class is the test set. For each seed and share a subset
    of each class is drawn, at least one image, and every way makes a classifier of that same subset. Training from
    scratch and fine-tuning have the same network, steps, crops and learning rates to choose from; what is chosen is
    chosen on images held out of the subset, and test labels only score. `others` are other weights or runs, used like
    the run. With `minutes`, the epochs are as many as fit.

    The expected time is reported before anything is trained. A cell that the folder holds is not made again, and an
    interrupted training continues; the epochs are then those of before. Raises `UserError` where the images do not
    suit, where the minutes do not suffice, and where the folder holds another comparison.
    """
    with only_writer(folder, "comparing in"):
        course = _Course(run, images, test, folder, plan, others, network, work or Work())
        result = course.result(None if minutes is None else 60 * minutes)
        write_benefit(result, folder)
        if result.images.leaks:
            write_findings(course.leaks, folder / "leaks.csv", folder / "leaks.png")
    return result


def check(run: Path, folder: Path, *, others: Sequence[Path] = (), network: int | None = None) -> None:
    """Raises what `benefit` would raise of the runs and the folder, before any image is read."""
    load(run, network)
    _named(run, others)
    refuse_others(folder / _FILE, _WHAT)


class _Course:
    """A comparison in progress."""

    def __init__(
        self,
        run: Path,
        images: Source,
        test: Source | None,
        folder: Path,
        plan: Benefit,
        others: Sequence[Path],
        network: int | None,
        work: Work,
    ) -> None:
        self.began = time.monotonic()
        self.plan, self.folder, self.progress = plan, folder, work.progress
        self.work = replace(work, progress=_Unheard())
        self.encoder = load(run, network)
        self.others = _named(run, others)
        self.ways = ways_of(self.encoder, self.others, network)
        train, scored, self.split = train_and_test(images, test)
        self.data = Labeled(*with_labels(train), *with_labels(scored))
        check_classes(self.data.label, self.data.test_label, scored.classes, self.progress)
        self.jobs = self._jobs()
        self.kept = read_json(folder / _FILE)
        self.leaks = find_leaks(self.encoder, self.data.train, self.data.test, work)
        self.seen = _seen(run, self.encoder, images, self.data.test) if test is None else None

    def _rows(self, share: float, seed: int) -> Int[Tensor, "k"]:
        return share_of_each_class(self.data.label, share, seed)

    def _jobs(self) -> list[Job]:
        """All classifiers; a share that has no more labels than a smaller one is left out."""
        shares: dict[int, float] = {}
        for share in sorted(self.plan.shares):
            images = len(self._rows(share, self.plan.seeds[0]))
            if images in shares:
                self.progress.line(f"{100 * share:g} % are the same {images:,} labels as {100 * shares[images]:g} %")
            shares.setdefault(images, share)
        jobs = []
        for seed, share in replace(self.plan, shares=tuple(shares.values())).each():
            rows = self._rows(share, seed)
            jobs += [Job(way, seed, share, len(rows), can_choose(self.data.label[rows])) for way in self.ways]
        return jobs

    def result(self, seconds: float | None) -> BenefitResult:
        """Make what is missing."""
        budget = self._budget_before() if seconds is not None else self.plan.budget
        kept = None if budget is None else self._open(budget)
        missing = [job for job in self.jobs if kept is None or _key(job) not in kept]
        if missing:
            budget = self._timed(missing, budget, seconds)
        assert budget is not None
        kept = kept or self._open(budget)
        self._make(missing, budget, kept)
        images = Images(len(self.data.train), len(self.data.test), self.split, self._leaked(), self.seen)
        cells = sorted((kept[_key(job)] for job in self.jobs), key=lambda cell: cell.labels)
        return BenefitResult(tuple(cells), tuple(way.name for way in self.ways), images, budget)

    def _budget_before(self) -> Budget | None:
        """The budget under which cells were made before; None where there are none."""
        try:
            return replace(self.plan.budget, epochs=self.kept["budget"]["epochs"]) if self.kept["rows"] else None
        except (TypeError, KeyError):
            return None

    def _open(self, budget: Budget) -> KeptResults[Cell]:
        about = {
            "train": {"images": len(self.data.train), "fingerprint": self.data.train.fingerprint()},
            "test": {"images": len(self.data.test), "fingerprint": self.data.test.fingerprint()},
            "encoder": self.encoder.digest(),
            "view": repr(self.encoder.view),
            "budget": asdict(budget),
            "protocols": [[kind.name, kind.version] for kind in (FineTune, LinearCached)],
        }
        return KeptResults(self.folder / _FILE, about, _WHAT, _read, asdict)

    def _timed(self, jobs: list[Job], budget: Budget | None, seconds: float | None) -> Budget:
        """The budget, after a line about the time."""
        self.progress.line("measuring the speed of this machine on these images")
        first = self.plan.budget if budget is None else budget
        networks = {"": self.encoder} | {one.digest(): one for one in self.others.values()}
        self.paces = {digest: measured(one, self.data, first, self.work) for digest, one in networks.items()}
        sizes = len(self.data.train), len(self.data.test)
        if budget is None:
            assert seconds is not None
            left = seconds - (time.monotonic() - self.began)
            budget = fitted(self.plan, jobs, self.paces, *sizes, left)
        total = sum(expected(jobs, self.paces, budget, *sizes).values())
        self.progress.line(
            f"{len(jobs)} of {len(self.jobs)} classifiers are to be made, by {budget.epochs} epochs or more: about"
            f" {duration(total)}, until {clock(total)}"
        )
        if seconds is None and total > _LONG:
            self.progress.line("for less, --minutes 60 makes the trainings shorter; or give fewer --seeds or --shares")
        return budget

    def _leaked(self) -> tuple[int, ...]:
        names, test = set(self.leaks.columns["test_image"]), self.data.test
        return tuple(number for number in range(len(test)) if text_of(test.name(number)) in names)

    def _make(self, jobs: list[Job], budget: Budget, kept: KeptResults[Cell]) -> None:
        """Make and keep each cell."""
        if not jobs:
            return
        seconds = expected(jobs, self.paces, budget, len(self.data.train), len(self.data.test))
        done = 0.0
        self.progress.start("seconds as expected", max(1, round(sum(seconds.values()))))
        try:
            for job in jobs:
                began, rows = time.monotonic(), self._rows(job.share, job.seed)
                right, chosen = worth(job.way, job.seed, self.data, rows, budget, self.work)
                taken = round(time.monotonic() - began, 2)
                kept.add(_key(job), Cell(job.way.name, job.share, job.images, job.seed, packed(right), chosen, taken))
                done += seconds[job]
                self.progress.advance(round(done), f"{job.way.name}, {job.images:,} labels, seed {job.seed}")
                top1 = 100 * float(right.double().mean())
                self.progress.line(f"seed {job.seed}, {job.images:,} labels, {job.way.name}: {top1:.1f} %")
        finally:
            self.progress.stop()


class _Unheard(QuietProgress):
    """The progress of the parts: the whole has its own, and has warned of the classes once."""

    def warn(self, text: str) -> None:
        """Nothing."""


def _key(job: Job) -> str:
    return ", ".join(filter(None, (job.way.name, job.way.digest[:12], f"{job.share:g}", f"seed {job.seed}")))


def _read(row: dict[str, Any]) -> Cell:
    row.pop("key")
    return Cell(**row)


def _named(run: Path, others: Sequence[Path]) -> dict[str, FrozenEncoder]:
    """Other weights by the names of tables: their own, or those of their folders. Raises `UserError` where one is named
    twice."""
    names = {}
    for path in others:
        encoder = load(path)
        name = encoder.name if outside_weights(path) else path.resolve().name
        if name in names or path.resolve() == run.resolve():
            raise UserError(f"{path} is named twice: name each run and each file once")
        names[name] = encoder
    return names


def _seen(run: Path, encoder: FrozenEncoder, images: Source, test: Source) -> int | None:
    """How many of the test images, which are some of `images`, the run was pretrained on; None where that is not known.
    A test set of its own may have the same names."""
    records = [] if outside_weights(run) else read_provenance(run)
    try:
        part = training_part(images, encoder.run.data)
    except UserError:  # it was trained on more images than these
        return None
    if not records or records[0]["data"].get("fingerprint") != part.fingerprint():
        return None
    trained = {part.name(number) for number in range(len(part))}
    return sum(test.name(number) in trained for number in range(len(test)))
