"""Options that several verbs share, each written once, and what they stand for."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from vantage.cli.arguments import Word
from vantage.cli.console import Console

if TYPE_CHECKING:
    from vantage.data import Source
    from vantage.encoding import Work
    from vantage.training.run import Data

__all__ = ["BadImages", "Computing", "Images", "Network", "RunFolder", "absolute", "look_at"]


@dataclass(frozen=True)
class RunFolder:
    """The run that a verb is about."""

    run: Annotated[str, Word("RUN", positional=True)]
    """Folder of the run."""

    @property
    def folder(self) -> Path:
        """The folder."""
        return Path(self.run)


@dataclass(frozen=True)
class Network:
    """Which network of a run."""

    network: int | None = None
    """Which of the trained networks, for runs that have one for each view; if omitted, all, their features joined."""


@dataclass(frozen=True)
class Images:
    """The images that a verb is about."""

    data: Annotated[str, Word("PATH")]
    """Images: a folder, list (.txt), table (.csv), .npz, .parquet, .tar, torchvision:NAME, or MODULE:NAME of your own;
    `#train` at the end picks a part."""


@dataclass(frozen=True)
class BadImages:
    """What becomes of images that cannot be read."""

    on_bad_image: Literal["skip", "stop"] = "skip"
    """Leave unreadable images out (up to 1 %), or stop at the first."""

    def open(self, path: str, num_workers: int | None, console: Console) -> "Source":
        """The readable images at a path; notes what was found."""
        from vantage.training.run import Data

        source, summary = look_at(Data(path, self.on_bad_image, _cores(num_workers)), console)
        console.note(summary)
        return source


@dataclass(frozen=True)
class Computing:
    """What computes."""

    device: Annotated[str, Word("DEVICE")] = "auto"
    """Device, such as cpu or cuda:0; auto takes an accelerator where there is one."""

    num_workers: int | None = None
    """Threads that decode images; if omitted, one for each core."""

    def work(self, console: Console, batch_size: int = 256) -> "Work":
        """The device and the threads, with the progress to be shown."""
        from vantage.encoding import Work
        from vantage.progress import progress_for

        workers, progress = _cores(self.num_workers), progress_for(console.silent)
        return Work(device=self.device, batch_size=batch_size, num_workers=workers, progress=progress)


def look_at(data: "Data", console: Console) -> "tuple[Source, str]":
    """The readable images that data name, and a line about the others, with the progress shown.

    Raises `UserError` where there are no images, or too many that are unreadable.
    """
    from vantage.progress import counting, progress_for
    from vantage.training.feed import open_images

    with counting(progress_for(console.silent), "looking at the images") as advance:
        return open_images(data, advance)


def absolute(path: str) -> str:
    """A path on this disk from its root, so that a run finds its images from any folder; others as they are."""
    file, mark, part = (path, "", "") if Path(path).exists() else path.partition("#")
    return f"{Path(file).absolute()}{mark}{part}" if file and Path(file).exists() else path


def _cores(num_workers: int | None) -> int:
    from vantage.data.threads import CORES

    return CORES if num_workers is None else num_workers
