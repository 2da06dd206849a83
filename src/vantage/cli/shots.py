"""The verb `shots`: runs that were judged on few images of each class, in one table and one picture."""

from dataclasses import dataclass
from pathlib import Path

from vantage.cli.arguments import Command, parse
from vantage.cli.console import Console
from vantage.cli.results import check_out
from vantage.composition.fields import options
from vantage.errors import UserError

__all__ = ["shots"]

_ENDINGS = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Drawing:
    """What `shots` is told."""

    results: tuple[str, ...]
    """Folders of runs, or files that `vantage evaluate lowshot` wrote."""

    out: str = "shots.png"
    """Picture to write, ending with .png, .svg or .pdf; an older one is replaced."""


def shots(words: list[str], console: Console) -> int:
    """Low-shot results of several runs in one table and one picture: vantage shots RUN [RUN …] --out shots.png."""
    asked = parse(Command("vantage shots", shots.__doc__ or "", {}), options(Drawing, ("results",)), words).values
    out = Path(asked["out"])
    if not asked["results"]:
        raise UserError("shots needs folders of runs, or files of results: vantage shots RUN --out shots.png")
    check_out(out, _ENDINGS, "a picture")
    from vantage.evaluate.protocols.svm.shots import read_shots
    from vantage.storage.figures import picture
    from vantage.storage.files import write_result

    found = read_shots([Path(place) for place in asked["results"]])
    for line in found.lines():
        console.result(line)
    write_result(out, picture(found.figure(), out.suffix[1:]), "the picture")
    console.note(f"kept in {out}")
    return 0
