"""The rows that a sweep measures, and the file that stores them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vantage.composition.codec import encode
from vantage.composition.own_code import own_code
from vantage.errors import UserError
from vantage.facts.results import RANDOM_ENCODER, RAW_PIXELS
from vantage.storage.cache import digest
from vantage.storage.results import ResultsFile
from vantage.studies.analyse.information_table import BranchInformation
from vantage.training.run import Data, Hardware, Run

__all__ = ["SweepRow", "information_fields", "key_of", "stored_rows"]

_FILE = "sweep.json"
_IGNORED_FIELDS = ("data", "hardware", "monitoring")
"""Not part of a result, except for what `_that_decides` names; images are identified by their fingerprint."""


@dataclass(frozen=True)
class SweepRow:
    """The measurements of one run, or of a baseline."""

    key: str
    """Hash of all settings that the numbers depend on, and of the images."""

    encoder: str
    """The recipe, "raw pixels" or "random encoder"."""

    label: str
    """The value of the sweep; for a baseline, the first value with the same evaluation view and backbone."""

    number: float | None
    """The value as a number, if it is one."""

    seed: int
    """Seed of the run or of the random encoder."""

    accuracy: Mapping[str, float]
    """First measure of each protocol on the test images, in percent."""

    i_nce: float | None = None
    """I_NCE on the held-out images, averaged over the branches, in nats; None for baselines, and if not measured."""

    i_nce_deviation: float | None = None
    """Standard deviation of I_NCE over the draws of views and negatives."""

    branches: tuple[Mapping[str, Any], ...] = ()
    """I_NCE of each branch, with its pairs and all draws."""

    bound: float | None = None
    """log(K + 1), in nats."""

    loss: float | None = None
    """Loss of the last epoch."""

    seconds: float | None = None
    """Training time."""

    def words(self) -> str:
        """The measurements of a run in a line."""
        accuracies = [f"{protocol} {value:.1f} %" for protocol, value in self.accuracy.items()]
        shared = [] if self.i_nce is None else [f"I_NCE {self.i_nce:.3f} of at most {self.bound:.2f} nats"]
        return ", ".join(shared + accuracies)


def information_fields(branches: Sequence[BranchInformation]) -> dict[str, Any]:
    """The information shared in each branch of a run, as fields of a row."""
    draws = list(zip(*(branch.estimates for branch in branches), strict=True))
    mean = BranchInformation(
        0, "", tuple(sum(draw) / len(draw) for draw in draws), branches[0].negatives, branches[0].images
    )
    return {
        "i_nce": mean.nats,
        "i_nce_deviation": mean.deviation,
        "branches": tuple({**asdict(branch), "estimates": list(branch.estimates)} for branch in branches),
        "bound": mean.bound,
    }


def key_of(*facts: Any) -> str:
    """The key of a row, which depends on all facts: plain data, and runs without what does not change their numbers by
    more than rounding (where images and files are, workers, devices), but with the code of a user's own parts."""
    return digest([_facts_of(fact) if isinstance(fact, Run) else fact for fact in facts])


def _facts_of(run: Run) -> dict[str, Any]:
    facts = {name: value for name, value in encode(run).items() if name not in _IGNORED_FIELDS}
    code = own_code(run)
    return facts | _that_decides(run) | ({"code": code} if code else {})


def _that_decides(run: Run) -> dict[str, Any]:
    """The order of images, the part of them that is seen, and the precision, where they are not the default: keys of
    rows that were measured before stay as they are."""
    data, hardware = Data(), Hardware()
    pairs = {name: (getattr(run.data, name), getattr(data, name)) for name in ("shuffle_window", "resident_side")}
    pairs["precision"] = (run.hardware.precision, hardware.precision)
    return {name: value for name, (value, usual) in pairs.items() if value != usual}


def stored_rows(folder: Path, identity: Mapping[str, Any]) -> ResultsFile[SweepRow]:
    """The rows of a sweep in its folder by key; the file is written after each new row.

    `identity` says which sweep it is, and by which protocols it measures. Raises `UserError` if the folder holds
    another sweep, or a damaged file.
    """
    rows = ResultsFile(folder / _FILE, identity, "sweep", _parse_row, asdict)
    protocols = {name for name, *_ in identity["protocols"]}
    if any(rows[key].accuracy.keys() != protocols for key in rows):
        raise UserError(f"{folder / _FILE} is damaged (a row has other protocols than the sweep): name another folder")
    trained = [rows[key] for key in rows if rows[key].encoder not in (RAW_PIXELS, RANDOM_ENCODER)]
    if any((row.i_nce is None) != (identity["information"] is None) for row in trained):
        raise UserError(f"{folder / _FILE} is damaged (I_NCE is missing, or was not asked for): name another folder")
    return rows


def _parse_row(row: dict[str, Any]) -> SweepRow:
    whole = SweepRow(**{**row, "branches": tuple(row["branches"])})
    names, optional = (whole.key, whole.encoder, whole.label), (*_numbers(whole), whole.number)
    if not (
        all(isinstance(name, str) for name in names)
        and type(whole.seed) is int
        and all(isinstance(value, float | int) for value in whole.accuracy.values())
        and all(isinstance(value, float | int | None) for value in optional)
        and (whole.encoder in (RAW_PIXELS, RANDOM_ENCODER) or None not in (whole.loss, whole.seconds))
        and len({value is None for value in _numbers(whole)[:3]}) == 1
        and all(isinstance(branch, dict) for branch in whole.branches)
    ):
        raise ValueError(f"a row is malformed: {str(row)[:200]!r}")
    return whole


def _numbers(row: SweepRow) -> tuple[float | None, ...]:
    return row.i_nce, row.i_nce_deviation, row.bound, row.loss, row.seconds
