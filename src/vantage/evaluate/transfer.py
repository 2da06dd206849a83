"""One run on many labelled sets, in one table: what a backbone is worth away from the images it was trained on.

Ring (arXiv 2010.02037, table 3) does so on sets of Meta-Dataset (arXiv 1903.03096), each normalised by its own mean
and standard deviation.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from vantage.data.cache import read_json, try_write_json
from vantage.data.opening import open_source
from vantage.data.source import Source, cache_key, hash_of
from vantage.embedding import Work
from vantage.errors import DataError, UserError
from vantage.evaluate.changed import changed
from vantage.evaluate.evaluation import Result, file_name, keep, result_of, split, with_baselines
from vantage.evaluate.labelled import Renumbered, with_labels
from vantage.evaluate.linear_depths import statistics_of
from vantage.evaluate.outcome import EvaluationProtocol, Outcome
from vantage.evaluate.transfer_table import Row, TransferTable
from vantage.trained import Trained, load
from vantage.views.statistics import Statistics

__all__ = ["META_DATASET", "TransferSet", "found_sets", "transfer"]


@dataclass(frozen=True)
class TransferSet:
    """One labelled set of a table."""

    name: str
    """What it is called in the table."""

    train: str
    """Place of the training images, as `vantage.data.open_source` takes it."""

    test: str = ""
    """Place of the test images; without, a fifth of each class of the training images is held out."""

    statistics: Statistics | None = None
    """Mean and standard deviation that its images are normalised by; none measures them on its training images."""


META_DATASET = (
    TransferSet("Aircraft", "torchvision:FGVCAircraft#trainval", "torchvision:FGVCAircraft#test"),
    TransferSet("CUB", ""),
    TransferSet("DTD", "torchvision:DTD#train", "torchvision:DTD#test"),
    TransferSet("Fungi", ""),
    TransferSet("MNIST", "torchvision:MNIST#train", "torchvision:MNIST#test"),
    TransferSet("FashionMNIST", "torchvision:FashionMNIST#train", "torchvision:FashionMNIST#test"),
    TransferSet("GTSRB", "torchvision:GTSRB#train", "torchvision:GTSRB#test"),
    TransferSet("Flowers", "torchvision:Flowers102#train", "torchvision:Flowers102#test"),
    TransferSet("COCO", ""),
    TransferSet("Places205", ""),
)
"""The sets of Ring's table 3 and Places205 (InterCLR). Those without a place are not in torchvision: they are looked
for in a folder."""


def found_sets(suite: Sequence[TransferSet], root: Path | None, download: bool) -> tuple[list[TransferSet], list[str]]:
    """The sets of a suite that are here, with their places, and a line for each that is not.

    A set is taken from the folder `root`/NAME: its parts `train` and `test` (or `val`), or all of it; COCO's as
    `root`/COCO/annotations/instances_*.json. Otherwise, where `download` allows it, from torchvision.
    """
    here, absent = [], []
    for one in suite:
        place = root / one.name if root is not None else None
        if place is not None and place.is_dir():
            here.append(replace(one, **_places(place)))
        elif one.train and download:
            here.append(one)
        else:
            how = " or allow its download (--download)" if one.train else ""
            absent.append(f"{one.name}: no folder {place or one.name}; put it there (--root){how}")
    return here, absent


def transfer(
    run_folder: Path,
    sets: Sequence[TransferSet],
    protocol: EvaluationProtocol,
    *,
    baselines: bool = False,
    network: int | None = None,
    allow: tuple[str, ...] = (),
    work: Work | None = None,
) -> TransferTable:
    """Judge a run's newest checkpoint on each of the sets by one protocol.

    Each set's images are normalised by their own mean and standard deviation. What is done is kept under
    `run_folder`/evaluations/transfer, a file for each set and encoder, and read there the next time, so that a table
    that was stopped goes on. A set that the protocol cannot judge is named in the table with the reason.

    Raises `UserError` where the run has no usable checkpoint, where two sets have one name, and where no set can be
    judged; `DataError` for a set that is not at its place.
    """
    work = work or Work()
    if not sets or len({one.name for one in sets}) < len(sets):
        raise UserError("transfer needs sets, each with a name of its own: --sets NAME=PLACE NAME=PLACE")
    trained = load(run_folder, network, allow)
    encoders = with_baselines(trained, network) if baselines else [trained]
    opened = [(one, *_opened(one)) for one in sets]  # a mistake in the last place is told before the first is judged
    rows: list[Row] = []
    reasons: dict[str, str] = {}
    for number, (one, train, test, kind) in enumerate(opened):
        work.teller.line(f"{one.name}: set {number + 1} of {len(sets)}, {len(train):,} and {len(test):,} images")
        try:
            statistics = one.statistics or _measured(trained, train, work)
            for encoder in encoders:
                seen = replace(encoder, view=replace(encoder.view, statistics=statistics))
                rows.append(_row(_Task(one.name, seen, train, test, kind), protocol, run_folder, work))
        except UserError as problem:
            reasons[one.name] = str(problem)
            work.teller.warn(f"{one.name} is left out: {problem}")
    if not rows:
        raise UserError("no set could be judged: " + "; ".join(f"{name}: {why}" for name, why in reasons.items()))
    return TransferTable(protocol.name, protocol.version, _settings(protocol), tuple(rows), reasons, changed(protocol))


@dataclass(frozen=True)
class _Task:
    """One row: an encoder on a set."""

    name: str
    encoder: Trained
    train: Source
    test: Source
    kind: str


def _settings(protocol: Any) -> dict[str, Any]:
    return asdict(protocol)


def _row(task: _Task, protocol: EvaluationProtocol, run_folder: Path, work: Work) -> Row:
    """Judged now, or read where it was judged before."""

    def result(outcomes: dict[str, Outcome]) -> Result:
        return result_of(protocol, task.encoder, task.train, task.test, task.kind, outcomes, work)

    images = cache_key(task.train) + cache_key(task.test)  # which follow the files' time stamps
    key = hash_of([task.name.encode(), task.encoder.name.encode(), file_name(result({})).encode(), images.encode()])
    kept = run_folder / "evaluations" / "transfer" / f"{protocol.name}-v{protocol.version}-{key[:12]}.json"
    known = read_json(kept)
    if isinstance(known, dict) and known.get("outcomes"):
        (outcome,) = (Outcome(**one) for one in known["outcomes"].values())
        work.teller.line(f"{task.name}, {task.encoder.name}: done before")
    else:
        outcome = protocol(task.encoder, task.train, task.test, work)
        keep(result({task.encoder.name: outcome}), run_folder, kept)
    quoted = next(iter(outcome.measures))
    return Row(
        task.name, task.encoder.name, quoted, outcome.measures[quoted], outcome.train_images, outcome.test_images
    )


def _opened(one: TransferSet) -> tuple[Source, Source, str]:
    """Training and test images of a set, and where the test images come from."""
    train = open_source(one.train)
    labelled, label = with_labels(train)
    if len(label.unique()) < 2:
        raise DataError(f"{one.name}: all labelled images of {one.train} are of one class; name a set with two or more")
    if one.test:
        test = open_source(one.test)
        if test.fingerprint() == train.fingerprint():
            raise UserError(f"{one.name}: the test images are the training images: name others, or none")
        return labelled, Renumbered(test, train.classes), "a set of its own"
    train, test = split(labelled)
    return train, test, "a fifth of each class, drawn with seed 0"


def _measured(trained: Trained, train: Source, work: Work) -> Statistics:
    """Mean and standard deviation of a set, measured once."""
    plain = replace(trained.view, statistics=Statistics((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
    kept = work.cache / "statistics" / f"{hash_of([cache_key(train).encode(), repr(plain).encode()])}.json"
    known = read_json(kept)
    if isinstance(known, dict) and set(known) == {"mean", "std"}:
        return Statistics(tuple(known["mean"]), tuple(known["std"]))
    found = statistics_of(trained, train, work)
    try_write_json(kept, asdict(found))
    return found


def _places(folder: Path) -> dict[str, str]:
    """Where a set's parts are in its folder."""
    files = sorted((folder / "annotations").glob("instances_*.json"))
    if files:
        train = next((file for file in files if "train" in file.name), files[0])
        test = next((file for file in files if "val" in file.name and file != train), None)
        return {"train": f"crops:{train}", "test": f"crops:{test}" if test else ""}
    parts = {name: folder / name for name in ("train", "test", "val") if (folder / name).is_dir()}
    if "train" in parts and len(parts) > 1:
        return {"train": str(parts["train"]), "test": str(parts.get("test", parts.get("val")))}
    return {"train": str(folder), "test": ""}
