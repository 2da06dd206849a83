"""What `reproduce` prints about entries: their list, their claims and commands, and what a level has found."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vantage.cli.printing.console import Console

if TYPE_CHECKING:
    from vantage.studies.lab import Cell, Entry
    from vantage.studies.lab.verdicts import ClaimVerdict

__all__ = ["list_entries", "print_claims", "print_runs", "show_entry"]

_PAGE = "docs/claims.md"
"""The page of published results, in the repository."""


def list_entries(
    entries: "Sequence[Entry]", folder: Path, console: Console, time: "Callable[[Entry], str]", published: bool
) -> None:
    """List entries with their time, and their state according to the numbers in a folder. Unless these are the
    published ones, say where those are."""
    from vantage.studies.lab import PUBLISHED_RESULTS, completion, numbers_in

    rows = [
        (entry.name, f"{entry.place}: {entry.summary}", completion(entry, numbers_in(folder, entry)), time(entry))
        for entry in entries
    ]
    console.results("", rows)
    if not published:
        console.note(
            f"times are estimates for one idle core, and seeds are counted in {folder}; published results are on the"
            f" page {_PAGE} of the repository (to count their seeds, run this there with --results {PUBLISHED_RESULTS})"
        )


def show_entry(entry: "Entry", level: str, console: Console) -> None:
    """Print the claims and the paper's values; how the cells are trained at the level; the commands at the paper's
    scale; and where the published results are."""
    from vantage.studies.lab import ENTRIES, command, judge_claims, origins_of_runs

    claims = [(one.claim.name, f"{one.claim.text} ({one.claim.place})", _paper(one)) for one in judge_claims(entry, {})]
    console.results(f"{entry.name}: {entry.summary}", claims)
    cells = [(cell.name, *words) for cell in entry.cells if any(words := _cell(cell, level))]
    if cells:
        console.results("cells, with recipes named without the settings that a cell changes", cells)
    if level != "paper" and entry.runnable_cells:
        console.result(f"# at the level {level}:")
        console.result(command(entry, level, " --out lab"))
    console.result("# at the paper's scale:")
    for run, other in origins_of_runs(entry, ENTRIES).items():
        console.result(f"# {run} is trained by the commands of {other}")
    if any(line.startswith("vantage pretrain ") for line in entry.commands):
        console.result("# each vantage pretrain says how long it will take on its machine, before its first step")
    if entry.about_commands:
        console.result(f"# {entry.about_commands}")
    for line in entry.commands or ("# no command: see the page of claims",):
        console.result(" ".join(f"'{word}'" if "(" in word else word for word in line.split(" ")))
    console.result(f"results: {_PAGE}#{entry.name}, in the repository")


def _paper(one: "ClaimVerdict") -> str:
    from vantage.studies.lab import paper_in_words

    return f"paper: {paper_in_words(one)}" if one.paper else ""


def _cell(cell: "Cell", level: str) -> tuple[str, ...]:
    from vantage.studies.lab import paper_row, training_in_words

    paper, here = paper_row(cell), training_in_words(cell.experiment) if level != "paper" else ""
    return (f"paper: {paper}" * bool(paper), f"here: {here}" * bool(here))


def print_claims(entry: "Entry", verdicts: "Sequence[ClaimVerdict]", console: Console) -> None:
    """Print the verdict on each claim."""
    from vantage.studies.lab import ours_in_words

    rows = [(f"{one.claim.name}. {one.claim.text}", ours_in_words(one), one.verdict) for one in verdicts]
    console.results(f"{entry.name}: {entry.summary}", rows, ("claim", "here", "verdict"))


def print_runs(entry: "Entry", verdicts: "Sequence[ClaimVerdict]", console: Console) -> None:
    """Print that each claim could be judged, without its numbers: those of the smoke level say nothing about it."""
    from vantage.studies.lab import runs_in_words

    rows = [(f"{one.claim.name}. {one.claim.text}", runs_in_words(one)) for one in verdicts]
    console.results(f"{entry.name}: {entry.summary} (smoke: claims are not judged)", rows, ("claim", "here"))
