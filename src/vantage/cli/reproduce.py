"""The verb `reproduce`: tables and figures of papers, made again."""

from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Annotated, Any

from vantage.cli.arguments import Command, Repeated, Word, read, wants_help
from vantage.cli.console import Console, paragraphs
from vantage.cli.files import check_folder
from vantage.cli.options import BadImages, Computing
from vantage.cli.recipes import first_line
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError

__all__ = ["reproduce"]


@dataclass(frozen=True)
class Reproducing:
    """The options of every entry, beside its images."""

    out: Annotated[str, Word("FOLDER")]
    """Folder for the table (.md, .csv, .json), the picture (.png), and the rows that are done, which a second call does
    not make again."""

    set: Repeated = ()
    """Any field of the entry, such as --set course.epochs=10. May be repeated."""


def reproduce(words: list[str], console: Console) -> int:
    """A table of a paper made again, its values beside ours: vantage reproduce ENTRY … --out FOLDER (without: a list).

    What is done is kept in the folder, so an interrupted call goes on where it was, and more seeds may be asked for
    later. Everything that the paper leaves open may be set.
    """
    from vantage.studies.reproduce import ENTRIES

    entries: dict[str, Any] = {kind.name: kind for kind in ENTRIES}
    if not words or words[0].startswith("-"):
        if words and not wants_help(words):
            raise UserError(f"reproduce needs an entry first (entries: {', '.join(entries)})")
        if words:
            console.result(paragraphs(reproduce.__doc__) + "\n")
        console.results("", [(name, first_line(kind)) for name, kind in entries.items()])
        return 0
    if words[0] not in entries:
        near = did_you_mean(words[0], entries)
        raise UserError(f"there is nothing called {words[0]!r} to reproduce{near} (entries: {', '.join(entries)})")
    return _make(entries[words[0]], words[1:], console)


def _make(kind: Any, words: list[str], console: Console) -> int:
    from vantage.composition.assignments import assigned
    from vantage.composition.fields import settings_in
    from vantage.studies.reproduce import reproduce as make

    images = make_dataclass(
        "Places", [(place.name, Annotated[str, Word("PATH", help=place.help)]) for place in kind.places]
    )
    command = Command(f"reproduce {kind.name}", kind.__doc__ or "", lambda: [one.path for one in settings_in(kind())])
    paths, options, bad, computing, entry = read(command, words, images, Reproducing, BadImages, Computing, kind())
    entry = assigned(entry, options.set, name=kind.name)
    folder = check_folder(Path(options.out))
    sources = {one.name: bad.open(getattr(paths, one.name), computing.num_workers, console) for one in kind.places}
    outcome = make(entry, sources, folder, computing.work(console))
    console.results(outcome.report.title, outcome.report.rows, outcome.report.columns)
    for note in outcome.report.notes:
        console.note(note)
    console.note(f"kept in {', '.join(str(file) for file in outcome.files)}")
    return 0
