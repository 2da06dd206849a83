"""Tables with a column for each class, whose cells are flags: 1 or 0, true or false."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from vantage.errors import DataError

__all__ = ["Line", "classes_by_flags"]

Line = tuple[int, list[str]]
"""A line of a table: its number in the file, and its words, the first of which is the path of an image."""

_YES, _NO, _MINUS = {"1", "1.0", "true", "yes"}, {"0", "0.0", "false", "no"}, {"-1", "-1.0"}
_FLAGS = _YES | _NO | _MINUS


def classes_by_flags(
    path: Path, heading: Line | None, lines: Sequence[Line]
) -> tuple[tuple[str, ...], dict[str, list[str]]] | None:
    """The classes of a table whose cells are flags, in alphabetical order, and those that each image shows; None for a
    table whose cells are names of classes.

    Cells are flags if every line has the same number of them, at least two, and all are 1 or 0, 1 or −1, true or false,
    yes or no. The heading then names the classes. An empty cell means no if all other cells mean yes. Raises
    `DataError` for ambiguous flags: without a heading that fits, beside columns of other words, or with 0, −1 and
    empty cells in one table; and for a column of numbers, such as the width of each image, beside columns of words.
    """
    cells = [[word.lower() for word in row[1:]] for _, row in lines]
    width = len(cells[0])
    rectangular = width > 1 and all(len(row) == width for row in cells)
    columns = list(zip(*cells, strict=True)) if rectangular else []
    is_flag_column = [set(column) <= _FLAGS | {""} and set(column) != {""} for column in columns]
    if rectangular and all(set(column) <= _FLAGS | {""} for column in columns) and any(is_flag_column):
        names = _names(path, heading, lines[0], width)
        _check_no(path, {word for row in cells for word in row})
        classes_of = {
            row[0]: [name for name, word in zip(names, row[1:], strict=True) if word.lower() in _YES]
            for _, row in lines
        }
        return tuple(sorted(names)), classes_of
    if heading is not None and len(heading[1]) == width + 1:
        _refuse_mixed(path, {name: words for name, words in zip(heading[1][1:], columns, strict=False) if any(words)})
    _refuse_repeated(path, lines)
    return None


def _names(path: Path, heading: Line | None, first: Line, width: int) -> list[str]:
    """The classes that a heading names, one for each of the `width` columns."""
    if heading is None:
        raise DataError(
            f"the table {path} has {width} columns of flags (line {first[0]}: {','.join(first[1])[:80]!r}), but no"
            " first line that names their classes: write one, such as image,dog,person; or write after each image the"
            " names of the classes it shows"
        )
    names = heading[1][1:]
    if len(names) != width or len(set(names)) < width or not all(names):
        raise DataError(
            f"the table {path} has {width} columns of flags, but its heading ({','.join(heading[1])[:80]!r}) does not"
            f" name {width} different classes: name each column by its class, such as image,dog,person"
        )
    return names


def _check_no(path: Path, words: set[str]) -> None:
    """Raises `DataError` if the absence of a class is written in more than one way."""
    cells_of = {"0": words & _NO, "-1": words & _MINUS, "nothing": words & {""}}
    forms = [way for way, cells in cells_of.items() if cells]
    if len(forms) > 1:
        raise DataError(
            f"the table {path} has columns of flags with {' and '.join(forms)} in them, one of which may mean that a"
            " class is difficult to see or was not annotated: write only 1 and 0, or after each image the names of the"
            " classes it shows (chair? for one that is difficult to see)"
        )


def _refuse_mixed(path: Path, columns: Mapping[str, tuple[str, ...]]) -> None:
    """Raises `DataError` for columns of flags or numbers beside others: these do not all name classes."""
    for what, is_one in (("flags", _FLAGS.__contains__), ("numbers", _is_number)):
        kinds = {name: all(is_one(word) for word in words if word) for name, words in columns.items()}
        yes, no = ([name for name, is_so in kinds.items() if is_so == kind][:3] for kind in (True, False))
        if yes and no:
            raise DataError(
                f"the table {path} has columns of {what} ({', '.join(yes)}) beside columns of other words"
                f" ({', '.join(no)}): keep only the path and the names of the classes, or a column of 1 and 0 for each"
                " class; or, if numbers are names of classes, remove the heading"
            )


def _refuse_repeated(path: Path, lines: Sequence[Line]) -> None:
    """Raises `DataError` if a number occurs twice on a line, since it then does not name a class."""
    for number, row in lines:
        words = [word for word in row[1:] if _is_number(word)]
        if len(set(words)) < len(words):
            raise DataError(
                f"the table {path} has numbers where names of classes are expected (line {number}:"
                f" {','.join(row)[:80]!r}): write after each image the names of the classes it shows, or a column of 1"
                " and 0 for each class under a heading that names it, such as image,dog,person"
            )


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
