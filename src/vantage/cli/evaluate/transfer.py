"""`vantage evaluate transfer`: one run on many labeled sets, in one table."""

import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from vantage.cli.evaluate.protocols import protocol_named, protocols
from vantage.cli.printing.console import Console
from vantage.cli.reading.arguments import Command, Repeated, Word, read
from vantage.cli.reading.options import EvaluatedOptions, RunOrWeights, WorkOptions
from vantage.cli.reading.out_files import result_file_or_none
from vantage.composition.assignments import assign
from vantage.composition.fields import leaves
from vantage.errors import UserError
from vantage.storage.files import write_result

if TYPE_CHECKING:
    from vantage.evaluate.transfer.sets import TransferSet
    from vantage.frozen.encoder import FrozenEncoder
    from vantage.views.colors.statistics import Statistics

__all__ = ["transfer"]


@dataclass(frozen=True)
class TransferOptions:
    """The options of `evaluate transfer`."""

    by: Annotated[str, Word("PROTOCOL")] = "linear-cached"
    """Protocol for every set, such as knn or linear-cached; or a result of vantage evaluate, FILE.json, whose protocol
    and settings are used. linear-ring is the protocol of Ring's published table; the default is faster and gives other
    numbers."""

    set: Repeated = ()
    """A setting of the protocol, such as --set k=20. May be repeated."""

    sets: Annotated[tuple[str, ...], Word("NAME=PATH")] = ()
    """Sets, each NAME=PATH or NAME=TRAINING,TEST, with paths as in --data; without TEST, a fifth is held out.
    crops:FILE.json stands for the boxes of a COCO file."""

    suite: Literal["", "meta-dataset"] = ""
    """All sets of a benchmark, meta-dataset, in addition to --sets. Sets of the suite that are not available are
    skipped and listed with the reason; a set of --sets that cannot be used is an error."""

    root: Annotated[str, Word("FOLDER")] = ""
    """Folder that contains one folder for each set of the suite."""

    download: bool = False
    """Download the sets of the suite that torchvision provides (up to several gigabytes)."""

    mean: tuple[float, ...] = ()
    """Mean of red, green and blue, from 0 to 1, for normalizing all sets; if omitted, each set's own."""

    std: tuple[float, ...] = ()
    """Standard deviation of red, green and blue; needs --mean."""

    out: Annotated[str, Word("FILE")] = ""
    """File for the table, ending with .md or .csv; if omitted, RUN/evaluations/transfer.md and .csv."""


def transfer(words: list[str], console: Console) -> int:
    """Evaluate a run on many labeled sets, each with its own mean and standard deviation, in one table."""
    command = Command("evaluate transfer", transfer.__doc__ or "", _settable)
    groups = (RunOrWeights, TransferOptions, EvaluatedOptions, WorkOptions)
    run, options, network, computing = read(command, words, *groups)
    from vantage.evaluate.transfer.transfer import transfer as evaluate_all
    from vantage.frozen.encoder import load

    protocol = assign(protocol_named(options.by, labeled_only=True), options.set, name=options.by)
    encoder = load(run.folder, network.network)  # report a mistake in the run before the images are read
    _check_range(options, encoder)
    out, folder = result_file_or_none(options.out, run.home, (".md", ".csv"), "a table"), run.home / "evaluations"
    files = [folder / "transfer.md", folder / "transfer.csv"] if out is None else [out]
    own_sets, suite_sets, missing = _sets(options, console)
    table = evaluate_all(
        run.folder,
        own_sets,
        protocol,
        suite=suite_sets,
        on_bad_image=computing.on_bad_image,
        baselines=network.baselines,
        network=network.network,
        work=computing.work(console),
    )
    text = table.markdown() + "".join(f"Not available: {line}\n" for line in missing)
    for file in files if console.first else ():
        write_result(file, table.comma_separated() if file.suffix == ".csv" else text, "the table")
    console.result(text.rstrip())
    console.note(f"saved in {', '.join(map(str, files))}")
    return 0


def _sets(options: TransferOptions, console: Console) -> "tuple[list[TransferSet], list[TransferSet], list[str]]":
    """The sets of --sets, the available sets of the suite, and a line about each set that is not available."""
    from vantage.evaluate.transfer.sets import META_DATASET, available_sets

    statistics = _statistics(options)
    own_sets = [_set_of(text, statistics) for text in options.sets]
    available: list[TransferSet] = []
    missing: list[str] = []
    if options.suite:
        available, missing = available_sets(
            META_DATASET, Path(options.root) if options.root else None, options.download
        )
    for line in missing:
        console.note(f"not available: {line}")
    if not own_sets and not available:
        raise UserError("there is no set: name some (--sets NAME=PATH), or a suite and the folder of its sets (--root)")
    return own_sets, [replace(each, statistics=statistics) for each in available], missing


def _settable() -> list[str]:
    return sorted({leaf.path for kind in protocols(labeled_only=True).values() for leaf in leaves(kind())})


def _statistics(options: TransferOptions) -> "Statistics | None":
    if not options.mean and not options.std:
        return None
    from vantage.views.colors.statistics import Statistics

    if len(options.mean) != 3 or len(options.std) != 3 or min(options.std) <= 0:
        raise UserError(
            f"--mean {options.mean} --std {options.std}: give both, three numbers each for red, green and blue,"
            " deviations above 0; or neither, to measure those of each set"
        )
    return Statistics(options.mean, options.std)


def _check_range(options: TransferOptions, encoder: "FrozenEncoder") -> None:
    """Raises `UserError` for a mean and deviation that no colors have, such as those of values up to 255."""
    from vantage.views.colors.spaces import RGB

    is_rgb = isinstance(encoder.view.space, RGB)  # channels of other spaces have other ranges
    for name, values in (("--mean", options.mean), ("--std", options.std)):
        if not all(math.isfinite(value) and (0 <= value <= 1 or not is_rgb) for value in values):
            raise UserError(f"{name} {values}: give numbers from 0 to 1; divide those of colors up to 255 by 255")


def _set_of(text: str, statistics: "Statistics | None") -> "TransferSet":
    from vantage.evaluate.transfer.sets import TransferSet

    name, mark, paths = text.partition("=")
    train, _, test = (paths, "", "") if os.path.exists(paths) else paths.partition(",")
    if not name or not mark or not train:
        raise UserError(f"--sets {text}: write NAME=PATH, or NAME=TRAINING,TEST, such as flowers=flowers/train")
    return TransferSet(name, train, test, statistics)
