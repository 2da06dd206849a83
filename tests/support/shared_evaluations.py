"""Evaluations of frozen encoders on one process or several, for `evaluate/test_shared_work.py`."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import short_protocols
import tiny
import torch
from counted_work import counted, small_parts
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
    return by_name | {"finetune, two shares": replace(tuned, fraction=0.4, samples=2), APART: by_name["segmentation"]}


APART = "segmentation, apart"
"""Segmentation by processes whose images differ in their times of change, so that no cache serves two of them."""
BATCH = 8
"""Images of a part of the shared work: few, so that each of four processes has parts of small sets."""
STREAMED = ("linear-moco", "finetune")
"""Protocols that are also tried on images that do not fit in memory, which have other crops."""


def judged(folder: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """What protocols measure and learn, as computed by this process, and how much work that was: of all protocols, or
    of those named."""
    results: dict[str, Any] = {}
    for name, protocol in protocols().items():
        if names and name not in names:
            continue
        encoder = short_protocols.encoder_for(protocol)
        place = folder / f"{processes.rank()} {name}"
        sets = short_protocols.sets_for(protocol, place)
        for file in place.rglob("*.png") if name != APART else ():
            os.utime(file, (0, 0))  # all processes name them alike in the cache, as images in one folder
        for resident in (2 << 30, 0) if name in STREAMED else (2 << 30,):
            work = replace(tiny.cpu_work(folder, BATCH), resident_bytes=resident)
            with small_parts(BATCH), recorded() as parts, counted() as done:
                outcome = protocol(encoder, *sets, work)
            numbers = _numbers([outcome.details, outcome.chosen])
            result = {"measures": dict(outcome.measures), "numbers": numbers, "parts": parts, "work": done}
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
    """Features, embeddings and what is computed from them without a protocol, by this process, and how much work each
    was."""
    source, run = tiny.images(90, 0), tiny.tiny_run(Shared(Encoder(tiny.TinyBackbone(), LinearHead(8))))
    encoder, work = random_encoder(run), tiny.cpu_work(folder, BATCH)
    few, elsewhere = SourceSubset(source, range(30)), tiny.cpu_work(_no_folder(folder), BATCH)
    torch.manual_seed(0)
    learner = Learner(run.encoders, run.branches, 90, 0)
    results: dict[str, Any] = {}

    def fitted() -> dict[str, Tensor]:
        fit = fit_logistic(results["features"].double(), labels_of(source), 3, 1e-3, shared=True)
        return {"weight": fit.weight, "bias": fit.bias}

    steps: dict[str, Callable[[], Any]] = {
        "features": lambda: features_of(encoder, source, work),
        "cached": lambda: features_of(encoder, source, work),
        "in memory": lambda: features_of(encoder, few, elsewhere),
        "kNN on the way": lambda: knn_so_far(learner, run, source, torch.device("cpu")),
        "logistic": fitted,
        "statistics": lambda: torch.tensor(statistics_of(encoder, source, work).mean, dtype=torch.float64),
        "rows.npy": lambda: _bytes(write_embeddings(encoder, source, folder / "rows.npy", work)),
        "rows.parquet": lambda: _bytes(write_embeddings(encoder, source, folder / "rows.parquet", work)),
    }
    done: dict[str, dict[str, int]] = {}
    for name, step in steps.items():
        with small_parts(BATCH), counted() as done[name]:
            results[name] = step()
    return results | {"work": done}


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
