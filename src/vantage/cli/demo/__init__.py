"""The verb `demo`: from images to a backbone in a few minutes, on photographs that come with the installation."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from vantage.cli.printing.console import Console
from vantage.cli.reading.arguments import Command, Word, read
from vantage.cli.reading.out_files import check_folder

__all__ = ["demo"]


@dataclass(frozen=True)
class DemoOptions:
    """The options of `demo`."""

    out: Annotated[str, Word("FOLDER")] = "vantage-demo"
    """Folder for the run."""


def demo(words: list[str], console: Console) -> int:
    """Train on photographs that come with the installation, and evaluate: vantage demo (takes a few minutes)."""
    (options,) = read(Command("demo", demo.__doc__ or ""), words, DemoOptions)
    out = check_folder(Path(options.out))
    from vantage.cli.demo.demonstration import demo as show

    for line in show(out, console.progress()).lines():
        console.result(line)
    return 0
