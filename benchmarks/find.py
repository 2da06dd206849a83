"""Does `vantage find` find what was planted? And how long do a million images take?

    python benchmarks/find.py --data ../shared/data --work /tmp/find [--minutes 5] [--parts quality speed]

In flowers5 (4,311 photographs of 128 pixels, each once) are planted: 600 copies, recompressed (JPEG of quality 30),
mirrored, cropped (four fifths of each side) or recolored; wrong labels for 5 % of the images; and 100 strangers of a
kind, ImageNet's photographs, CIFAR-10's images enlarged, or MNIST's digits. Each is sought by the same rules with four
kinds of features: a run (`vantage pretrain --minutes`, one core, on the same photographs without copies), a random
encoder of the same architecture, raw pixels, and the difference hash (64 bits, whose customary limit is 10 bits).

Precision and recall are those of the written rule, average precision that of the order. Flowers5 has near-duplicates
of its own, which count as false here, so precision is a lower bound; `natural` says how many pairs that are.

Speed: the ten nearest neighbors of some of a million random features of 128 numbers, in a process of its own on one
core (processor time), and the time for all of them extrapolated from it; memory is what the search adds at its peak to
the features.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from planted_photos import CHANGES, Planted, dhash, pixels_of, with_copies, with_strangers, with_wrong_labels
from timing import write_results
from torch import Tensor

from vantage.cli import main as vantage_command
from vantage.curation.duplicates import near_duplicates
from vantage.curation.mistakes import mistakes
from vantage.curation.neighbors import neighbors_among, neighbors_of
from vantage.curation.outliers import outliers
from vantage.curation.representatives import cluster_centers, k_centers
from vantage.encoding import Work, encode_all
from vantage.frozen.encoder import load, random_encoder, raw_pixels

ROWS, WIDTH = 1_000_000, 128
HASH_BITS = 10
"""Hashes that differ in so many bits are usually taken for the same picture."""

Features = Callable[[Planted], Tensor]


def main() -> None:
    """Train where there is no run yet, search, time, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder that holds the sets")
    parser.add_argument("--work", type=Path, help="folder that keeps the run, and parts that are done")
    parser.add_argument("--minutes", type=float, default=5, help="of training")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--queries", type=int, default=1000, help="whose neighbors are timed")
    parser.add_argument("--once", action="store_true", help="one search among a million features, and end")
    options = parser.parse_args()
    if options.once:
        search_once(options.queries)
        return
    file = options.work / "rows.json"
    rows: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    for part in options.parts:
        if part not in rows:
            rows[part] = PARTS[part](options)
            file.write_text(json.dumps(rows))
    print(write_results("find", [row for part in PARTS for row in rows.get(part, [])]))


def quality(options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each kind of features and each thing that is planted."""
    photos, run = options.data / "flowers5-128.tar.gz", options.work / "run"
    if not (run / "checkpoint").exists():
        assert (
            vantage_command(["pretrain", "--data", str(photos), "--minutes", f"{options.minutes:g}", "--out", str(run)])
            == 0
        )
    images, label = pixels_of(photos, 128)
    sets = {
        "ImageNet": pixels_of(options.data / "imagenet-sample-200.tar", 128, 100)[0],
        "CIFAR-10": pixels_of(f"{options.data / 'cifar10-jpg.tar.gz'}#test", 128, 100)[0],
        "MNIST": pixels_of(f"{options.data / 'mnist.npz'}#test", 128, 100)[0],
    }
    copies, wrong = with_copies(images, 600), with_wrong_labels(images, label, 0.05)
    rows = []
    for name, features in kinds_of_features(run).items():
        everyone = features(copies)
        rows += copies_found(name, everyone, copies)
        own = everyone[: len(images)]  # the photographs come first
        rows.append(mistakes_found(name, own, wrong))
        for kind, strangers in sets.items():
            planted = with_strangers(images, strangers)
            rows.append(
                strangers_found(
                    name, kind, torch.cat([own, features(with_strangers(strangers, strangers[:0]))]), planted
                )
            )
        rows.append(labeled_first(name, own, torch.from_numpy(label)))
        print(*(row for row in rows if row["features"] == name), sep="\n", flush=True)
    return rows


def kinds_of_features(run: Path) -> dict[str, Features]:
    """Features by name: of the run, a random encoder, raw pixels, and the difference hash."""
    encoder, work = load(run), Work()
    kinds = {"run": encoder, "random encoder": random_encoder(encoder.run), "raw pixels": raw_pixels(encoder.run)}

    def encoded(kind: str) -> Features:
        one = kinds[kind]
        return lambda planted: encode_all(one.backbone, one.view, planted.source, work, kind)

    def hashed(planted: Planted) -> Tensor:
        numbers = range(len(planted.source))
        return torch.from_numpy(
            dhash(np.stack([planted.source.image(one).permute(1, 2, 0).numpy() for one in numbers]))
        )

    return {**{kind: encoded(kind) for kind in kinds}, "difference hash": hashed}


def copies_found(name: str, vector: Tensor, planted: Planted) -> list[dict[str, Any]]:
    """Pairs by the rule, and for hashes by the customary limit too."""
    neighbors = neighbors_of(vector)
    every, limit = near_duplicates(neighbors, torch.inf), near_duplicates(neighbors).limit
    pair = every.pair.numpy()
    true = planted.truth[pair[:, 1]] == pair[:, 0]
    rules = {"written rule": (every.ratio <= limit).numpy()}
    if name == "difference hash":
        rules["10 bits"] = (every.distance <= HASH_BITS / 32 + 1e-6).numpy()
    rows = []
    for rule, options in rules.items():
        of_change = [true & options & (planted.change[pair[:, 1]] == number) for number in range(len(CHANGES))]
        recall = {f"recall, {change}": share(hits.sum(), (planted.change == number).sum())
                  for number, (change, hits) in enumerate(zip(CHANGES, of_change, strict=True))}  # fmt: skip
        natural = int((options & (pair[:, 1] < (planted.truth < 0).sum())).sum())
        score = judged(true, options, -every.ratio.numpy(), int((planted.truth >= 0).sum()))
        rows.append({"task": "copies", "features": name, "rule": rule, **score, **recall, "natural": natural})
    return rows


def mistakes_found(name: str, vector: Tensor, planted: Planted) -> dict[str, Any]:
    """Wrong labels by the rule."""
    label = torch.tensor([planted.source.label(number) for number in range(len(planted.source))])
    doubts = mistakes(neighbors_of(vector, 20), label, int(label.max()) + 1)
    score = judged(planted.truth, doubts.contradicted.numpy(), doubts.score.numpy())
    agree = share((doubts.score < 0).sum(), len(label))
    return {"task": "wrong labels", "features": name, "rule": "written rule", **score, "neighbors agree": agree}


def strangers_found(name: str, kind: str, vector: Tensor, planted: Planted) -> dict[str, Any]:
    """Strangers by the rule."""
    far = outliers(neighbors_of(vector))
    score = judged(planted.truth, (far.score > far.limit).numpy(), far.score.numpy())
    return {"task": f"strangers, {kind}", "features": name, "rule": "written rule", **score}


def labeled_first(name: str, vector: Tensor, label: Tensor) -> dict[str, Any]:
    """Accuracy in percent of the nearest labeled neighbor over all images, with 50 labels chosen at random (mean of ten
    draws), by clusters and by k-center."""
    draws = [torch.randperm(len(label), generator=torch.Generator().manual_seed(seed))[:50] for seed in range(10)]
    options = {"clusters": [cluster_centers(vector, 50).number], "k-center": [k_centers(vector, 50).number]}
    row: dict[str, Any] = {"task": "50 labels", "features": name}
    for way, each in {"random": draws, **options}.items():
        right = [
            (label[numbers][neighbors_among(vector[numbers], vector, 1).number[:, 0]] == label).double().mean()
            for numbers in each
        ]
        row[way] = round(100 * float(torch.stack(right).mean()), 1)
    return row


def judged(true: np.ndarray, options: np.ndarray, score: np.ndarray, total: int | None = None) -> dict[str, Any]:
    """Precision, recall and average precision; `total` counts what should be found, where not all of it is listed."""
    total = int(true.sum()) if total is None else total
    ordered = true[np.argsort(-score, kind="stable")]
    precision = ordered.cumsum() / np.arange(1, len(ordered) + 1)
    return {
        "found": int(options.sum()),
        "precision": share((true & options).sum(), options.sum()),
        "recall": share((true & options).sum(), total),
        "average precision": round(float((precision * ordered).sum() / total), 3),
    }


def share(part: Any, whole: Any) -> float | None:
    """A share, or none of nothing."""
    return round(float(part) / float(whole), 3) if float(whole) else None


def speed(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Seconds and memory of a search among a million features, in a process of its own."""
    command = [sys.executable, __file__, "--once", "--queries", str(options.queries)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, memory = map(float, process.stdout.split())
    hours = seconds * ROWS / options.queries / 3600
    row = {
        "task": "speed",
        "features": f"{ROWS:,} × {WIDTH}",
        "queries timed": options.queries,
        "seconds of a core": round(seconds, 1),
    }
    return [row | {"extra memory, MiB": round(memory), "hours of a core for all, extrapolated": round(hours, 2)}]


def search_once(queries: int) -> None:
    """Print seconds and MiB that the neighbors of some images take."""
    from knn import resident

    torch.set_num_threads(1)
    vector = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(0))
    for part in vector.split(4096):  # in place, so that making them leaves no peak
        part.div_(part.norm(dim=1, keepdim=True))
    some = torch.arange(0, ROWS, ROWS // queries)[:queries]
    neighbors_of(vector[:5000], numbers=torch.arange(10))  # starts the libraries
    Path("/proc/self/clear_refs").write_text("5")  # the highest so far becomes what is resident now
    before, begun = resident("VmRSS"), time.process_time()
    neighbors_of(vector, numbers=some)
    print(time.process_time() - begun, resident("VmHWM") - before)


PARTS = {"quality": quality, "speed": speed}

if __name__ == "__main__":
    main()
