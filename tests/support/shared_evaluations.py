"""Evaluations of frozen encoders on one process or several, for `evaluate/test_shared_work.py`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import short_protocols
import tiny
import torch
from fitted_weights import recorded
from torch import Tensor

from vantage import processes
from vantage.data import SourceSubset, labels_of
from vantage.encoders import Shared
from vantage.encoders.encoder import Encoder
from vantage.encoders.heads import LinearHead
from vantage.evaluate import fit_logistic
from vantage.evaluate.protocols.linear.depths import statistics_of
from vantage.evaluate.protocols.svm.shared_fits import missing_on_all, shared_fits
from vantage.frozen.embedding import write_embeddings
from vantage.frozen.encoder import random_encoder
from vantage.frozen.feature_cache import features_of
from vantage.learner import Learner
from vantage.storage.results import CachedResults
from vantage.training.watching.probe import knn_so_far


def protocols() -> dict[str, Any]:
    """Every protocol but detectors, by name, with settings that train them for a few steps."""
    short = short_protocols.labeled(
        epochs=2, learning_rates=(0.1, 1.0), costs=(0.1, 1.0), l2=(1e-3, 1e-2), batch_size=25
    )
    short += [replace(short_protocols.SEGMENTATION, learning_rate=0.03, epochs=4)]
    by_name = {protocol.name: protocol for protocol in short}
    tuned = by_name["finetune"]
    return by_name | {"finetune, two shares": replace(tuned, fraction=0.4, samples=2)}


STREAMED = ("linear-moco", "finetune")
"""Protocols that are also tried on images that do not fit in memory, which have other crops."""


def judged(folder: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """What protocols measure and learn, as computed by this process: all of them, or those named."""
    results: dict[str, Any] = {}
    for name, protocol in protocols().items():
        if names and name not in names:
            continue
        encoder = short_protocols.encoder_for(protocol)
        sets = short_protocols.sets_for(protocol, folder / f"{processes.rank()} {name}")
        for resident in (2 << 30, 0) if name in STREAMED else (2 << 30,):
            work = replace(tiny.cpu_work(folder), resident_bytes=resident)
            with recorded() as parts:
                outcome = protocol(encoder, *sets, work)
            numbers = _numbers([outcome.details, outcome.chosen])
            result = {"measures": dict(outcome.measures), "numbers": numbers, "parts": parts}
            assert parts and "Split" not in repr(outcome.how)
            results[name if resident else f"{name}, streamed"] = result
    return results


def _numbers(tree: Any) -> list[float]:
    """All numbers in a tree, in order, without words."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        return [number for part in tree for number in _numbers(part)]
    return [] if tree is None or isinstance(tree, str) else [float(tree)]


def encoded(folder: Path) -> dict[str, Any]:
    """Features, embeddings and what is computed from them without a protocol, by this process."""
    source, run = tiny.images(90, 0), tiny.tiny_run(Shared(Encoder(tiny.TinyBackbone(), LinearHead(8))))
    encoder, work = random_encoder(run), tiny.cpu_work(folder, 16)
    results: dict[str, Any] = {"features": features_of(encoder, source, work)}
    results["cached"] = features_of(encoder, source, work)
    results["in memory"] = features_of(encoder, SourceSubset(source, range(30)), tiny.cpu_work(_no_folder(folder), 16))
    torch.manual_seed(0)
    learner = Learner(run.encoders, run.branches, 90, 0)
    results["kNN on the way"] = knn_so_far(learner, run, source, torch.device("cpu"))
    fitted = fit_logistic(results["features"].double(), labels_of(source), 3, 1e-3, shared=True)
    results["logistic"] = {"weight": fitted.weight, "bias": fitted.bias}
    results["statistics"] = torch.tensor(statistics_of(encoder, source, work).mean, dtype=torch.float64)
    for name in ("rows.npy", "rows.parquet"):
        results[name] = _bytes(write_embeddings(encoder, source, folder / name, work))
    return results


def _bytes(file: Path) -> Tensor:
    """The file as the first process wrote it; empty on the others, which may not see the file."""
    return torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.uint8) if not processes.rank() else torch.empty(0)


def _no_folder(folder: Path) -> Path:
    """A path at which no folder, and so no cache, can be made."""
    (folder / "file").touch()
    return folder / "file"


def encode_all(folder: Path) -> None:
    """Write the features of this process."""
    torch.save(encoded(folder / "shared"), folder / f"{processes.rank()}.pt")


def judge_all(names: Sequence[str], folder: Path) -> None:
    """Write the judgments of this process."""
    torch.save(judged(folder / "shared", names), folder / f"{processes.rank()}.pt")


def sharing_fits(folder: Path) -> None:
    """Write which of five fits this process computes, what it receives, and what counts as missing if only the first
    process has a result."""
    own: list[int] = []

    def task(number: int) -> tuple[Any, ...]:
        own.append(number)
        return np.multiply, 2.0, [number, number]

    rows = list(shared_fits(task, range(5), np.asarray, (2,), size=10, fits=1))
    results = CachedResults(folder / f"{processes.rank()}.json")
    if processes.rank() == 0:
        results.add("a", 1)
    missing = missing_on_all(results, ["a", "b"]), missing_on_all(results, ["c", "d"])
    written = {"own": own, "rows": torch.tensor(np.stack(rows)), "missing": missing}
    torch.save(written, folder / f"{processes.rank()}.pt")
