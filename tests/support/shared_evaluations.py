"""Evaluations of frozen encoders on one process or several, for `evaluate/test_shared_work.py`."""

import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from PIL import Image
from torch import Tensor, nn

from vantage import processes
from vantage.data import Source, SourceSubset, labels_of
from vantage.data.sources.masked import MaskedImages, open_masked
from vantage.encoders import Shared
from vantage.encoders.encoder import Encoder
from vantage.encoders.heads import LinearHead
from vantage.encoding import Work
from vantage.evaluate import KNN, SVM, FineTune, LinearCached, LinearMoCo, LowShotChosen, Retrieval, fit_logistic
from vantage.evaluate.protocols.finetune import tuning
from vantage.evaluate.protocols.finetune.tuning import TuningSchedule, tune
from vantage.evaluate.protocols.linear.crops import Epochs, epochs_of
from vantage.evaluate.protocols.linear.depths import statistics_of
from vantage.evaluate.protocols.neighbors.knn import NearestNeighbor
from vantage.evaluate.protocols.segmentation import segmentation
from vantage.evaluate.protocols.segmentation.feature_maps import FeatureMaps
from vantage.evaluate.protocols.segmentation.segmentation import Segmentation
from vantage.evaluate.protocols.svm.shared_fits import missing_on_all, shared_fits
from vantage.frozen.embedding import write_embeddings
from vantage.frozen.encoder import FrozenEncoder, random_encoder
from vantage.frozen.feature_cache import features_of
from vantage.learner import Learner
from vantage.measures.confusion import Confusion
from vantage.processes.sharing import true_on_all
from vantage.storage.results import CachedResults
from vantage.training.watching.probe import knn_so_far

COSTS = (0.1, 1.0)

PROTOCOLS = (
    KNN(5), NearestNeighbor(), Retrieval(3), SVM(COSTS), LowShotChosen((1, 4), 2, 2, COSTS)
)  # fmt: skip
"""Protocols that work on features: several processes give bit-identical results."""

TRAINED = (
    LinearMoCo((3.0, 10.0), 2, batch_size=16), FineTune(1.0, epochs=2, batch_size=25), LinearCached((1e-3, 1e-2))
)  # fmt: skip
"""Protocols that train on shares of the images: results are equal up to rounding."""


def results_of(folder: Path) -> dict[str, Any]:
    """Features, embeddings and the measures of protocols, as computed by this process."""
    source, run = tiny.images(90, 0), tiny.tiny_run(Shared(Encoder(tiny.TinyBackbone(), LinearHead(8))))
    encoder, work = random_encoder(run), tiny.cpu_work(folder, 16)
    results: dict[str, Any] = {"features": features_of(encoder, source, work)}
    results["cached"] = features_of(encoder, source, work)
    results["in memory"] = features_of(encoder, SourceSubset(source, range(30)), tiny.cpu_work(_no_folder(folder), 16))
    torch.manual_seed(0)
    learner = Learner(run.encoders, run.branches, 90, 0)
    results["kNN on the way"] = knn_so_far(learner, run, source, torch.device("cpu"))
    train, test = SourceSubset(source, range(60)), SourceSubset(source, range(60, 90))
    for protocol in PROTOCOLS:
        results[protocol.name] = dict(protocol(encoder, train, test, work).measures)
    for protocol in TRAINED:
        outcome = protocol(encoder, train, test, work)
        results[protocol.name] = {"measures": dict(outcome.measures), "losses": outcome.details.get("losses", [])}
    results["tuned"] = tune_copy(encoder, train, work)
    fitted = fit_logistic(results["features"].double(), labels_of(source), 3, 1e-3, shared=True)
    results["logistic"] = {"weight": fitted.weight, "bias": fitted.bias}
    results["statistics"] = torch.tensor(statistics_of(encoder, source, work).mean, dtype=torch.float64)
    results["segmentation"] = segment(folder, tiny.cpu_work(folder, 16))
    for name in ("rows.npy", "rows.parquet"):
        results[name] = _bytes(write_embeddings(encoder, source, folder / name, work))
    return results


def tune_copy(encoder: FrozenEncoder, source: Source, work: Work) -> dict[str, Any]:
    """Fine-tune a copy in float64, so that rounding errors stay negligible."""
    double = replace(encoder, backbone=copy.deepcopy(encoder.backbone).double())
    label = labels_of(source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "float", torch.Tensor.double)
        patch.setattr(tuning.nn, "Linear", partial(torch.nn.Linear, dtype=torch.float64))
        patch.setattr(tuning, "epochs_of", _in_double)
        schedule = TuningSchedule(2, 25, (0.01, 0.1), 1e-4, 0.08, 0)
        result = tune(schedule, double, source, label, 3, work)
    return {"losses": result.losses, "backbone": result.backbone.state_dict(), "head": result.head.state_dict()}


def segment(folder: Path, work: Work) -> dict[str, Any]:
    """Measures and weights of a decoder."""
    if processes.rank() == 0:
        scenes(folder / "a", 11, 0)
        scenes(folder / "b", 7, 1)
    assert true_on_all(True)  # waits until the images are written
    train, test = (open_masked(f"{folder / name / 'images'}#{folder / name / 'masks'}") for name in ("a", "b"))
    encoder = random_encoder(tiny.tiny_run(Shared(Encoder(tiny.TinyMaps(), LinearHead(8)))))
    weights, count = list[dict[str, Tensor]](), segmentation._count_pixels

    def counting(maps: FeatureMaps, decoder: nn.Module, images: MaskedImages, batch: int, work: Work) -> Confusion:
        weights.append(decoder.state_dict())
        return count(maps, decoder, images, batch, work)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segmentation, "_count_pixels", counting)
        outcome = Segmentation(size=16, width=8, epochs=2, batch_size=4)(encoder, train, test, work)
    assert "Split" not in outcome.how["decoder"]
    return {"measures": dict(outcome.measures), "weights": weights[0]}


def scenes(folder: Path, count: int, seed: int) -> None:
    """Squares on a background, and their masks."""
    chance = np.random.default_rng(seed)
    for kind in ("images", "masks"):
        (folder / kind).mkdir(parents=True)
    for number in range(count):
        mask = np.zeros((24, 24), np.uint8)
        top, left = chance.integers(1, 12, 2)
        mask[top : top + 12, left : left + 12] = 1 + number % 2
        picture = (60 + 70 * mask[..., None] + chance.normal(0, 20, (24, 24, 3))).clip(0, 255).astype(np.uint8)
        mask[0] = 255
        Image.fromarray(picture).save(folder / "images" / f"{number}.png")
        Image.fromarray(mask).save(folder / "masks" / f"{number}.png")


def _in_double(*arguments: Any) -> Epochs:
    epochs = epochs_of(*arguments)
    return Epochs(lambda epoch: ((rows, views.double()) for rows, views in epochs(epoch)), epochs.crop_method)


def _bytes(file: Path) -> Tensor:
    """The file as the first process wrote it; empty on the others, which may not see the file."""
    return torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.uint8) if not processes.rank() else torch.empty(0)


def _no_folder(folder: Path) -> Path:
    """A path at which no folder, and so no cache, can be made."""
    (folder / "file").touch()
    return folder / "file"


def evaluate_all(folder: Path) -> None:
    """Write the results of this process."""
    torch.save(results_of(folder / "shared"), folder / f"{processes.rank()}.pt")


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
