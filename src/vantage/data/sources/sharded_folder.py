"""A folder of shards: tars in webdataset's layout, or Parquet files with images, and what may lie beside them."""

import os
from collections.abc import Callable
from pathlib import Path

from vantage.data.decode import is_image_name
from vantage.data.sources.hidden import is_hidden
from vantage.data.sources.parquet import Parquet, has_images
from vantage.data.sources.shards import Shards
from vantage.data.sources.source import Source
from vantage.errors import DataError

__all__ = ["TARS", "open_sharded"]

TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
"""Endings of tars, the first of those that are not compressed."""


def _tar_shards(path: Path, names: list[str], images: int) -> list[str]:
    """The tars of a folder without folders, or tables other than those beside a shard; [] for other folders, and if
    there are more images than tars: a preview or two may lie beside shards, and a tar among photographs."""
    tars = [name for name in names if name.lower().endswith(".tar")]
    tables = {name.removesuffix(".parquet") for name in names if name.endswith(".parquet")}
    if not tars or images > len(tars) or tables - {name[: -len(".tar")] for name in tars}:
        return []
    return [] if any((path / name).is_dir() for name in names) else tars


def _parquet_shards(path: Path, names: list[str]) -> list[str]:
    """The Parquet files of a folder. Beside images or folders only those that hold images count: `vantage embed` writes
    others, which may lie among the images."""
    shards = [name for name in names if name.endswith(".parquet")]
    if shards and any(is_image_name(name) or (path / name).is_dir() for name in names):
        return [name for name in shards if has_images(path / name)]
    return shards


def _shards_starting_with(part: str, shards: list[str], path: Path) -> list[str]:
    """The shards whose names begin with a part, or all if there is none."""
    matching = [name for name in shards if not part or name.startswith((part + "-", part + "."))]
    if not matching:
        raise DataError(
            f"{path}#{part} names no shard: the folder holds {', '.join(shards[:5])}. Write how their names begin"
        )
    return matching


def open_sharded(
    path: Path, part: str, *, cache: Path, max_pixels: int, progress: Callable[[int, int], None] | None
) -> tuple[Source | None, list[str]]:
    """The shards of a folder whose names begin with a part, or None for other folders; and the tars in it."""
    try:
        names = sorted(entry.name for entry in os.scandir(path) if not is_hidden(entry.name))
    except OSError as error:
        raise DataError(f"cannot list the folder {path}: {error.strerror}. Check its permissions") from error
    every_tar = [name for name in names if name.lower().endswith(TARS)]
    if not every_tar and not any(name.endswith(".parquet") for name in names):
        return None, []  # millions of images, perhaps: none need be counted
    images = sum(map(is_image_name, names))
    if tars := _tar_shards(path, names, images):
        shards = [str(path / name) for name in _shards_starting_with(part, tars, path)]
        packed = [name for name in every_tar if name not in tars and name.startswith(part)]
        return Shards(shards, cache, max_pixels, progress, packed, images), every_tar
    if shards := _parquet_shards(path, names):
        paths = tuple(path / name for name in _shards_starting_with(part, shards, path))
        return Parquet(paths, max_pixels, images), every_tar
    return None, every_tar
