"""Which columns of a Parquet file hold the images and their labels, by its schema alone."""

import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from vantage.errors import DataError

__all__ = ["Columns", "columns_of"]

_IMAGES = ("image", "img", "images")
_LABELS = ("label", "labels", "fine_label", "class")
_SHOWN = 3


@dataclass(frozen=True)
class Columns:
    """The columns of a file."""

    image: str
    """Name of the column of images."""

    label: str | None
    """Name of the column of labels, if there is one."""

    classes: tuple[str, ...]
    """What the numbers of the labels mean, from the Hugging Face metadata; () if these do not say."""

    def __str__(self) -> str:
        classes = [*self.classes[:_SHOWN], *(["…"] if len(self.classes) > _SHOWN else [])]
        return f"columns {self.image}, {self.label}{' of ' * bool(classes)}{', '.join(classes)}"

    def agree(self, others: "Columns") -> bool:
        """Whether files with these columns and with others may form one set: their labels mean the same."""
        same_columns = (self.image, self.label) == (others.image, others.label)
        return same_columns and (self.classes or others.classes) == (others.classes or self.classes)


def columns_of(schema: pa.Schema, path: Path) -> Columns:
    """The columns of a file at `path`. Raises `DataError` if none holds images."""
    image = next((name for name in _IMAGES if name in schema.names), None)
    if image is None or not _holds_bytes(schema.field(image).type):
        raise DataError(
            f"{path} has no column of images: found {', '.join(f'{field.name} ({field.type})' for field in schema)}. "
            "The column must be called image and hold encoded files, as binary or as a struct with a field bytes"
        )
    label = next((name for name in _LABELS if name in schema.names), None)
    return Columns(image, label, _class_names(schema, label))


def _holds_bytes(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(field.name == "bytes" and _holds_bytes(field.type) for field in kind)
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def _class_names(schema: pa.Schema, label: str | None) -> tuple[str, ...]:
    """The names of the labels in the Hugging Face metadata, or ()."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return tuple(str(name) for name in features[label]["names"])
    except (KeyError, TypeError, ValueError):
        return ()
