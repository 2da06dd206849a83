"""Low-shot results of several runs, as a table and a figure (InterCLR, figure 5)."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from vantage.errors import UserError
from vantage.storage.figures import color, legend_name, panels, set_titles
from vantage.storage.strangers import check_file, check_run_folder
from vantage.storage.tables import Mean, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ShotsCurve", "Shots", "read_shots"]

_IMPLICIT_SETTINGS = {"positive_weight": 2.0, "iterations": 2000, "tolerance": 1e-4}
"""Settings that the first results did not record, and their values."""


@dataclass(frozen=True)
class ShotsCurve:
    """The results of one encoder."""

    name: str
    """Its name in the table."""

    samples: Mapping[int, Sequence[float]]
    """The measure of every sample, in percent, by the number of images of each class."""


@dataclass(frozen=True)
class Shots:
    """Encoders that were evaluated by one low-shot protocol."""

    measure: str
    """What was measured, such as "oracle-C mAP"."""

    curves: tuple[ShotsCurve, ...]
    """The encoders."""

    def lines(self) -> list[str]:
        """The table: a line for each encoder, a column for each number of images; mean ± standard deviation. Only
        encoders with all of the columns have a mean over them, since few images are harder than many."""
        shots = sorted({k for curve in self.curves for k in curve.samples})
        head = (f"{self.measure}, %", *(f"k={k}" for k in shots), "mean")
        rows = tuple(
            (curve.name, *(_cell(curve.samples.get(k, ())) for k in shots), _mean(curve, shots))
            for curve in self.curves
        )
        return Table(head, rows).lines()

    def figure(self) -> "Figure":
        """A line for each encoder over the images of each class, with bars of one standard deviation over samples."""
        figure, axes = panels(1, 1)
        panel = axes[0, 0]
        for number, curve in enumerate(self.curves):
            shots = sorted(curve.samples)
            means = [Mean.of(curve.samples[k]) for k in shots]
            panel.errorbar(
                shots, [one.mean for one in means], [one.bar for one in means], color=color(number), marker="o",
                markersize=3.5, linewidth=1.4, capsize=2, label=legend_name(curve.name),
            )  # fmt: skip
        shots = sorted({k for curve in self.curves for k in curve.samples})
        panel.set_xscale("log", base=2)
        panel.set_xticks(shots, [str(k) for k in shots])
        panel.minorticks_off()
        set_titles(panel, "linear SVMs on few images", "images of each class", f"{self.measure} (%)")
        if shots:
            panel.legend(fontsize=8, frameon=False)
        return figure


def read_shots(files: Sequence[Path]) -> Shots:
    """The low-shot results in files of `vantage evaluate lowshot`; for a run's folder, those in its `evaluations`.

    Encoders with the same results in several files, such as baselines, are taken once, and results of one encoder at
    other numbers of images are joined; different encoders of one name are distinguished by their files. Raises
    `UserError` if there are no results, or if their protocols, settings or images differ, so that they cannot be
    compared. Only the numbers of images of each class may differ: the samples of one number do not depend on the
    others.
    """
    curves: dict[str, ShotsCurve] = {}
    names: dict[tuple[str, str], str] = {}
    measures: list[str] = []
    records = _records(files)
    _check_alike(records)
    for file, record in records:
        digest = str(record.get("encoder") or file)
        for encoder, outcome in record["outcomes"].items():
            samples, name = _samples(outcome), names.get((digest, encoder))
            measures.append(next(iter(outcome["measures"])))
            if name is None:
                name = _new_name(encoder, samples, file, curves)
                names[digest, encoder] = name
            earlier = curves[name].samples if name in curves else {}
            curves[name] = ShotsCurve(name, {**earlier, **samples})
    if not curves:
        raise UserError(
            f"no low-shot results in {', '.join(map(str, files)) or 'no files'}: make some first, for example with"
            " vantage evaluate lowshot RUN --data PATH --test PATH"
        )
    return Shots(measures[0], tuple(curves.values()))


def _new_name(
    encoder: str, samples: Mapping[int, Sequence[float]], file: Path, curves: Mapping[str, ShotsCurve]
) -> str:
    """The name of an encoder's curve: its own, unless another encoder with other results has it."""
    if encoder not in curves or curves[encoder].samples == samples:
        return encoder
    origin = file.parent.parent.name if file.parent.name == "evaluations" else file.stem
    return f"{encoder}, {origin}" if f"{encoder}, {origin}" not in curves else f"{encoder}, {file}"


def _check_alike(records: Sequence[tuple[Path, dict[str, Any]]]) -> None:
    """Raises `UserError` if results measure different things."""
    protocols = sorted({f"{record['protocol']} version {record['version']}" for _, record in records})
    if len(protocols) > 1:
        raise UserError(f"results of different protocols cannot be compared: {', '.join(protocols)}")
    for file, record in records[1:]:
        first_file, first = records[0]
        first_settings, settings = (
            {**_IMPLICIT_SETTINGS, **each["settings"], "shots": None} for each in (first, record)
        )
        differences = [
            f"{name} {json.dumps(first_settings.get(name))} and {json.dumps(settings.get(name))}"
            for name in dict.fromkeys((*first_settings, *settings))
            if first_settings.get(name) != settings.get(name)
        ]
        differences += [f"different {part} images" for part in ("train", "test") if first.get(part) != record.get(part)]
        if differences:
            raise UserError(
                f"{first_file} and {file} cannot be compared, since they differ: {', '.join(differences)}; name files"
                " of one kind (a folder stands for all of its evaluations), or evaluate one run again with the settings"
                " and images of the other"
            )


def _records(files: Sequence[Path]) -> list[tuple[Path, dict[str, Any]]]:
    records = []
    for path in files:
        check_run_folder(path)
        results = sorted((path / "evaluations").glob("lowshot*.json")) if path.is_dir() else [path]
        if not results:
            raise UserError(
                f"no low-shot results in {path}: make some first, for example with vantage evaluate lowshot {path}"
                " --data PATH"
            )
        for file in results:
            check_file(file)
            try:
                record = json.loads(file.read_bytes())
                record["settings"] = dict(record.get("settings") or {})
                outcomes = record["outcomes"].values()
                if all("shots" in outcome["details"] for outcome in outcomes):
                    _ = record["protocol"], record["version"], [_samples(outcome) for outcome in outcomes]
                    records.append((file, record))
            except OSError as problem:
                raise UserError(f"cannot read {file}: {problem.strerror or problem}") from problem
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as problem:
                raise UserError(f"{file} is not a result of vantage evaluate: {problem!r}") from problem
    return records


def _samples(outcome: Mapping[str, Any]) -> dict[int, tuple[float, ...]]:
    """The measure of every sample by the number of images of each class. Raises `ValueError` or similar if there
    are none."""
    if not dict(outcome["measures"]) or not outcome["details"]["shots"]:
        raise ValueError("it has no measures")
    samples = {int(k): tuple(map(float, values)) for k, values in outcome["details"]["shots"].items()}
    if not all(values and all(map(math.isfinite, values)) for values in samples.values()) or min(samples) < 1:
        raise ValueError("it has no samples")
    return samples


def _cell(values: Sequence[float]) -> str:
    return Mean.of(values).words(1) if values else "–"


def _mean(curve: ShotsCurve, shots: Sequence[int]) -> str:
    if set(curve.samples) != set(shots):
        return "–"
    return f"{fmean(fmean(values) for values in curve.samples.values()):.1f}"
