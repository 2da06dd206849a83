"""The demonstration of `vantage demo`: from images to a backbone in minutes, without a download."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

from vantage.data import Photographs
from vantage.encoding import Work
from vantage.errors import TimeTooShort, UserError
from vantage.estimators import InfoNCE
from vantage.evaluate import KNN, LinearCached, evaluate
from vantage.facts.results import BASELINES
from vantage.planning import plan
from vantage.planning.measured_rungs import SpeedMeasure
from vantage.planning.speed import measure_speed
from vantage.progress import Progress, QuietProgress
from vantage.recipes import simclr
from vantage.report import write_report
from vantage.storage.tables import Table
from vantage.training.folder import settings
from vantage.training.loop import TrainingOutcome, resume, train
from vantage.training.run import Run
from vantage.views import IMAGENET, Augmentation, ColorJitter, Grayscale, HorizontalFlip, RandomResizedCrop, Views

__all__ = ["MARGIN", "DemoResult", "demo", "demo_recipe", "plan_demo", "plan_for_any_machine"]

_MINUTES, _MOST_MINUTES = 1.5, 15
MARGIN = 5.0
"""Points of kNN accuracy by which the trained encoder must beat both baselines to win clearly."""


@dataclass(frozen=True)
class DemoResult:
    """The results of the demonstration."""

    folder: Path
    """The run's folder."""

    accuracies: dict[str, tuple[float, float]]
    """kNN and linear accuracy on the test patches, in percent, by encoder: raw pixels, random encoder, trained
    encoder."""

    seconds: float
    """How long everything took."""

    @property
    def page(self) -> Path:
        """The report about the run, for a browser (`vantage.report`)."""
        return self.folder / "report.html"

    @property
    def won(self) -> bool:
        """Whether the trained encoder beats both baselines by `MARGIN` points of kNN accuracy and is no worse under a
        linear classifier."""
        *others, (knn, linear) = self.accuracies.values()
        return all(knn >= other + MARGIN and linear >= rival for other, rival in others)

    def lines(self) -> list[str]:
        """The results as a table, with a verdict and the next steps."""
        rows = tuple((name, f"{knn:.1f}", f"{linear:.1f}") for name, (knn, linear) in self.accuracies.items())
        verdict = "The trained encoder wins clearly."
        if not self.won:
            verdict = f"The trained encoder did NOT win clearly (by {MARGIN:g} points of kNN, and linear too)."
        return [
            *Table(("accuracy in %", "kNN", "linear"), rows).lines(),
            verdict,
            f"The task: which of {len(Photographs().classes)} photographs a patch is from; no pixel is in both splits.",
            f"The backbone is in {self.folder} (took {self.seconds:.0f} s in all).",
            f"For curves, nearest neighbors and a map of the patches, open {self.page} in a browser.",
            f"Next: vantage export {self.folder} --to safetensors",
        ]


def demo_recipe(size: int = 32) -> Run:
    """SimCLR with weak views: τ = 0.2, color jitter at two fifths of its strength, and grayscale less often, because
    photographs differ in their colors. Chosen on part of the training patches, without the test patches."""
    jitter = ColorJitter(0.16, 0.16, 0.16, 0.04, probability=0.8)
    operations = (HorizontalFlip(0.5), jitter, Grayscale(0.1), IMAGENET.normalize())
    view = Augmentation(RandomResizedCrop(size, (0.2, 1.0)), operations)
    base = simclr(size=size)
    branches = tuple(replace(branch, estimator=InfoNCE(0.2)) for branch in base.branches)
    return replace(base, recipe="demo", views=Views((view, view)), branches=branches)


def plan_demo(measure: SpeedMeasure = measure_speed, minutes: float = _MINUTES) -> Run:
    """The run of the demonstration: `demo_recipe`, planned for some minutes on this machine (`vantage.plan`).

    `measure` returns the speed of a run, in place of timed steps. No training patches are held out, since the test
    patches are used for evaluation.
    """
    changes = {"data.path": "photographs:train", "data.hold_out": 0.0, "monitoring.log_every": 2}
    return plan(Photographs("train"), minutes, demo_recipe, changes=changes, measure=measure)


def plan_for_any_machine(progress: Progress, measure: SpeedMeasure = measure_speed) -> Run:
    """`plan_demo`, with more minutes if the usual ones are too short on this machine, and a line that says so.

    Raises `UserError` if more than a quarter of an hour would be needed.
    """
    progress.line("measuring the speed of this machine")
    try:
        return plan_demo(measure)
    except TimeTooShort as problem:
        if problem.minutes > _MOST_MINUTES:
            raise UserError(
                f"this machine is too slow or too busy: the demonstration would take {problem.minutes} minutes or more."
                " Try again when no other program is running"
            ) from problem
        progress.line(f"this machine is slow or busy, so training takes up to {problem.minutes} minutes")
        return plan_demo(measure, float(problem.minutes))


def demo(folder: Path, progress: Progress | None = None) -> DemoResult:
    """Train on patches of photographs that come with scikit-image and scikit-learn, compare with the baselines, and
    write the report about the run on the test patches. Needs no network connection.

    A demonstration that was stopped continues in the same folder. Raises `UserError` if the folder holds another run,
    and `KeyboardInterrupt` if a signal stopped the training.
    """
    start = time.monotonic()
    progress = progress or QuietProgress()
    if not _train(folder, progress).finished:
        raise KeyboardInterrupt
    columns: dict[str, list[float]] = {name: [] for name in (*BASELINES, "trained encoder")}
    for protocol in (KNN(k=20, temperature=0.1), LinearCached(l2=(1e-2,))):
        sources = Photographs("train"), Photographs("test")
        result = evaluate(folder, protocol, *sources, baselines=True, work=Work(progress=progress))
        for name, values in columns.items():
            values.append(result.outcomes["demo" if name == "trained encoder" else name].accuracy.top1)
    accuracies = {name: (knn, linear) for name, (knn, linear) in columns.items()}
    result = DemoResult(folder, accuracies, 0.0)
    write_report([folder], Photographs("test"), result.page, work=Work(progress=progress))
    return replace(result, seconds=time.monotonic() - start)


def _train(folder: Path, progress: Progress) -> TrainingOutcome:
    """Train the run of the demonstration, or continue it if the folder already holds it."""
    if not (folder / "settings.json").exists():
        return train(plan_for_any_machine(progress), folder, progress)
    try:
        recipe = settings.read(folder).recipe
    except UserError:
        recipe = ""
    if recipe != demo_recipe().recipe:
        raise UserError(f"{folder} already holds a run: name another folder with --out, or remove it")
    return resume(folder, progress=progress)
