"""What one process or several make of frozen encoders, for `evaluate/test_shared_work.py`."""

from pathlib import Path
from typing import Any

import tiny
import torch
from torch import Tensor

from vantage import processes
from vantage.data import SourceSubset
from vantage.encoders import Shared
from vantage.encoders.encoder import Encoder
from vantage.encoders.heads import LinearHead
from vantage.evaluate import KNN, LinearCached, Retrieval
from vantage.evaluate.protocols.neighbors.knn import NearestNeighbor
from vantage.frozen.embedding import write_embeddings
from vantage.frozen.encoder import random_encoder
from vantage.frozen.feature_cache import features_of
from vantage.learner import Learner
from vantage.training.probe import knn_so_far

PROTOCOLS = (KNN(5), NearestNeighbor(), Retrieval(3), LinearCached((1e-3, 1e-2)))
"""Protocols that work on features."""


def judged(folder: Path) -> dict[str, Any]:
    """Features, embeddings and the measures of protocols, here."""
    source, run = tiny.images(90, 0), tiny.tiny_run(Shared(Encoder(tiny.TinyBackbone(), LinearHead(8))))
    encoder, work = random_encoder(run), tiny.work(folder, 16)
    results: dict[str, Any] = {"features": features_of(encoder, source, work)}
    results["cached"] = features_of(encoder, source, work)
    results["in memory"] = features_of(encoder, SourceSubset(source, range(30)), tiny.work(_no_folder(folder), 16))
    torch.manual_seed(0)
    learner = Learner(run.encoders, run.branches, 90, 0)
    results["kNN on the way"] = knn_so_far(learner, run, source, torch.device("cpu"))
    train, test = SourceSubset(source, range(60)), SourceSubset(source, range(60, 90))
    for protocol in PROTOCOLS:
        results[protocol.name] = dict(protocol(encoder, train, test, work).measures)
    for name in ("rows.npy", "rows.parquet"):
        results[name] = _bytes(write_embeddings(encoder, source, folder / name, work))
    return results


def _bytes(file: Path) -> Tensor:
    """What the first process wrote; the others need not find it."""
    return torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.uint8) if not processes.rank() else torch.empty(0)


def _no_folder(folder: Path) -> Path:
    """A place where no cache can be written."""
    (folder / "file").touch()
    return folder / "file"


def judging(folder: Path) -> None:
    """The same on this rank."""
    torch.save(judged(folder / "shared"), folder / f"{processes.rank()}.pt")
