"""Does `vantage find` find what was planted?

    python benchmarks/find.py --data ../shared/data --work /tmp/find [--sets flowers5 …] [--minutes 5]

Three things are planted in up to 4,311 images of a set (flowers5, CIFAR-10 as JPEG, 50 classes of Tiny ImageNet; each
image once, evenly spaced): 600 copies, recompressed (JPEG of quality 30), mirrored, cropped (four fifths of each side)
or recolored; wrong labels for 5 % of the images; and 100 strangers of one kind, from ImageNet's photographs, flowers,
CIFAR-10 and MNIST's digits, scaled to the same size. The same rules search for them with four kinds of features: a run
(of `vantage pretrain --minutes` on the same set, in WORK/SET, trained if it is missing), a random encoder of the same
architecture, raw pixels, and the difference hash (64 bits, whose customary limit is 10 bits).

Precision and recall are those of the documented rule (`written rule`); average precision is that of the order in which
images are listed. The sets contain near-duplicates of their own, which count as false here, so precision is a lower
bound; `natural` is their number.

`neighbor_search.py` measures how long a search takes.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from planted_photos import CHANGES, PlantedImages, dhash, pixels_of, with_copies, with_strangers, with_wrong_labels
from timing import merge_rows, write_results
from torch import Tensor

from vantage.cli import main as vantage_command
from vantage.curation.duplicates import near_duplicates
from vantage.curation.mistakes import mistakes
from vantage.curation.neighbors import neighbors_among, neighbors_of
from vantage.curation.outliers import outliers
from vantage.curation.representatives import cluster_centers, k_centers
from vantage.encoding import Work, encode_all
from vantage.frozen.encoder import load, random_encoder, raw_pixels

SETS = {
    "flowers5": ("flowers5-128.tar.gz", 128),
    "cifar10-jpg": ("cifar10-jpg.tar.gz#train", 32),
    "tiny-imagenet-50": ("tiny-imagenet-50.tar.gz#train", 64),
}
"""Archive of each set, and the side of its images in pixels."""
STRANGERS = {
    "ImageNet": "imagenet-sample-200.tar",
    "flowers5": "flowers5-128.tar.gz",
    "CIFAR-10": "cifar10-jpg.tar.gz#test",
    "MNIST": "mnist.npz#test",
}
SAME_KIND = {"flowers5": "flowers5", "cifar10-jpg": "CIFAR-10", "tiny-imagenet-50": "ImageNet"}
"""The strangers that are of a set's own kind, and therefore left out."""
MOST = 4311
HASH_BITS = 10
"""Two images whose hashes differ in at most this many bits are usually taken for the same picture."""

Features = Callable[[PlantedImages], Tensor]


def main() -> None:
    """Train the missing runs, search, and write results/find.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder that holds the sets")
    parser.add_argument("--work", type=Path, required=True, help="folder for the runs")
    parser.add_argument("--minutes", type=float, default=5, help="of training")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    options = parser.parse_args()
    for name in options.sets:
        print(write_results("find", merge_rows("find", "set", quality(name, options))))


def quality(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each kind of features and each thing that is planted in a set."""
    (archive, side), run = SETS[name], options.work / name
    path = str(options.data / archive)
    if not (run / "checkpoint").exists():
        words = ["--data", path, "--minutes", f"{options.minutes:g}", "--out", str(run)]
        assert vantage_command(["pretrain", *words]) == 0
    images, label = pixels_of(path, side, MOST)
    strangers = {
        kind: pixels_of(str(options.data / other_set), side, 100)[0]
        for kind, other_set in STRANGERS.items()
        if kind != SAME_KIND[name]
    }
    copies, wrong = with_copies(images, 600), with_wrong_labels(images, label, 0.05)
    rows = []
    for kind, features in kinds_of_features(run).items():
        vectors = features(copies)
        rows += copies_rows(kind, vectors, copies)
        image_vectors = vectors[: len(images)]  # the photographs come first
        rows.append(mistakes_row(kind, image_vectors, wrong))
        for other_set, others in strangers.items():
            vector = torch.cat([image_vectors, features(with_strangers(others, others[:0]))])
            rows.append(strangers_row(kind, other_set, vector, with_strangers(images, others)))
        rows.append(labels_row(kind, image_vectors, torch.from_numpy(label)))
        print(*(row for row in rows if row["features"] == kind), sep="\n", flush=True)
    return [{"set": name, "images": len(images)} | row for row in rows]


def kinds_of_features(run: Path) -> dict[str, Features]:
    """Features by name: of the run, a random encoder, raw pixels, and the difference hash."""
    encoder, work = load(run), Work()
    kinds = {"run": encoder, "random encoder": random_encoder(encoder.run), "raw pixels": raw_pixels(encoder.run)}

    def encode_with(kind: str) -> Features:
        encoder = kinds[kind]
        return lambda planted_images: encode_all(encoder.backbone, encoder.view, planted_images.source, work, kind)

    def hash_images(planted_images: PlantedImages) -> Tensor:
        numbers = range(len(planted_images.source))
        return torch.from_numpy(
            dhash(np.stack([planted_images.source.image(number).permute(1, 2, 0).numpy() for number in numbers]))
        )

    return {**{kind: encode_with(kind) for kind in kinds}, "difference hash": hash_images}


def copies_rows(name: str, vector: Tensor, planted_images: PlantedImages) -> list[dict[str, Any]]:
    """How well the rule finds copies, and for hashes also how well the customary limit does."""
    neighbors = neighbors_of(vector)
    pairs, limit = near_duplicates(neighbors, torch.inf), near_duplicates(neighbors).limit
    pair = pairs.pair.numpy()
    true = planted_images.truth[pair[:, 1]] == pair[:, 0]
    rules = {"written rule": (pairs.ratio <= limit).numpy()}
    if name == "difference hash":
        rules["10 bits"] = (pairs.distance <= HASH_BITS / 32 + 1e-6).numpy()
    rows = []
    for rule, selection in rules.items():
        of_change = [true & selection & (planted_images.change[pair[:, 1]] == number) for number in range(len(CHANGES))]
        recall = {f"recall, {change}": share(hits.sum(), (planted_images.change == number).sum())
                  for number, (change, hits) in enumerate(zip(CHANGES, of_change, strict=True))}  # fmt: skip
        natural = int((selection & (pair[:, 1] < (planted_images.truth < 0).sum())).sum())
        score = scores_of(true, selection, -pairs.ratio.numpy(), int((planted_images.truth >= 0).sum()))
        rows.append({"task": "copies", "features": name, "rule": rule, **score, **recall, "natural": natural})
    return rows


def mistakes_row(name: str, vector: Tensor, planted_images: PlantedImages) -> dict[str, Any]:
    """How well the rule finds wrong labels."""
    label = torch.tensor([planted_images.source.label(number) for number in range(len(planted_images.source))])
    doubts = mistakes(neighbors_of(vector, 20), label, int(label.max()) + 1)
    score = scores_of(planted_images.truth, doubts.is_mistake.numpy(), doubts.score.numpy())
    agree = share((doubts.score < 0).sum(), len(label))
    return {"task": "wrong labels", "features": name, "rule": "written rule", **score, "neighbors agree": agree}


def strangers_row(name: str, kind: str, vector: Tensor, planted_images: PlantedImages) -> dict[str, Any]:
    """How well the rule finds strangers."""
    outlier_scores = outliers(neighbors_of(vector))
    score = scores_of(
        planted_images.truth, (outlier_scores.score > outlier_scores.limit).numpy(), outlier_scores.score.numpy()
    )
    return {"task": f"strangers, {kind}", "features": name, "rule": "written rule", **score}


def labels_row(name: str, vector: Tensor, label: Tensor) -> dict[str, Any]:
    """Accuracy in percent of the nearest labeled neighbor over all images, with 50 labels chosen at random (mean of ten
    draws), by clusters and by k-center."""
    draws = [torch.randperm(len(label), generator=torch.Generator().manual_seed(seed))[:50] for seed in range(10)]
    choices = {"clusters": [cluster_centers(vector, 50).number], "k-center": [k_centers(vector, 50).number]}
    row: dict[str, Any] = {"task": "50 labels", "features": name}
    for way, selections in {"random": draws, **choices}.items():
        right = [
            (label[numbers][neighbors_among(vector[numbers], vector, 1).number[:, 0]] == label).double().mean()
            for numbers in selections
        ]
        row[way] = round(100 * float(torch.stack(right).mean()), 1)
    return row


def scores_of(
    correct: np.ndarray, selection: np.ndarray, score: np.ndarray, total: int | None = None
) -> dict[str, Any]:
    """Precision, recall and average precision; `total` is the number of true findings if not all of them are listed."""
    total = int(correct.sum()) if total is None else total
    correct_by_score = correct[np.argsort(-score, kind="stable")]
    precision = correct_by_score.cumsum() / np.arange(1, len(correct_by_score) + 1)
    return {
        "found": int(selection.sum()),
        "precision": share((correct & selection).sum(), selection.sum()),
        "recall": share((correct & selection).sum(), total),
        "average precision": round(float((precision * correct_by_score).sum() / total), 3),
    }


def share(part: Any, whole: Any) -> float | None:
    """A share; `None` if the whole is 0."""
    return round(float(part) / float(whole), 3) if float(whole) else None


if __name__ == "__main__":
    main()
