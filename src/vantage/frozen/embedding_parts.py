"""Embeddings of very many images: a folder of Parquet files, which Spark, DuckDB, polars and pyarrow read as one table.

All files but the last hold equally many images. A file appears only when it is complete, so a stopped run continues
after the files that are there. Several processes take the files in turn: each writes its own, and none waits for
another.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vantage import processes
from vantage.data.sources.source import Source
from vantage.data.sources.subset import SourceSubset
from vantage.encoding import Work, encode_batches
from vantage.errors import UserError
from vantage.frozen.embedding import facts_of, holds, write_parquet
from vantage.frozen.encoder import FrozenEncoder
from vantage.machine.usual_torch import usual_torch
from vantage.storage.arrays import draft_of, filled, remove_draft
from vantage.storage.files import not_written
from vantage.storage.rows_file import RowsFile
from vantage.storage.strangers import check_content

__all__ = ["PART_IMAGES", "check_folder", "write_embedding_parts"]

PART_IMAGES = 100_000
"""Images per part, unless the caller sets another number: 0.8 GB if an image has 2,048 features."""


@usual_torch()
def write_embedding_parts(
    encoder: FrozenEncoder, source: Source, folder: Path, work: Work | None = None, part_images: int = PART_IMAGES
) -> Path:
    """Write the features of every image to `part-00000-of-00012.parquet`, … in `folder`, in the order of the source.

    The files have the columns and the metadata of `write_embeddings`; the metadata also hold the numbers of the first
    image and of the one after the last. Parts that are there are kept: if killed and called again with the same
    encoder, images, view, batch size and size of parts, it continues, even within a part, and ends with the same bytes.
    Drafts are written beside the folder. Raises `UserError` for a folder with other files, and if the disk is full;
    `UnreadableImage` as `write_embeddings` does.
    """
    work = work or Work()
    if part_images < 1:
        raise UserError(f"part_images is {part_images}: give at least 1")
    starts = range(0, len(source), part_images)
    names = [f"part-{number:05d}-of-{len(starts):05d}.parquet" for number in range(len(starts))]
    facts = facts_of(encoder, source, work)
    check_folder(folder, set(names))
    rank, count = _turn()
    for number in range(rank, len(starts), count):
        images = torch.arange(starts[number], min(starts[number] + part_images, len(source)))
        part_facts = {**facts, "part": [starts[number], starts[number] + len(images)]}
        if _is_there(folder / names[number], part_facts):
            # A process that was killed just after writing the part left it, as large as the part.
            remove_draft(draft_of(_drafts(folder) / names[number]))
            continue
        try:
            _write(encoder, SourceSubset(source, images), folder, names[number], part_facts, work)
        except OSError as problem:
            then = "Finished parts and rows are kept: correct this and run the same again"
            raise not_written(names[number], folder, problem, then) from problem
    if all((folder / name).exists() for name in names):  # no other process is still writing
        with contextlib.suppress(OSError):
            _drafts(folder).rmdir()
    return folder


def _turn() -> tuple[int, int]:
    """The number of this process, and how many processes write: those that are connected to each other, or else those
    that torchrun started."""
    if processes.count() > 1:
        return processes.rank(), processes.count()
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def _drafts(folder: Path) -> Path:
    return folder.with_name(folder.name + ".drafts")


def check_folder(folder: Path, names: set[str] | None = None) -> None:
    """Raises `UserError` for a folder that parts cannot be written to: a file, a path without a name (drafts lie beside
    the folder, under its name), a folder that is not safe to open, or one with files other than `names` (if
    omitted, other than parts)."""
    if folder.name in ("", ".."):
        raise UserError(f"{folder} does not name a folder for the parts of the embeddings: choose a new one")
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file: name a folder for the parts of the embeddings, or end it with .parquet")
    for each in (folder, _drafts(folder)):
        check_content(each)
    names_there = sorted(os.listdir(folder)) if folder.is_dir() else []
    for name in names_there:
        if not (name in names if names is not None else name.startswith("part-")):
            raise UserError(f"{folder} holds {name}, which is not a part of these embeddings: choose another folder")


def _is_there(file: Path, facts: dict[str, Any]) -> bool:
    """Whether a part is written. Raises `UserError` if it holds other embeddings."""
    if not file.exists():
        return False
    if not holds(file, facts):
        raise UserError(f"{file} is not what this encoder makes of these images: remove it, or choose another folder")
    return True


def _write(encoder: FrozenEncoder, source: Source, folder: Path, name: str, facts: dict[str, Any], work: Work) -> None:
    """Write one part, by way of a draft beside the folder, so that the folder never holds anything but parts."""
    target = _drafts(folder) / name
    draft = draft_of(target)

    def parts(start: int) -> Iterator[Tensor]:
        batches = encode_batches(encoder.backbone, encoder.view, source, work, name, start, alone=True)
        return (part for _, part in batches)

    with filled(draft, (len(source), encoder.width), torch.float32, facts, parts):
        write_parquet(target, RowsFile(draft, len(source)), facts, source)
        folder.mkdir(parents=True, exist_ok=True)
        os.replace(target, folder / name)
        remove_draft(draft)
