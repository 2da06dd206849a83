"""Images that could be read before a run, and cannot while it trains: they were removed or damaged, or a disk fails."""

import torch

from vantage import processes
from vantage.data import ResidentImages, StreamedImages
from vantage.data.scan import forget_scans, too_many
from vantage.errors import DataError
from vantage.progress import Progress

__all__ = ["report_missed"]


def report_missed(
    images: ResidentImages | StreamedImages, count: int, progress: Progress, then: str = "resume the run"
) -> None:
    """Warn of those of `count` images that an epoch could not read and replaced by others. All processes call it and
    count theirs together. Raises `DataError`, on all of them, if these are more than may be skipped; `then` says what
    to do once they are back."""
    if isinstance(images, ResidentImages):
        return
    missed = int(processes.total(torch.tensor(len(images.missed))))
    if not missed:
        return
    forget_scans()  # the next run leaves these images out
    first = next((f" (such as {image.name}: {image.reason})" for image in images.missed), "")
    message = f"{missed:,} of {count:,} images could no longer be read in this epoch{first}"
    if too_many(missed, count):
        raise DataError(f"{message}: bring them back, and {then}")
    progress.warn(f"{message}: the images after them took their place")
