"""The verb `reproduce`: reproduce tables and figures of papers."""

from dataclasses import dataclass, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any

from vantage.cli.printing.console import Console
from vantage.cli.reading.arguments import Command, Repeated, Word, read, wants_help
from vantage.cli.reading.options import ComputeOptions
from vantage.cli.reading.out_files import check_folder
from vantage.composition.assignments import assign
from vantage.composition.fields import settings_in
from vantage.composition.suggest import did_you_mean

__all__ = ["reproduce"]


@dataclass(frozen=True)
class ReproduceOptions:
    """The options of every entry, except its images."""

    out: Annotated[str, Word("FOLDER")]
    """Folder for the table (.md, .csv, .json), the picture (.png) and the finished rows, which are not recomputed."""

    set: Repeated = ()
    """Any field of the entry, such as --set course.epochs=10. May be repeated."""


def reproduce(words: list[str], console: Console) -> int:
    """Reproduce tables and figures of the papers, and judge every claim: vantage reproduce ENTRY … --out LAB.

    Without an entry, all entries are listed with their state and time. The lab's folder keeps the results, cell by
    cell: an interrupted command continues where it stopped, several processes may share the work, and seeds may be
    added. The level two-cores tests the paper's claims at a small scale, smoke only checks in a minute that everything
    runs, and paper prints the commands at the paper's scale. infomin-table-4 can also be reproduced separately, at any
    scale, with your own digits and backgrounds: vantage reproduce infomin-table-4 --digits …
    """
    from vantage.cli.reproduce.lab import LabOptions as InTheLab
    from vantage.cli.reproduce.lab import run_lab

    if not words or words[0].startswith("-"):
        return run_lab(words, console, reproduce.__doc__ or "")
    from vantage.studies.reproduce import ENTRIES

    alone: dict[str, Any] = {kind.name: kind for kind in ENTRIES}
    if words[0] in alone and _is_alone(alone[words[0]], words, InTheLab):
        return _reproduce(alone[words[0]], words[1:], console)
    return run_lab(words, console, reproduce.__doc__ or "")


def _is_alone(kind: Any, words: list[str], lab: type) -> bool:
    """Whether the words ask for an entry's help, or give it the user's own images, by a flag (perhaps mistyped)."""
    own, others = ([f"--{each.name.replace('_', '-')}" for each in names] for names in (kind.paths, fields(lab)))
    flags = {word.partition("=")[0].replace("_", "-") for word in words if word.startswith("--")}
    return wants_help(words) or any(did_you_mean(flag, own) for flag in flags - {*others})


def _reproduce(kind: Any, words: list[str], console: Console) -> int:
    from vantage.studies.reproduce import reproduce as run

    images = make_dataclass("Paths", [(path.name, Annotated[str, Word("PATH", help=path.help)]) for path in kind.paths])
    command = Command(f"reproduce {kind.name}", kind.__doc__ or "", lambda: [one.path for one in settings_in(kind())])
    paths, options, entry, computing = read(command, words, images, ReproduceOptions, kind(), ComputeOptions)
    entry = assign(entry, options.set, name=kind.name)
    folder = check_folder(Path(options.out))
    work = computing.work(console)
    sources = {one.name: computing.open(getattr(paths, one.name), console) for one in kind.paths}
    outcome = run(entry, sources, folder, work)
    console.results(outcome.report.title, outcome.report.rows, outcome.report.columns)
    for note in outcome.report.notes:
        console.note(note)
    console.note(f"saved in {', '.join(str(file) for file in outcome.files)}")
    return 0
