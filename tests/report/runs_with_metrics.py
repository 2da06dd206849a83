"""Small runs with metrics and provenance, and images with hostile names, for pages about them."""

import json
from pathlib import Path

import numpy as np
from known_curves import curve
from PIL import Image
from tiny import saved_run

from vantage.data import Source, open_source
from vantage.storage.files import write_json
from vantage.training.run import Run

HOSTILE = ("<", "script><script>window.hostile=1<", '"><img src=x onerror=window.hostile=1>', "{{ 7*7 }}&amp;'")
"""A folder and files whose names would run if a page did not escape them; the first two are joined by a slash."""


def hostile_images(folder: Path, count: int = 24, size: int = 20) -> Source:
    """Small colored noise in two folders with hostile names."""
    chance = np.random.default_rng(0)
    for number in range(count):
        class_folder = folder / (HOSTILE[0] if number % 2 else "plain")
        class_folder.mkdir(parents=True, exist_ok=True)
        pixels = chance.normal(60 + 120 * (number % 2), 40, (size, size, 3)).clip(0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(class_folder / f"{HOSTILE[1 + number // 2 % 3]}{number:02d}.png")
    return open_source(folder)


def finished_run(folder: Path, run: Run, source: Source, rows: list | None = None) -> Path:
    """A run's folder as training leaves it: settings, checkpoint, metrics and provenance."""
    folder.mkdir(parents=True, exist_ok=True)
    saved_run(folder, run, images=len(source))
    lines = [json.dumps(row) + "\n" for row in (curve(run.epochs) if rows is None else rows)]
    (folder / "metrics.jsonl").write_text("".join(lines))
    record = {
        "data": {"fingerprint": source.fingerprint(), "images": len(source)},
        "command": "vantage pretrain <script>",
        "commit": None,
        "versions": {"torch": "2.x"},
        "hardware": {"processor": "one", "cores": 1, "threads": 1, "gpus": []},
    }
    write_json(folder / "provenance.json", [record])
    return folder


def record_result(folder: Path, run: float, **baselines: float) -> None:
    """A record of kNN in a run's evaluations."""
    outcomes = {"moco_v2": run, **{name.replace("_", " "): value for name, value in baselines.items()}}
    record = {"protocol": "knn", "version": 1, "settings": {"k": 20}, "test_split": "", "view": "EvaluationView()"}
    record |= {"checkpoint": "step-000000007", "encoder": "", "train": "a", "test": "b", "device": "cpu"}
    record["outcomes"] = {
        name: {"measures": {"top-1": value}, "train_images": 10, "test_images": 5_000, "chosen": {}}
        for name, value in outcomes.items()
    }
    (folder / "evaluations").mkdir(exist_ok=True)
    name = f"knn-v1-{len(list((folder / 'evaluations').glob('*')))}.json"
    (folder / "evaluations" / name).write_text(json.dumps(record))
