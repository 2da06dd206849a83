"""Sweeps of two values and two seeds on small images, and how they are made."""

from dataclasses import replace
from pathlib import Path

from small_runs import SIZE, small_run
from tiny import images

from vantage.data import Source, open_source
from vantage.encoding import Work
from vantage.evaluate import KNN, LinearCached
from vantage.studies.analyse import HeldOutInformation
from vantage.studies.sweep import CropBound, Study, Sweep, SweepResult, run_study

TEST = images(24, seed=3, size=SIZE)
CROPS = CropBound((0.2, 0.6))


def study_of(images_path: str, sweep: Sweep = CROPS, recipe: str = "moco_v2", epochs: int = 1) -> Study:
    """A small study."""
    run = small_run(recipe, images_path, epochs)
    run = replace(run, monitoring=replace(run.monitoring, checkpoint_minutes=10.0))
    information = HeldOutInformation(negatives=5, draws=2)
    protocols = (LinearCached(l2=(1e-2,), iterations=20), KNN(k=3))
    return Study(sweep, run, (0, 1), information, protocols)


def result_of(study: Study, folder: Path, test: Source = TEST) -> SweepResult:
    """The study made on the CPU, without a cache of its neighbors."""
    work = Work("cpu", num_workers=1, cache=folder.parent / "cache")
    return run_study(study, open_source(study.base.data.path), test, folder, work)
