"""The lab on the command line: list the entries, reproduce them at a level, judge the claims, write the page."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from vantage.cli.printing.console import INTERRUPTED, Console
from vantage.cli.reading.arguments import Command, Word, read
from vantage.cli.reading.options import check_device
from vantage.cli.reading.out_files import check_folder
from vantage.cli.reproduce.selecting import check_cells, name_and_path, read_seeds, select_entries
from vantage.cli.reproduce.showing import list_entries, print_claims, print_runs, show_entry
from vantage.errors import UserError, quantity
from vantage.storage.strangers import check_content

if TYPE_CHECKING:
    from vantage.studies.lab import Entry, Level, Maker, WorkOrder

__all__ = ["run_lab"]


@dataclass(frozen=True)
class LabOptions:
    """The options of the lab."""

    names: Annotated[tuple[str, ...], Word("ENTRY", positional=True)] = ()
    """Entries, such as jcl-table-1. A paper (jcl, cnce, interclr, infomin) means all its entries, `ours` those that no
    paper has, and `all` every entry. If omitted, entries are listed with their state."""

    level: Literal["smoke", "two-cores", "overnight", "one-gpu", "paper"] = "two-cores"
    """smoke: a minute each, on photographs that need no file, and no claim is judged; two-cores: hours; overnight: the
    same for fifteen times as many images; one-gpu: a larger network for thirty times as many; paper: only print the
    commands at the paper's scale."""

    data: Annotated[tuple[str, ...], Word("NAME=PATH", repeated=True)] = ()
    """Path of an image set, such as tiny-imagenet-50=tiny-imagenet-50.tar.gz. May be repeated."""

    out: Annotated[str, Word("LAB")] = "lab"
    """Folder of the lab, which keeps all results."""

    seeds: str = "0..5"
    """Seeds, as FIRST..LAST or one number. Results for other seeds are kept."""

    cell: Annotated[tuple[str, ...], Word("NAME", repeated=True)] = ()
    """Only run the cells with this name, as --show prints it. May be repeated. If omitted, all cells of the entries."""

    jobs: int = 1
    """Processes that share the work. You may start more of them elsewhere on the same folder."""

    missing: bool = False
    """Only list what is missing, entry by entry."""

    collect: bool = False
    """Only collect the finished results, even while other processes are working."""

    show: bool = False
    """Only print the claims, the paper's values, how cells are trained, and the paper's commands."""

    take_in: Annotated[str, Word("LAB")] = ""
    """First import the cells of a lab from elsewhere, of other seeds or entries: a cell is left out if another kind of
    computer made cells of its entry and seed, whose differences would not be paired."""

    results: Annotated[str, Word("FOLDER")] = ""
    """Folder for each entry's file of numbers. New numbers are added to a file, and seeds that are complete in it are
    not run again. If omitted, `results` in the lab."""

    page: Annotated[str, Word("FILE")] = ""
    """Write the page of all claims from the files of numbers, with its pictures in images/claims beside it."""

    device: Annotated[str, Word("DEVICE")] = "auto"
    """cpu, cuda:0, …; auto: a GPU, if any."""

    def __post_init__(self) -> None:
        check_device(self.device)


def run_lab(words: list[str], console: Console, about: str) -> int:
    """Run the lab as the words say."""
    (options,) = read(Command("reproduce", about), words, LabOptions)
    if not options.names and not options.page and not options.take_in:
        _list(options, console)
        return 0
    entries = select_entries(options.names)
    if options.show or options.level == "paper":
        for entry in _scaled(entries, options):
            show_entry(entry, options.level, console)
        return 0
    order = _order(entries, options)
    if options.take_in:
        _take_in(Path(options.take_in), order.lab, console)
    complete = _make(order, options, console) if entries else True
    if options.page:
        from vantage.studies.lab import ENTRIES, publish

        publish(ENTRIES, _results_folder(options), Path(options.page))
        smoke = "; results of smoke are not on it" if options.level == "smoke" else ""
        console.note(f"the page is {options.page}{smoke}")
    return 0 if complete else INTERRUPTED


def _take_in(other: Path, folder: Path, console: Console) -> None:
    """Import the cells of a lab from elsewhere, except those that would not be paired with cells that are here."""
    from vantage.studies.lab import ENTRIES, LEVELS, LabFolder, Origins, smoke

    lab, scales = LabFolder(folder), (smoke, *(level.entry for level in LEVELS))
    lab.check()
    origins = Origins(scale(entry) for scale in scales for entry in ENTRIES)
    for _, record in lab.records():
        if record is not None:
            origins.add(record)
    copies, misfits = lab.take_in(other, origins.admits)
    console.note(f"{quantity(copies, 'cell')} taken in from {other}, {misfits} refused: their files do not fit")
    if origins.left_out:
        console.note(
            f"{origins.left_out} more left out: another kind of computer made other cells of their entry and seed, and"
            " their differences would not be paired; take them into a lab of their own"
        )


def _list(options: LabOptions, console: Console) -> None:
    """List all entries with their time, and their state at the level according to the collected numbers."""
    from vantage.studies.lab import ENTRIES, time_per_seed

    small = options.level == "smoke"

    def time(entry: "Entry") -> str:
        return f"{time_per_seed(entry)} a seed" if entry.runnable_cells and not small else ""

    list_entries(_scaled(ENTRIES, options), _level_folder(options), console, time, published=bool(options.results))


def _make(order: "WorkOrder", options: LabOptions, console: Console) -> bool:
    from vantage.studies.lab import (
        estimate_workload,
        judge_claims,
        make_all,
        missing_pieces,
        numbers_in,
        write_collected,
        write_map,
    )

    maker = order.maker()
    if options.missing:
        _list_missing(maker, order, options.jobs, console)
        return True
    todo = missing_pieces(maker, order.entries, order.seeds, order.results, order.cells)
    if todo and not options.collect:
        console.note(f"to be done: {estimate_workload(maker, todo).words(options.jobs, maker.on_gpu)}")
    complete = options.collect or make_all(order, options.jobs, console.note)
    folder = _level_folder(options)
    _note_outdated(order.entries, folder, console)
    for path in write_collected(maker, order.entries, order.seeds, folder, options.level):
        console.note(f"numbers are in {path}")
    for entry in order.entries:
        if path := write_map(maker, entry, order.seeds, folder):
            console.note(f"the positions of a map, which --page draws, are in {path}")
        verdicts = judge_claims(entry, numbers_in(folder, entry))
        (print_runs if options.level == "smoke" else print_claims)(entry, verdicts, console)
    return complete


def _list_missing(maker: "Maker", order: "WorkOrder", jobs: int, console: Console) -> None:
    """List what each entry lacks, under its name and its time. Runs that entries share are counted in each of them."""
    from vantage.studies.lab import TrainingSpeeds, estimate_workload, missing_pieces

    speeds = TrainingSpeeds(maker)
    for entry in order.entries:
        if todo := missing_pieces(maker, (entry,), order.seeds, order.results, order.cells):
            rows = [(p.cell.name, f"seed {p.seed}, {p.measure.name if p.measure else 'toy'}") for p in todo]
            console.results(f"{entry.name}: {estimate_workload(maker, todo, speeds).words(jobs, maker.on_gpu)}", rows)


def _note_outdated(entries: "tuple[Entry, ...]", folder: Path, console: Console) -> None:
    """Note which collected numbers no longer count, before they are replaced."""
    from vantage.studies.lab import outdated

    for entry in entries:
        if numbers := list(outdated(folder, entry)):
            more = f" and {len(numbers) - 1} more" if len(numbers) > 1 else ""
            console.note(f"{entry.name}: {numbers[0]}{more} left out, since the cell or its measure has changed")


def _order(entries: "tuple[Entry, ...]", options: LabOptions) -> "WorkOrder":
    from vantage.studies.lab import WorkOrder

    data = tuple(name_and_path(word) for word in options.data)
    folder = check_folder(Path(options.out))
    if options.jobs < 1:
        raise UserError(f"--jobs {options.jobs}: give at least 1")
    small, results = options.level == "smoke", _level_folder(options) if options.results else None
    scaled, seeds = _scaled(entries, options), read_seeds(options.seeds)
    return WorkOrder(scaled, seeds, folder, data, small, options.device, results, check_cells(scaled, options.cell))


def _scaled(entries: "tuple[Entry, ...]", options: LabOptions) -> "tuple[Entry, ...]":
    """The entries at the level."""
    from vantage.studies.lab import smoke

    return tuple(map(smoke if options.level == "smoke" else _level(options).entry, entries))


def _results_folder(options: LabOptions) -> Path:
    """The folder of results. Raises `UserError` if it is not safe to open."""
    from vantage.studies.lab import ENTRIES, LEVELS
    from vantage.studies.lab.making.maps import MAPS

    smoke = "smoke-results" if options.level == "smoke" else "results"
    folder = Path(options.results) if options.results else Path(options.out) / smoke
    check_content(folder, (*(f"{entry.name}.json" for entry in ENTRIES), MAPS, *(each.subfolder for each in LEVELS)))
    return folder


def _level_folder(options: LabOptions) -> Path:
    """The folder with this level's numbers, inside the folder of results."""
    return _level(options).folder(_results_folder(options))


def _level(options: LabOptions) -> "Level":
    """The level to judge. smoke has separate results; for it, this is the first level."""
    from vantage.studies.lab import LEVELS

    return next((each for each in LEVELS if each.name == options.level), LEVELS[0])
