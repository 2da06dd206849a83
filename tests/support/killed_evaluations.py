"""Evaluations that are killed when they have stored a part of their work, on one process or several."""

import json
import os
from pathlib import Path
from typing import Any

import kill_moments
import kills
import pytest
import tiny
from annotated import small_coco
from shared_detectors import NARROW, SETS, WHOLE
from short_protocols import scenes

from vantage import processes
from vantage.composition.codec import allowing
from vantage.data.sources.masked import open_masked
from vantage.encoders import Encoder, Shared
from vantage.encoders.heads import LinearHead
from vantage.evaluate import KNN, SVM, FineTune, LinearCached, LinearMoCo, LowShotChosen, Segmentation, evaluate
from vantage.evaluate.protocols.detection import open_annotated
from vantage.storage import state
from vantage.training.folder import checkpoint

COSTS = (0.1, 1.0)

PROTOCOLS: dict[str, Any] = {
    protocol.name: protocol
    for protocol in (
        KNN(5),
        LinearMoCo((3.0, 10.0), 3, batch_size=16),
        LinearCached((1e-3, 1e-2)),
        SVM(COSTS),
        LowShotChosen((1, 4), 2, 2, COSTS),
        FineTune(1.0, epochs=3, batch_size=25),
        Segmentation(size=16, width=8, epochs=3, batch_size=4),
        WHOLE,
    )
}
"""One protocol for each way to store finished work."""


def write_run(folder: Path) -> None:
    """Write the run that is evaluated, one for detectors, and images with masks and with boxes."""
    tiny.saved_run(folder / "run", tiny.tiny_run(Shared(Encoder(tiny.TinyMaps(), LinearHead(8)))))
    tiny.saved_run(folder / "resnet", tiny.tiny_run(Shared(Encoder(NARROW, LinearHead(8)))))
    for kind in SETS:
        small_coco(folder / "coco", *kind)
    scenes(folder / "a", 11, 0)
    scenes(folder / "b", 7, 1)


def judge(rank: int, count: int, name: str, shared: Path, folder: Path, killed_at: int | None) -> None:
    """Evaluate the run in `shared` as one of `count` processes, and write the measures and the number of files written.
    The first process is killed, if `killed_at` is given, after writing that many files; the last one still has its
    temporary name."""
    kills.join(rank, count, folder / f"meeting-{killed_at}")
    written, sync = [0], os.fsync

    def sync_or_die(file: int) -> None:
        sync(file)
        written[0] += 1
        if rank == 0 and written[0] == killed_at:
            kill_moments.die()

    with pytest.MonkeyPatch.context() as patch, allowing("tiny"):
        patch.setenv("VANTAGE_CACHE", str(folder / "cache"))
        patch.setattr(os, "fsync", sync_or_die)
        patch.setattr(state, "MINUTES", 0.0)  # a state after every epoch
        run = shared / ("resnet" if name == WHOLE.name else "run")
        result = evaluate(run, PROTOCOLS[name], *_sides(name, shared), work=tiny.cpu_work(folder))
    if processes.rank() == 0:
        (outcome,) = result.outcomes.values()
        measures = {"measures": dict(outcome.measures), "written": written[0]}
        (folder / "measures.json").write_text(json.dumps(measures))


def cell(name: str, count: int, shared: Path, folder: Path) -> dict[str, Any]:
    """Evaluate by a protocol on `count` processes: undisturbed, then killed and repeated three times. The kills come
    when the first file has been written, in the middle, and when the result has been. Of two processes, the first may
    write fewer files than before, and so finish before one of the later kills."""
    whole = _measures(name, count, shared, folder / "whole")
    tensors = _newest_tensors(shared)
    moments = sorted({1, whole["written"] // 2 + 1, whole["written"]})
    finished, equal, in_time = 0, 0, True
    for moment in moments:
        trial = folder / f"killed-{moment}"
        trial.mkdir()
        finished += kills.all_finish(count, name, shared, trial, moment, task=judge)
        in_time &= finished <= (moment > 1 and count > 1)
        equal += _measures(name, count, shared, trial)["measures"] == whole["measures"]
    killed, kept = len(moments) - finished, _newest_tensors(shared) == tensors
    outcome = {"kills": len(moments), "killed": killed, "in time": in_time, "equal": equal, "run unchanged": kept}
    return {"protocol": name, "processes": count, **outcome}


def _measures(name: str, count: int, shared: Path, folder: Path) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    if not kills.all_finish(count, name, shared, folder, None, task=judge):
        raise RuntimeError(f"{name} fails on {count} process(es)")
    return json.loads((folder / "measures.json").read_text())


def _newest_tensors(shared: Path) -> bytes:
    newest = checkpoint.latest(shared / "run")
    assert newest is not None
    return newest.joinpath("tensors.safetensors").read_bytes()


def _sides(name: str, shared: Path) -> tuple[Any, Any]:
    if name == Segmentation.name:
        a, b = (open_masked(f"{shared / side / 'images'}#{shared / side / 'masks'}") for side in ("a", "b"))
        return a, b
    if name == WHOLE.name:
        files = (shared / "coco" / "annotations" / f"instances_{kind[0]}.json" for kind in SETS)
        train, test = (open_annotated(str(file)) for file in files)
        return train, test
    return tiny.images(60, 0), tiny.images(30, 1)
