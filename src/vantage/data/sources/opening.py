"""From a path, as a user writes it, to a source of images."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from vantage.composition.codec import allowed_object
from vantage.composition.field_types import expect
from vantage.composition.names import external_part
from vantage.data.decode import MAX_PIXELS, is_image_name
from vantage.data.sources.arrays import Arrays
from vantage.data.sources.crops import BoxCrops
from vantage.data.sources.folder import Folder
from vantage.data.sources.hidden import is_hidden
from vantage.data.sources.multi_label import MultiLabelImages, voc_splits
from vantage.data.sources.parquet import Parquet
from vantage.data.sources.photographs import Photographs
from vantage.data.sources.sharded_folder import TARS, open_sharded
from vantage.data.sources.shards import Shards, expand_braces
from vantage.data.sources.source import Source
from vantage.data.sources.tar import Tar
from vantage.data.sources.torchvision_sets import open_torchvision
from vantage.errors import DataError, quantity
from vantage.storage.cache import cache_folder
from vantage.storage.near import near_path

_Progress = Callable[[int, int], None]
_ARCHIVES = (".zip", ".7z", ".rar", ".tar.zst")
_ARRAYS = (".npz", ".npy")
_LISTS = (".txt", ".lst", ".tsv")
_NAMED: dict[str, Callable[[], Source]] = {
    "photographs:train": partial(Photographs, "train"),
    "photographs:test": partial(Photographs, "test"),
}
"""Sources that are opened by name. Each name has a colon, so that it cannot be mistaken for a folder."""


def open_source(
    path: str | Path,
    *,
    cache: Path | str | None = None,
    data_root: Path | str | None = None,
    max_pixels: int = MAX_PIXELS,
    at_least: int = 2,
    progress: _Progress | None = None,
) -> Source:
    """The images at a path, in whichever format.

    * a folder: every image in it and below that is not hidden; if they lie in several folders, these are the classes
    * a folder of `.parquet` shards, or one `.parquet` file, in the Hugging Face layout
    * a list file (`.txt`, `.lst`, `.tsv`): on each line a path and optionally a label
    * a table file (`.csv`): on each line a path and its class, or the classes it shows, as `1.jpg,dog,chair?`, or
      flags (`flags.py`)
    * a folder of PASCAL VOC such as `VOCdevkit/VOC2007#trainval`, with its split: an image may show several classes
    * `.npz` or `.npy`: uint8 arrays
    * `.tar`, `.tar.gz`, `.tar.bz2`, `.tar.xz`: read in place; a compressed one is decompressed once, into the cache
    * a folder of `.tar` shards in webdataset's layout, or a pattern such as `shards/train-{000000..000099}.tar`: read
      in place, in bounded memory. A folder with folders, or with more images than tars, is a folder of images
    * `torchvision:CIFAR10`: a set that torchvision can download
    * `crops:annotations/instances_train2017.json`: the boxes of a COCO file, cropped; `#` names the images' folder
    * `photographs:train` and `photographs:test`: the small images of `vantage demo`, which need no file
    * `MODULE:NAME`: a source of your own, if that module is allowed (`allowing`; on the command line `--import`): what
      the class or function NAME returns. It is called with PATH if you write `MODULE:NAME:PATH`

    A part is named after `#`. `photos#train` is the folder `train` in a folder or a tar (in a tar, the one nearest to
    the top), the shards `train-*.parquet` or `train-*.tar` in a folder of shards, the arrays `x_train` and `y_train` in
    an `.npz`, the split `train` of a torchvision set. A file whose name contains # is found too.

    `cache` is the folder of listings and indexes (`vantage.storage.cache`), `data_root` that of downloads (if omitted,
    `sets` in the cache), `max_pixels` the bound on a picture's size, `at_least` the fewest images that the caller
    needs; `progress` gets (shards indexed, shards in all). Raises `DataError` saying what is missing and what to do.
    """
    cache = Path(cache or cache_folder())
    downloads = Path(data_root or cache / "sets")
    name = _text_of(path)
    return _enough(_open_name(name, cache, downloads, max_pixels, progress), name, at_least)


def _text_of(path: Any) -> str:
    expect(path, str | os.PathLike, "the path", "that of a folder or a file of images, such as 'photos/'")
    if not (name := os.fspath(path)):
        raise DataError("an empty path was given: name a folder or a file of images, or . for the current folder")
    return name


def _enough(source: Source, name: str, at_least: int) -> Source:
    """The source, if it holds at least that many images."""
    if len(source) < at_least:
        raise DataError(
            f"{name} holds {quantity(len(source), 'image')}, but at least {at_least} are needed. "
            "Add images, or name another path"
        )
    return source


def _open_name(name: str, cache: Path, data_root: Path, max_pixels: int, progress: _Progress | None) -> Source:
    if name.startswith("torchvision:"):
        set_name, _, part = name.removeprefix("torchvision:").partition("#")
        return open_torchvision(set_name, part, data_root)
    if name.startswith("crops:"):
        path, part = _split(name.removeprefix("crops:"))
        return BoxCrops(path, Path(part) if part else None, max_pixels=max_pixels)
    if name in _NAMED:
        return _NAMED[name]()
    module, _, rest = name.partition(":")
    if external_part(f"{module}:{rest.partition(':')[0]}") and module != "photographs" and not Path(name).exists():
        return _open_external(module, *rest.split(":", 1))
    whole = os.path.expanduser(name)
    if "{" in name and not any(os.path.exists(each) for each in (whole, whole.rpartition("#")[0] or whole)):
        return _open_shards(name, cache, max_pixels, progress)
    path, part = _split(name)
    if path.is_dir():
        return _open_folder(path, part, cache, max_pixels, progress)
    return _open_path(path, part, cache, max_pixels)


def check_path(name: str) -> None:
    """Raises `DataError` if a name is a path that does not exist, before any image is read. Names that are not plain
    paths are left to `open_source`."""
    if Path(name).exists() or not (":" in name or "{" in name):
        _split(name)


def _open_external(module: str, name: str, *path: str) -> Source:
    source = allowed_object(module, name, "the images")(*path)
    if not isinstance(source, Source):
        raise DataError(f"{module}:{name} gives no source of images: it needs the methods of vantage.Source")
    return source


def _split(name: str) -> tuple[Path, str]:
    """Path and part. Raises `DataError` when the path does not exist."""
    whole = Path(os.path.expanduser(name))
    if whole.exists() or "#" not in name:
        path, part = whole, ""
    else:
        before, _, part = name.rpartition("#")
        path = Path(os.path.expanduser(before))
    if not path.exists():
        near = path.parent
        while not near.exists() and near != near.parent:
            near = near.parent
        beside = near_path(path) or f" (the part of it that exists is {near.absolute()}). Check the path"
        raise DataError(f"{path} does not exist{beside}")
    return path, part


def _open_path(path: Path, part: str, cache: Path, max_pixels: int) -> Source:
    name = path.name.lower()
    if not path.is_file():
        raise DataError(f"{path} is neither a file nor a folder. Name a folder of images")
    if name.endswith(TARS):
        return Tar(path, cache, part, max_pixels)
    if name.endswith(_ARRAYS):
        return Arrays.read(path, part)
    if part:
        raise DataError(f"{path}#{part}: this kind of file has no parts. Leave out #{part}")
    if name.endswith(".parquet"):
        return Parquet((path,), max_pixels)
    if name.endswith(".csv"):
        return MultiLabelImages.table(path, max_pixels)
    if name.endswith(_LISTS):
        return Folder.from_list(path, max_pixels)
    if is_image_name(path.name):
        raise DataError(f"{path} is a single image. Name the folder it lies in, or a list file")
    if name.endswith(_ARCHIVES):
        raise DataError(f"{path} is an archive of a kind that is not read in place: unpack it, and name the folder")
    raise DataError(
        f"{path} is in none of the formats that can be read: name a folder of images, a list (.txt), a table (.csv), "
        "a .tar, an .npz or a .parquet file"
    )


def _open_shards(pattern: str, cache: Path, max_pixels: int, progress: _Progress | None) -> Source:
    """The shards that a pattern with braces names. Raises `DataError` with the number of missing ones."""
    paths = [os.path.expanduser(name) for name in expand_braces(pattern)]
    missing = [path for path in paths if not os.path.isfile(path)]
    if missing:
        raise DataError(
            f"{len(missing):,} of the {len(paths):,} files that {pattern} names do not exist, the first is"
            f" {missing[0]}. Check the pattern"
        )
    other = next((path for path in paths if not path.lower().endswith(".tar")), None)
    if other is not None:
        raise DataError(f"{other} is not a .tar: shards are read in place, so decompress them, or name other files")
    return Shards(paths, cache, max_pixels, progress)


def _open_folder(path: Path, part: str, cache: Path, max_pixels: int, progress: _Progress | None) -> Source:
    opening = partial(open_sharded, cache=cache, max_pixels=max_pixels, progress=progress)
    sharded, tars = opening(path, part)
    if sharded is not None:
        return sharded
    splits = voc_splits(path)
    if part in splits:
        return MultiLabelImages.voc(path, part, max_pixels)
    root = path / part if part else path
    if splits and (not part or not root.is_dir()):
        raise DataError(
            f"{path}{'#' if part else ''}{part} is a set of PASCAL VOC: name a split after # ({', '.join(splits)}), or"
            " JPEGImages for the images without their classes"
        )
    if not root.is_dir():
        folders = sorted(entry.name for entry in path.iterdir() if entry.is_dir() and not is_hidden(entry.name))
        advice = f"its folders are {', '.join(folders[:8])}. Write one after #" if folders else f"leave out #{part}"
        raise DataError(f"{path}#{part} does not exist: {advice}")
    sharded, tars = opening(root, "") if part else (None, tars)
    return sharded or Folder.below(root, cache, max_pixels, tars)
