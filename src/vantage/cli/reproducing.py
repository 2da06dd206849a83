"""The verb `reproduce`: tables and figures of papers, made again."""

import inspect
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from vantage.cli.arguments import Command, parse, wants_help
from vantage.cli.console import Console
from vantage.cli.images import opened, work_of
from vantage.cli.results import check_folder
from vantage.composition.fields import REQUIRED, Leaf, headings, leaves, options, replaced
from vantage.composition.suggest import did_you_mean
from vantage.data.threads import CORES
from vantage.errors import UserError

__all__ = ["reproduce"]


@dataclass(frozen=True)
class Making:
    """What `reproduce` is told beside the entry's images and fields."""

    out: str
    """Folder for the table (.md, .csv, .json), the picture (.png), and the rows that are done, which a second call does
    not make again."""

    on_bad_image: Literal["skip", "stop"] = "skip"
    """What to do about unreadable images: leave them out (stops above 1 %), or stop at once."""

    device: str = "auto"
    """Device, such as cpu or cuda:0; auto takes an accelerator where there is one."""

    workers: int = CORES
    """Threads that decode images."""


def reproduce(words: list[str], console: Console) -> int:
    """A table of a paper made again, its values beside ours: vantage reproduce ENTRY … --out FOLDER (without: a list).

    What is done is kept in the folder, so an interrupted call goes on where it was, and more seeds may be asked for
    later. Everything that the paper leaves open is an option.
    """
    entries = _entries()
    if not words or words[0].startswith("-"):
        if words and not wants_help(words):
            raise UserError(f"reproduce needs an entry first (entries: {', '.join(entries)})")
        if words:
            console.result(inspect.cleandoc(reproduce.__doc__ or "") + "\n")
        console.results("", [(name, _first_line(kind)) for name, kind in entries.items()])
        return 0
    if words[0] not in entries:
        near = did_you_mean(words[0], entries)
        raise UserError(f"there is nothing called {words[0]!r} to reproduce{near} (entries: {', '.join(entries)})")
    kind = entries[words[0]]
    fields = [replace(leaf, aliases=_aliases(kind, leaf.path)) for leaf in leaves(kind())]
    places = [Leaf(place.name, str, REQUIRED, place.help) for place in kind.places]
    command = Command(f"vantage reproduce {words[0]}", kind.__doc__ or "", dict(headings(kind())))
    asked = parse(command, (*places, *options(Making), *fields), words[1:]).values
    from vantage.studies.reproduce import reproduce as make

    entry = replaced(kind(), {leaf.path: asked[leaf.path] for leaf in fields})
    folder = check_folder(Path(asked["out"]))
    sources = {place.name: opened(asked[place.name], asked, console) for place in kind.places}
    done = make(entry, sources, folder, work_of(asked, console))
    console.results(done.report.title, done.report.rows, done.report.columns)
    for note in done.report.notes:
        console.note(note)
    console.note(f"kept in {', '.join(str(file) for file in done.files)}")
    return 0


def _aliases(kind: Any, path: str) -> tuple[str, ...]:
    return (kind.aliases[path],) if path in kind.aliases else ()


def _first_line(kind: Any) -> str:
    return " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())


def _entries() -> dict[str, Any]:
    """The entries by name; imported here, since the command line itself does without torch."""
    from vantage.studies.reproduce import ENTRIES

    return {kind.name: kind for kind in ENTRIES}
