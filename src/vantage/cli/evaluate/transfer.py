"""`vantage evaluate transfer`: one run on many labeled sets, in one table."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from vantage.cli.arguments import Command, Repeated, Word, read
from vantage.cli.console import Console
from vantage.cli.evaluate.protocols import protocol_named, protocols
from vantage.cli.files import file_or_kept
from vantage.cli.options import BadImages, Computing, Network, RunFolder
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.evaluate.transfer.sets import TransferSet
    from vantage.views.colors.statistics import Statistics

__all__ = ["transfer"]


@dataclass(frozen=True)
class Transferring:
    """The options of `evaluate transfer`."""

    by: Annotated[str, Word("PROTOCOL")] = "linear-cached"
    """Protocol that judges each set, such as knn or linear-cached, or a result of vantage evaluate, FILE.json, for the
    protocol and the settings that it has. linear-ring makes Ring's published table; the default is faster, and its
    numbers are other ones."""

    set: Repeated = ()
    """A setting of the protocol, such as --set k=20. May be repeated."""

    sets: Annotated[tuple[str, ...], Word("NAME=PATH")] = ()
    """Sets, each NAME=PATH or NAME=TRAINING,TEST, with paths as --data has them; without TEST a fifth is held out.
    crops:FILE.json is the boxes of a COCO file."""

    suite: Literal["", "meta-dataset"] = ""
    """Sets of a benchmark by name, meta-dataset, beside those of --sets: the ones that are there and can be used are
    taken, the others are named with the reason. One of --sets that cannot be used is an error."""

    root: Annotated[str, Word("FOLDER")] = ""
    """Folder with a folder for each set of the suite."""

    download: bool = False
    """Download sets of the suite that torchvision knows (up to some gigabytes)."""

    mean: tuple[float, ...] = ()
    """Mean of red, green and blue, from 0 to 1, that all images are normalized by; if omitted, each set's own."""

    std: tuple[float, ...] = ()
    """Standard deviation of red, green and blue; given together with --mean."""

    baselines: bool = False
    """Judge raw pixels and a random encoder as well."""

    out: Annotated[str, Word("FILE")] = ""
    """File for the table, ending with .md or .csv; if omitted, RUN/evaluations/transfer.md and .csv."""


def transfer(words: list[str], console: Console) -> int:
    """Judge a run on many labeled sets, each with its own mean and deviation, in one table."""
    command = Command("evaluate transfer", transfer.__doc__ or "", _settable)
    groups = (RunFolder, Transferring, Network, BadImages, Computing)
    run, options, network, bad, computing = read(command, words, *groups)
    from vantage.composition.assignments import assigned
    from vantage.evaluate.transfer.sets import META_DATASET, found_sets
    from vantage.evaluate.transfer.transfer import transfer as judge
    from vantage.frozen.encoder import load
    from vantage.storage.files import write_result

    protocol = assigned(protocol_named(options.by, labeled_only=True), options.set, name=options.by)
    load(run.folder, network.network)  # a mistake in the run is reported before the images are looked at
    out, kept = file_or_kept(options.out, run.folder, (".md", ".csv"), "a table"), run.folder / "evaluations"
    targets = [kept / "transfer.md", kept / "transfer.csv"] if out is None else [out]
    statistics = _statistics(options)
    sets = [_set_of(written, statistics) for written in options.sets]
    here: list[TransferSet] = []
    absent: list[str] = []
    if options.suite:
        here, absent = found_sets(META_DATASET, Path(options.root) if options.root else None, options.download)
    for line in absent:
        console.note(f"not here: {line}")
    if not sets and not here:
        raise UserError("no set is here: name some (--sets NAME=PATH), or a suite and the folder of its sets (--root)")
    table = judge(
        run.folder,
        sets,
        protocol,
        found=[replace(one, statistics=statistics) for one in here],
        on_bad_image=bad.on_bad_image,
        baselines=options.baselines,
        network=network.network,
        work=computing.work(console),
    )
    text = table.markdown() + "".join(f"Not here: {line}\n" for line in absent)
    for target in targets:
        write_result(target, table.comma_separated() if target.suffix == ".csv" else text, "the table")
    console.result(text.rstrip())
    console.note(f"kept in {', '.join(map(str, targets))}")
    return 0


def _settable() -> list[str]:
    from vantage.composition.fields import leaves

    return sorted({leaf.path for kind in protocols(labeled_only=True).values() for leaf in leaves(kind())})


def _statistics(options: Transferring) -> "Statistics | None":
    if not options.mean and not options.std:
        return None
    from vantage.views.colors.statistics import Statistics

    if len(options.mean) != 3 or len(options.std) != 3 or min(options.std) <= 0:
        raise UserError(
            f"--mean {options.mean} --std {options.std}: give both, three numbers each for red, green and blue,"
            " deviations above 0; or neither, and each set's own are measured"
        )
    return Statistics(options.mean, options.std)


def _set_of(written: str, statistics: "Statistics | None") -> "TransferSet":
    from vantage.evaluate.transfer.sets import TransferSet

    name, mark, paths = written.partition("=")
    train, _, test = paths.partition(",")
    if not name or not mark or not train:
        raise UserError(f"--sets {written}: write NAME=PATH, or NAME=TRAINING,TEST, such as flowers=flowers/train")
    return TransferSet(name, train, test, statistics)
