"""A linear classifier on cached features: seconds until it is within half a point of the best test accuracy.

    python benchmarks/probe.py CIFAR10 [--threads 2] [--rounds 3]

CIFAR10 is any location that Vantage can open, with parts train and test (a .tar.gz of class folders). The features,
50,000 x 512, are random whitened patches of the images, rectified and pooled to 2 x 2 (Coates et al., AISTATS
2011), standardized, and kept in the cache folder. The comparison is SGD over a TensorDataset and DataLoader, as probes
are commonly written: 100 epochs of batches of 256, momentum 0.9, rate 0.1, multiplied by 0.1 at 60 and 80.

The second table compares six learning rates side by side (`Heads`) with one, over the same features: the cost of a
sweep in one pass.
"""

import argparse
import itertools
import statistics
import time

import torch
from timing import interleave, measured_peak, speedup, write_results
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, conv2d, cross_entropy, normalize, relu
from torch.utils.data import DataLoader, TensorDataset

from vantage.data import cache_folder, decode_all, labels_of, open_source
from vantage.evaluate import Heads, fit_logistic

PATCH, FILTERS = 6, 128
Curve = list[tuple[float, float]]


def filters(images: Tensor) -> Tensor:
    """Random patches, each standardized, whitened together."""
    generator = torch.Generator().manual_seed(0)
    sample = images[torch.randperm(len(images), generator=generator)[:4000]].float() / 255
    top, left = torch.randint(0, images.shape[2] - PATCH + 1, (2, len(sample)), generator=generator).tolist()
    parts = [one[:, i : i + PATCH, j : j + PATCH] for one, i, j in zip(sample, top, left, strict=True)]
    patch = torch.stack(parts).flatten(1)
    patch = patch - patch.mean(1, keepdim=True)
    patch = patch / (patch.std(1, keepdim=True) + 0.05)
    centered = patch - patch.mean(0)
    value, vector = torch.linalg.eigh(torch.cov(centered.T))
    white = vector @ torch.diag((value + 0.1).rsqrt()) @ vector.T
    selection = torch.randperm(len(patch), generator=generator)[:FILTERS]
    return (normalize(centered @ white, dim=1)[selection] @ white).view(FILTERS, 3, PATCH, PATCH)


def features(images: Tensor, kernel: Tensor) -> Tensor:
    """Responses of each image to the patches, pooled."""
    parts = []
    for part in images.split(500):
        answer = conv2d(part.float() / 255 * 2 - 1, kernel * 2)
        answer = answer - answer.mean((2, 3), keepdim=True)
        answer = relu(answer - 0.25 * answer.std((2, 3), keepdim=True))
        parts.append(adaptive_avg_pool2d(answer, 2).flatten(1))
    return torch.cat(parts)


def data(path: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Standardized features and labels for training and testing."""
    train, test = open_source(f"{path}#train"), open_source(f"{path}#test")
    images = decode_all(train, cache=cache_folder())
    kernel = filters(images)
    train_features, test_features = features(images, kernel), features(decode_all(test, cache=cache_folder()), kernel)
    mean, deviation = train_features.mean(0), train_features.std(0) + 1e-6
    return (train_features - mean) / deviation, labels_of(train), (test_features - mean) / deviation, labels_of(test)


def share(weight: Tensor, bias: Tensor, vector: Tensor, label: Tensor) -> float:
    """Accuracy in percent."""
    return 100 * float(((vector @ weight.T + bias).argmax(1) == label).double().mean())


def loader_sgd(vector: Tensor, label: Tensor, query: Tensor, query_label: Tensor) -> Curve:
    """The common probe: seconds so far and test accuracy after each epoch; testing is not timed."""
    torch.manual_seed(0)
    layer, curve, seconds = nn.Linear(vector.shape[1], int(label.max()) + 1), [], 0.0
    optimizer = torch.optim.SGD(layer.parameters(), 0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [60, 80])
    loader = DataLoader(TensorDataset(vector, label), 256, shuffle=True)
    for _ in range(100):
        start = time.perf_counter()
        for part, target in loader:
            optimizer.zero_grad()
            cross_entropy(layer(part), target).backward()
            optimizer.step()
        schedule.step()
        seconds += time.perf_counter() - start
        curve.append((seconds, share(layer.weight.detach(), layer.bias.detach(), query, query_label)))
    return curve


def cached_probe(vector: Tensor, label: Tensor, query: Tensor, query_label: Tensor) -> Curve:
    """`fit_logistic` with more and more iterations; every point of the curve is a new fit from the start."""
    curve = []
    for iterations in (25, 50, 75, 100, 150, 200):
        start = time.perf_counter()
        classifier = fit_logistic(vector, label, int(label.max()) + 1, 1e-4, iterations)
        curve.append((time.perf_counter() - start, share(classifier.weight, classifier.bias, query, query_label)))
    return curve


PROBES = {"cached (L-BFGS)": cached_probe, "SGD through a DataLoader": loader_sgd}


def sweep(vector: Tensor, label: Tensor, rates: list[float]) -> None:
    """One epoch of some learning rates side by side."""
    heads = Heads(torch.zeros(int(label.max()) + 1, vector.shape[1]), torch.zeros(int(label.max()) + 1), rates)
    for rows in torch.randperm(len(vector)).split(256):
        heads.step(vector[rows], label[rows], 1.0)


def main() -> None:
    """Time and compare the probes, and write results/probe.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", metavar="CIFAR10", help="images with parts train and test")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    facts = data(options.path)
    curves: dict[str, list[Curve]] = {name: [] for name in PROBES}
    for _ in range(options.rounds):
        for name, probe in PROBES.items():
            curves[name].append(probe(*facts))
    points = itertools.chain.from_iterable(itertools.chain.from_iterable(curves.values()))
    aim = max(accuracy for _, accuracy in points) - 0.5
    seconds_to_aim = {name: [_first(curve, aim) for curve in trials] for name, trials in curves.items()}
    rows: list[dict[str, object]] = []
    for name, trials in curves.items():
        row = {
            "case": name,
            "aim": round(aim, 2),
            "seconds_to_aim": round(statistics.median(seconds_to_aim[name]), 2),
            "seconds_in_all": round(statistics.median(curve[-1][0] for curve in trials), 2),
            "final_accuracy": round(statistics.median(curve[-1][1] for curve in trials), 2),
            "cached_is_faster_by": round(speedup(seconds_to_aim, "cached (L-BFGS)", name), 2),
            "peak_mib": round(measured_peak(lambda probe=PROBES[name]: probe(*facts))),
        }
        rows.append(row)
    one, six = "one rate, an epoch", "six rates side by side, an epoch"
    grid = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0]
    seconds = interleave({one: lambda: sweep(*facts[:2], [0.1]), six: lambda: sweep(*facts[:2], grid)}, options.rounds)
    for name, trials in seconds.items():
        rows.append({"case": name, "seconds": round(statistics.median(trials), 3)})
    for row in rows:
        print(row)
    print(write_results("probe", rows))


def _first(curve: Curve, aim: float) -> float:
    return next((seconds for seconds, accuracy in curve if accuracy >= aim), float("inf"))


if __name__ == "__main__":
    main()
