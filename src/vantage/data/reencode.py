"""Smaller copies of large photographs, which decode faster: 2.6 times as fast for ImageNet at a short side of 256."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from vantage.data.resize import resize
from vantage.data.scan import BadImage
from vantage.data.sources.source import Source
from vantage.errors import DataError, UnreadableImage
from vantage.storage.files import atomic_file


@dataclass(frozen=True)
class ResizeResult:
    """The result of copying a source."""

    written: int
    """Files written."""
    present: int
    """Files that existed already and were left as they are."""
    bad: tuple[BadImage, ...]
    """Images that could not be read and so were not copied."""


def resize_short_side(
    source: Source, out_folder: Path, side: int = 256, quality: int = 90, num_workers: int = 2
) -> ResizeResult:
    """Write every image as a JPEG whose short side is at most `side` pixels, under its own name below `out_folder`.

    Smaller images keep their size. Class folders keep their names; images without a path go into one folder per class.
    Files that exist are not written again, so an interrupted copy continues where it stopped.
    """
    if not 1 <= quality <= 100 or side < 1:
        raise DataError(
            f"a short side of {side} pixels at quality {quality} was asked for: give at least 1 pixel, and a quality of"
            " 1 to 100"
        )
    names = [_target(source, number) for number in range(len(source))]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"two images would be written as {twice}. Rename one of them")

    def copy(number: int) -> BadImage | bool:
        path = out_folder / names[number]
        if path.exists():
            return False
        try:
            image = source.image(number)
        except UnreadableImage as error:
            return BadImage(number, error.name, error.reason)
        if min(image.shape[1:]) > side:
            image = resize(image, [side])
        with atomic_file(path) as file:
            Image.fromarray(image.permute(1, 2, 0).numpy()).save(file, "JPEG", quality=quality)
        return True

    with ThreadPoolExecutor(max(1, num_workers)) as pool:
        results = list(pool.map(copy, range(len(source))))
    bad = tuple(result for result in results if isinstance(result, BadImage))
    return ResizeResult(results.count(True), results.count(False), bad)


def _target(source: Source, number: int) -> str:
    """The path of an image's copy, relative to the folder; never above it."""
    name = source.name(number)
    if name.startswith("row "):
        label = source.label(number)
        folder = f"{source.classes[label].replace('/', '_')}/" if label is not None and source.classes else ""
        return f"{folder}{name.removeprefix('row ').zfill(8)}.jpg"
    parts = [part for part in name.split("/") if part not in ("", ".", "..")]
    return str(Path(*parts).with_suffix(".jpg"))
