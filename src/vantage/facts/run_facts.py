"""What a run's folder records about the run, without encoding an image."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.pretty import pretty_repr

from vantage.composition.printing import in_a_line
from vantage.encoders.weights import build_without_numbers
from vantage.errors import UserError
from vantage.facts.results import LabeledResult, as_good, recorded_results
from vantage.facts.verdict import RunVerdict, verdict
from vantage.storage.metrics import read_metrics
from vantage.storage.provenance import read_provenance
from vantage.training.computing.passes import encodes_apart
from vantage.training.folder import checkpoint, settings
from vantage.training.run import Run

__all__ = ["RunFacts", "facts_of"]


@dataclass(frozen=True)
class RunFacts:
    """One run, as a report describes it."""

    name: str
    """Its name in the report."""
    folder: Path
    """Its folder."""
    run: Run
    """Its settings."""
    rows: list[dict[str, Any]]
    """Its metrics, a row for each epoch."""
    records: list[dict[str, Any]]
    """Its provenance: at its start, and each time it was resumed."""
    width: int
    """Width of the vectors that it compares."""
    checkpoint: str
    """Name of its newest checkpoint; empty if there is none."""
    results: list[LabeledResult]
    """The labeled results in its folder."""
    elsewhere: str = ""
    """The name of its weights if they come from elsewhere (`torchvision:resnet18=FILE`); empty for a run."""
    images_at_once: int = 0
    """Images that a query is compared with at once; 0 for weights from elsewhere."""

    @property
    def path(self) -> Path:
        """The path that opens its networks: the folder, or the name of weights from elsewhere."""
        return Path(self.elsewhere) if self.elsewhere else self.folder

    @property
    def verdict(self) -> RunVerdict:
        """How it went."""
        if self.elsewhere:
            return RunVerdict("no verdict", ("these weights come from elsewhere, so there is no training to judge.",))
        beaten = as_good(self.results, self.checkpoint)
        return verdict(self.rows, self.width, self.images_at_once, self.run.epochs, beaten)

    def settings(self) -> list[tuple[str, str]]:
        """The settings that one looks for first, as (name, value)."""
        run = self.run
        if self.elsewhere:
            return [("weights", self.elsewhere), ("encoder", in_a_line(run.encoders))]
        data = self.records[0]["data"] if self.records else {}
        images = f"{int(data['images']):,} from {run.data.path}" if "images" in data else run.data.path
        return [
            ("recipe", run.recipe),
            ("encoder", in_a_line(run.encoders)),
            ("branches", "; ".join(map(in_a_line, run.branches))),
            ("optimizer", in_a_line(run.optimizer)),
            ("learning rate", in_a_line(run.learning_rate)),
            ("batch size", f"{run.batch_size:,}"),
            ("epochs", f"{run.epochs:,}"),
            ("seed", str(run.seed)),
            ("images", images or "given from Python"),
            ("data fingerprint", str(data.get("fingerprint", "not recorded"))),
            ("newest checkpoint", self.checkpoint or "none yet"),
        ]

    def all_settings(self) -> str:
        """Every field of the run, as Python."""
        return pretty_repr(self.run, max_width=100)

    def origins(self) -> list[list[tuple[str, str]]]:
        """Command, commit, hardware and versions at the start and at each resume, as (name, value)."""
        return [_origin(record) for record in self.records]


def facts_of(folders: Sequence[Path]) -> list[RunFacts]:
    """The facts of several runs, under names that tell them apart.

    Raises `UserError` if a folder holds no run, or is named twice.
    """
    if not folders:
        raise UserError("a report needs at least one run: name its folder")
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise UserError("a run is named twice: name each folder once")
    last = [folder.resolve().name for folder in folders]
    names = last if len(set(last)) == len(last) else [str(folder) for folder in folders]
    return [_facts(folder, name) for folder, name in zip(folders, names, strict=True)]


def _facts(folder: Path, name: str) -> RunFacts:
    run = settings.read(folder)
    newest = checkpoint.latest(folder)
    networks, rows, records = build_without_numbers(run.encoders.build), read_metrics(folder), read_provenance(folder)
    checkpoint_name, results = newest.name if newest else "", recorded_results(folder)
    at_once = run.batch_size // (1 if encodes_apart(networks, run.branches, run.accumulate) else run.accumulate)
    return RunFacts(name, folder, run, rows, records, networks.width, checkpoint_name, results, images_at_once=at_once)


def _origin(record: dict[str, Any]) -> list[tuple[str, str]]:
    hardware, versions = record.get("hardware") or {}, record.get("versions") or {}
    threads = hardware.get("threads", "?")
    machine = f"{hardware.get('processor', 'unknown processor')}, {threads} thread{'s' * (threads != 1)}"
    graphics = ", ".join(map(str, hardware.get("gpus") or ()))
    return [
        ("command", str(record.get("command", "not recorded"))),
        ("commit", str(record.get("commit") or "not recorded")),
        ("hardware", f"{machine}{'; ' if graphics else ''}{graphics}"),
        ("versions", ", ".join(f"{name} {number}" for name, number in versions.items()) or "not recorded"),
    ]
