"""What is checked before a sweep trains anything."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from vantage.data.sources.renumbered import RenumberedSource
from vantage.data.sources.source import Source
from vantage.data.splits import LabeledSplit, check_apart
from vantage.errors import UserError
from vantage.progress import Progress
from vantage.studies.sweep.sweeps import Sweep, SweepPoint
from vantage.training.backbone import evaluation_view
from vantage.training.images import open_images
from vantage.training.run import Data, Run
from vantage.training.start.doubts import doubts
from vantage.training.start.epochs import count_epochs
from vantage.training.start.try_parts import try_branches, try_networks

__all__ = ["check_test_images", "check_train_images", "points_on", "try_points"]

_TRIAL_IMAGES = 16  # images that views are tried on before anything is trained


def points_on(train: Source, sweep: Sweep, base: Run) -> tuple[SweepPoint, ...]:
    """The points of a sweep; schedules among its values count epochs of these images."""
    return tuple(replace(point, run=count_epochs(point.run, len(train))) for point in sweep.points(base))


def check_test_images(train: Source, test: Source, progress: Progress) -> Source:
    """The test images, with the class numbers of the training images; `progress` gets the warning of `check_classes`.
    Raises `UserError` if labels are missing, if test images are training images, and as `check_classes` does, since an
    evaluation would after hours of training."""
    check_apart(train, test)
    renumbered = RenumberedSource(test, train.classes)
    LabeledSplit.of(train, renumbered, progress)
    return renumbered


def check_train_images(
    points: Sequence[SweepPoint], base: Run, train: Source, source: Source | None
) -> dict[Data, str]:
    """Fingerprints of the images that the points are trained on, by the settings that select them from `source` or from
    their path. Raises `UserError` if those of the base are not `train`."""
    given = train.fingerprint()
    selections = dict.fromkeys((base.data, *(point.run.data for point in points)))
    fingerprints = {data: open_images(data, source=source)[0].fingerprint() for data in selections}
    if fingerprints[base.data] != given:
        raise UserError(
            f"the training images given ({len(train):,}) are not those that base.data selects, on which the sweep would"
            " train: give vantage.training.images.open_images(base.data)[0], or images of your own and no data.path"
        )
    return fingerprints


def try_points(points: Sequence[SweepPoint], train: Source, progress: Progress) -> None:
    """Raises `UserError` that names a value whose views or branches do not fit the images. `progress` gets a line for
    each doubt about a run, with the values that it is about."""
    labels = dict[str, list[str]]()
    for point in points:
        _try_point(point, train)
        for line in doubts(point.run):
            labels.setdefault(line, []).append(point.label)
    for line, these in labels.items():
        progress.line(line if len(these) == len(points) else f"{'; '.join(these)}: {line}")


def _try_point(point: SweepPoint, train: Source) -> None:
    step = max(1, len(train) // _TRIAL_IMAGES)
    try:
        generator = torch.Generator().manual_seed(0)
        for number in range(0, len(train), step):
            crops = point.run.views.crop(train.image(number), generator)
            point.run.views.finish(tuple(crop[None] for crop in crops), generator)
        evaluation_view(point.run)
        try_branches(point.run, len(train))
        try_networks(point.run, train)
    except UserError as problem:
        raise UserError(f"the value {point.label} does not fit: {problem}") from problem
