"""`vantage evaluate transfer`: one run on many labeled sets, in one table."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vantage.cli.arguments import Command, parse
from vantage.cli.console import Console
from vantage.cli.protocols import first_said, protocol_named
from vantage.cli.results import kept_or_out
from vantage.composition.fields import headings, leaves, options
from vantage.data.threads import CORES
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.evaluate.transfer.sets import TransferSet
    from vantage.views.colors.statistics import Statistics

__all__ = ["evaluate_transfer"]


@dataclass(frozen=True)
class Transferring:
    """What `evaluate transfer` is told beside the fields of the protocol that judges."""

    run: str
    """Folder of the run."""

    by: str = "linear-cached"
    """Protocol that judges each set, such as knn or linear-cached, or a result of vantage evaluate, FILE.json, for the
    protocol and the settings that it has; its own fields may follow. linear-ring is what Ring's published table is made
    by; the default is faster, and its numbers are other ones."""

    sets: tuple[str, ...] = ()
    """Sets, each NAME=PLACE or NAME=TRAINING,TEST, with places as --data has them; without TEST a fifth is held out.
    crops:FILE.json is the boxes of a COCO file."""

    suite: Literal["", "meta-dataset"] = ""
    """Sets of a benchmark by name, beside those of --sets: the ones that are there and can be used are taken, the
    others are named with the reason. One of --sets that cannot be used is an error."""

    root: str = ""
    """Folder with a folder for each set of the suite."""

    download: bool = False
    """Whether sets of the suite that torchvision knows are downloaded (up to some gigabytes)."""

    mean: tuple[float, ...] = ()
    """Mean of red, green and blue, from 0 to 1, that all images are normalized by; without, each set's own."""

    std: tuple[float, ...] = ()
    """Standard deviation of red, green and blue; given together with --mean."""

    on_bad_image: Literal["skip", "stop"] = "skip"
    """What to do about unreadable images: leave them out (up to 1 % of a set), or refuse the set that has one."""

    baselines: bool = False
    """Whether raw pixels and a random encoder are judged as well."""

    out: str = ""
    """File for the table, ending with .md or .csv; without, RUN/evaluations/transfer.md and .csv."""

    device: str = "auto"
    """Device, such as cpu or cuda:0; auto takes an accelerator where there is one."""

    workers: int = CORES
    """Threads that decode images."""

    network: int | None = None
    """Which of the trained networks, for runs that have one per view."""


def evaluate_transfer(words: list[str], console: Console) -> int:
    """Judge a run on many labeled sets, each with its own mean and deviation, in one table."""
    from vantage.cli.images import work_of

    judge = protocol_named(first_said("--by", words, Transferring.by))
    fields = tuple(leaves(judge))
    command = Command("vantage evaluate transfer", evaluate_transfer.__doc__ or "", dict(headings(judge)))
    asked = parse(command, (*options(Transferring, ("run",)), *fields), words).values
    protocol = replace(judge, **{leaf.path: asked[leaf.path] for leaf in fields})
    from vantage.evaluate.transfer.sets import META_DATASET, found_sets
    from vantage.evaluate.transfer.transfer import transfer
    from vantage.frozen.encoder import load
    from vantage.storage.files import write_result

    load(Path(asked["run"]), asked["network"])  # a mistake in the run is told before the images are looked at
    targets = _targets(asked)
    sets = [_set_of(written, _given(asked)) for written in asked["sets"]]
    here: list[TransferSet] = []
    absent: list[str] = []
    if asked["suite"]:
        here, absent = found_sets(META_DATASET, Path(asked["root"]) if asked["root"] else None, asked["download"])
    for line in absent:
        console.note(f"not here: {line}")
    if not sets and not here:
        raise UserError("no set is here: name some (--sets NAME=PLACE), or a suite and the folder of its sets (--root)")
    table = transfer(
        Path(asked["run"]),
        sets,
        protocol,
        found=[replace(one, statistics=_given(asked)) for one in here],
        on_bad_image=asked["on_bad_image"],
        baselines=asked["baselines"],
        network=asked["network"],
        work=work_of(asked, console),
    )
    text = table.markdown() + "".join(f"Not here: {line}\n" for line in absent)
    for target in targets:
        write_result(target, table.comma_separated() if target.suffix == ".csv" else text, "the table")
    console.result(text.rstrip())
    console.note(f"kept in {', '.join(map(str, targets))}")
    return 0


def _targets(asked: Mapping[str, Any]) -> list[Path]:
    out = kept_or_out(asked, (".md", ".csv"), "a table")
    kept = Path(asked["run"]) / "evaluations"
    return [kept / "transfer.md", kept / "transfer.csv"] if out is None else [out]


def _given(asked: Mapping[str, Any]) -> "Statistics | None":
    if not asked["mean"] and not asked["std"]:
        return None
    from vantage.views.colors.statistics import Statistics

    if len(asked["mean"]) != 3 or len(asked["std"]) != 3 or min(asked["std"]) <= 0:
        raise UserError(
            f"--mean {asked['mean']} --std {asked['std']}: give both, three numbers each for red, green and blue,"
            " deviations above 0; or neither, and each set's own are measured"
        )
    return Statistics(tuple(asked["mean"]), tuple(asked["std"]))


def _set_of(written: str, statistics: "Statistics | None") -> "TransferSet":
    from vantage.evaluate.transfer.sets import TransferSet

    name, mark, places = written.partition("=")
    train, _, test = places.partition(",")
    if not name or not mark or not train:
        raise UserError(f"--sets {written}: write NAME=PLACE, or NAME=TRAINING,TEST, such as flowers=flowers/train")
    return TransferSet(name, train, test, statistics)
