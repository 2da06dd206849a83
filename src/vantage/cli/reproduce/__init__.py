"""The verb `reproduce`: reproduce tables and figures of papers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from vantage.cli.printing.console import Console
from vantage.cli.reading.arguments import Command, Repeated, Word, read, wants_help
from vantage.cli.reading.options import ComputeOptions
from vantage.cli.reading.out_files import check_folder
from vantage.composition.assignments import assign
from vantage.composition.fields import settings_in

__all__ = ["reproduce"]


@dataclass(frozen=True)
class Table4Options:
    """The options of InfoMin's Table 4 besides its settings: the user's own images, and where the table goes."""

    digits: Annotated[str, Word("PATH")]
    """Labeled training digits, 28 by 28 pixels, light on black, such as mnist.npz#train."""

    test_digits: Annotated[str, Word("PATH")]
    """Labeled test digits, such as mnist.npz#test."""

    backgrounds: Annotated[str, Word("PATH")]
    """Labeled training photographs (the paper: STL-10)."""

    test_backgrounds: Annotated[str, Word("PATH")]
    """Labeled test photographs of the same classes."""

    out: Annotated[str, Word("FOLDER")]
    """Folder for the table (.md, .csv, .json), the picture (.png) and the finished rows, which are not recomputed."""

    set: Repeated = ()
    """Any field of the entry, such as --set course.epochs=10. May be repeated."""


def reproduce(words: list[str], console: Console) -> int:
    """Reproduce tables and figures of the papers, and judge every claim: vantage reproduce ENTRY … --out LAB.

    Without an entry, all entries are listed with their state and time. The lab's folder keeps the results, cell by
    cell: an interrupted command continues where it stopped, several processes may share the work, and seeds may be
    added. The level two-cores tests the papers' claims at a small scale, smoke only checks in a minute that everything
    runs, and paper prints the commands at the paper's scale. infomin-table-4 can also be reproduced separately, at any
    scale, with your own digits and backgrounds: vantage reproduce infomin-table-4 --digits …
    """
    if words[:1] == ["infomin-table-4"] and _is_outside_the_lab(words):
        return _reproduce_table_4(words[1:], console)
    from vantage.cli.reproduce.lab import run_lab

    return run_lab(words, console, reproduce.__doc__ or "")


def _is_outside_the_lab(words: list[str]) -> bool:
    """Whether the words ask for the table's own help, or have a flag for digits or backgrounds, which the lab has not,
    however it is mistyped."""
    flags = [word.partition("=")[0] for word in words if word.startswith("--")]
    return wants_help(words) or any("digit" in flag or "background" in flag for flag in flags)


def _reproduce_table_4(words: list[str], console: Console) -> int:
    from vantage.studies.moving_mnist import InfoMinTable4
    from vantage.studies.moving_mnist import reproduce as run

    about, table = InfoMinTable4.__doc__ or "", InfoMinTable4()
    command = Command(f"reproduce {table.name}", about, lambda: [one.path for one in settings_in(table)])
    options, table, computing = read(command, words, Table4Options, table, ComputeOptions)
    table = assign(table, options.set, name=table.name)
    folder = check_folder(Path(options.out))
    work = computing.work(console)
    names = ("digits", "test_digits", "backgrounds", "test_backgrounds")
    sources = {name: computing.open(getattr(options, name), console) for name in names}
    report, files = run(table, sources, folder, work)
    console.results(report.title, report.rows, report.columns)
    for note in report.notes:
        console.note(note)
    console.note(f"saved in {', '.join(map(str, files))}")
    return 0
