"""The verb `reproduce`: tables and figures of papers, reproduced."""

from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Annotated, Any

from vantage.cli.arguments import Command, Repeated, Word, read, wants_help
from vantage.cli.console import Console, catalog, paragraphs
from vantage.cli.files import check_folder
from vantage.cli.options import Computing
from vantage.composition.assignments import assigned
from vantage.composition.fields import settings_in
from vantage.composition.suggest import no_such
from vantage.errors import UserError

__all__ = ["reproduce"]


@dataclass(frozen=True)
class Reproducing:
    """The options of every entry, other than its images."""

    out: Annotated[str, Word("FOLDER")]
    """Folder for the table (.md, .csv, .json), the picture (.png) and the finished rows, which are computed once."""

    set: Repeated = ()
    """Any field of the entry, such as --set course.epochs=10. May be repeated."""


def reproduce(words: list[str], console: Console) -> int:
    """Reproduce a table of a paper, its values beside ours: vantage reproduce ENTRY … --out FOLDER.

    Without an entry, lists all. Finished rows are kept in the folder, so the same command continues after an
    interruption, and can add seeds later. Everything that the paper leaves open may be set.
    """
    from vantage.studies.reproduce import ENTRIES

    entries: dict[str, Any] = {kind.name: kind for kind in ENTRIES}
    if not words or words[0].startswith("-"):
        if words and not wants_help(words):
            raise UserError(f"reproduce needs an entry first (entries: {', '.join(entries)})")
        if words:
            console.result(paragraphs(reproduce.__doc__) + "\n")
        console.result(catalog(entries))
        return 0
    if words[0] not in entries:
        raise no_such("entry", words[0], entries, "entries")
    return _reproduce(entries[words[0]], words[1:], console)


def _reproduce(kind: Any, words: list[str], console: Console) -> int:
    from vantage.studies.reproduce import reproduce as run

    images = make_dataclass("Paths", [(path.name, Annotated[str, Word("PATH", help=path.help)]) for path in kind.paths])
    command = Command(f"reproduce {kind.name}", kind.__doc__ or "", lambda: [one.path for one in settings_in(kind())])
    paths, options, entry, computing = read(command, words, images, Reproducing, kind(), Computing)
    entry = assigned(entry, options.set, name=kind.name)
    folder = check_folder(Path(options.out))
    work = computing.work(console)
    sources = {one.name: computing.open(getattr(paths, one.name), console) for one in kind.paths}
    outcome = run(entry, sources, folder, work)
    console.results(outcome.report.title, outcome.report.rows, outcome.report.columns)
    for note in outcome.report.notes:
        console.note(note)
    console.note(f"saved in {', '.join(str(file) for file in outcome.files)}")
    return 0
