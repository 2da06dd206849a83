"""The verb `shots`: show low-shot results of several runs in one table and one picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from vantage.cli.printing.console import Console
from vantage.cli.reading.arguments import Command, Word, read
from vantage.cli.reading.out_files import check_file
from vantage.storage.figures import picture
from vantage.storage.files import write_result

__all__ = ["shots"]

_ENDINGS = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class ShotsOptions:
    """The options of `shots`."""

    results: Annotated[tuple[str, ...], Word("RUN", positional=True)]
    """Folders of runs, or files written by `vantage evaluate lowshot`."""

    out: Annotated[str, Word("FILE")] = "shots.png"
    """File for the picture, ending with .png, .svg or .pdf; an existing one is replaced."""


def shots(words: list[str], console: Console) -> int:
    """Show low-shot results of several runs in one table and one picture: vantage shots RUN [RUN …] --out shots.png."""
    (options,) = read(Command("shots", shots.__doc__ or ""), words, ShotsOptions)
    out = check_file(Path(options.out), _ENDINGS, "a picture")
    from vantage.evaluate.protocols.svm.shots import read_shots

    curves = read_shots([Path(path) for path in options.results])
    for line in curves.lines():
        console.result(line)
    write_result(out, picture(curves.figure(), out.suffix[1:]), "the picture")
    console.note(f"saved in {out}")
    return 0
