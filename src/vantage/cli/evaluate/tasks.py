"""Open the images of protocols by the names given in options."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vantage.cli.printing.console import Console
from vantage.cli.reading.options import ReadingOptions
from vantage.errors import UserError, quantity

if TYPE_CHECKING:
    from vantage.data import Source
    from vantage.evaluate import Task

__all__ = ["TaskImages", "class_names", "kind_of_images"]


def kind_of_images(protocol: Any) -> str:
    """The kind of images that a protocol needs: its `images_with` ("masks" or "boxes"), or "classes" if it has none."""
    return getattr(type(protocol), "images_with", "classes")


class TaskImages:
    """Opens images by their paths, each path once."""

    def __init__(self, reading: ReadingOptions, console: Console) -> None:
        self.reading, self.console = reading, console
        self._open: dict[tuple[str, ...], Any] = {}

    def of(
        self, protocol: Any, data: str, test: str = "", classes: str = "", flag: str = "--classes"
    ) -> "tuple[Source, Source | None]":
        """The training and test images of a protocol. `classes` is the file with class names for masks, and `flag` is
        its option, for messages. Raises `UserError` if images cannot be opened."""
        kind = kind_of_images(protocol)
        if kind == "masks":
            train = self._masks(data, class_names(classes, flag))
            return train, self._masks(test, train.classes) if test else None
        open_one = self._boxes if kind == "boxes" else self.labeled
        return open_one(data), open_one(test) if test else None

    def task(self, protocol: Any, data: str, test: str, classes: str, flag: str) -> "Task":
        """The protocol with its images; a labeled set is split once for all protocols."""
        from vantage.evaluate import task_of

        def task() -> "Task":
            return task_of(protocol, *self.of(protocol, data, test, classes, flag))

        if kind_of_images(protocol) != "classes":
            return task()
        return replace(self._once(("task", data, test), task), protocol=protocol)

    def labeled(self, path: str) -> Any:
        """The readable images at a path."""
        return self._once(("labeled", path), lambda: self.reading.open(path, self.console))

    def _boxes(self, path: str) -> Any:
        from vantage.evaluate.protocols.detection import open_annotated

        return self._once(("boxes", path), lambda: self._note_size(open_annotated(path), "with boxes"))

    def _masks(self, path: str, classes: tuple[str, ...]) -> Any:
        from vantage.data.sources.masked import open_masked

        return self._once(("masks", path, *classes), lambda: self._note_size(open_masked(path, classes), "with masks"))

    def _note_size(self, source: Any, what: str) -> Any:
        classes = quantity(len(source.classes), "class", "classes")
        self.console.note(f"{quantity(len(source), 'image')} {what}, {classes}")
        return source

    def _once(self, key: tuple[str, ...], make: Callable[[], Any]) -> Any:
        if key not in self._open:
            self._open[key] = make()
        return self._open[key]


def class_names(file: str, flag: str = "--classes") -> tuple[str, ...]:
    """The lines of a file of class names; empty if no file is named. Raises `UserError` for fewer than two names."""
    if not file:
        return ()
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise UserError(
            f"{flag} {file} cannot be read ({problem}): name a text file with a class on each line"
        ) from None
    names = tuple(line.strip() for line in lines if line.strip())
    if len(names) < 2 or len(set(names)) < len(names):
        raise UserError(
            f"{flag} {file} has {len(set(names))} different classes on {len(names)} lines: write two or more, each once"
        )
    return names
