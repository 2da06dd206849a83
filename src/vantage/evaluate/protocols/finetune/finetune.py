"""Fine-tuning of a copy of the backbone with a linear classifier, on all labeled images or on a few of each class.

n: images   m: test images   k: images that are trained on
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from vantage import draws
from vantage.data.sources.source import Source, cache_key
from vantage.data.sources.subset import SourceSubset
from vantage.data.splits import LabeledSplit
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.protocols.finetune.tuning import TuningSchedule, tune
from vantage.evaluate.result import Outcome
from vantage.frozen.encoder import FrozenEncoder
from vantage.measures.accuracy import accuracy
from vantage.processes.sharing import true_on_all
from vantage.storage.cache import hash_of
from vantage.storage.results import CachedResults
from vantage.storage.tables import Mean

__all__ = ["FineTune", "mean_and_spread", "images_named_in", "share_of_each_class"]


@dataclass(frozen=True)
class FineTune:
    """Fine-tuning on a share of the labels, or on all (InterCLR, arXiv 2008.11702, appendix B; SimCLR's lists).

    A copy of the backbone and a linear classifier on its features are trained together: SGD with momentum .9, the
    classifier at a hundred times the learning rate of the backbone, both rates multiplied by .2 after 60 % and after
    80 % of the epochs; random resized crop and flip in training, the middle of the resized image in testing. BatchNorm
    is trained, over the whole batch. The paper takes 1 % or 10 % of ImageNet's labels and reports top-5. A random
    encoder (--baselines) trained the same way is supervised learning from scratch.
    """

    name: ClassVar[str] = "finetune"
    version: ClassVar[int] = 1

    fraction: float = 0.1
    """Share of each class that is trained on, at least one image; 1 for all."""
    names: str = ""
    """File with the names of the images to train on, one per line, instead of a share: whole names as in the set, or
    their last parts, as in SimCLR's lists."""
    samples: int = 1
    """Independent draws of the share; with several, mean and standard deviation are reported."""
    epochs: int = 20
    """Passes over the images."""
    batch_size: int = 256
    """Images per step; learning rates are not scaled by it. Batches of an epoch are as equal in size as possible."""
    backbone_learning_rate: float = 0.01
    """Learning rate of the backbone."""
    head_learning_rate: float = 1.0
    """Learning rate of the classifier. The paper's is for batches of 256 and the features of a ResNet-50. Small sets,
    batches and networks need less, such as 0.1, or the loss (recorded in the result) jumps; finetune-chosen finds
    one."""
    weight_decay: float | None = None
    """L2 penalty of all parameters. If omitted, the paper's: 5e-4 for less than 5 % of a set's images, else 1e-4."""
    smallest_area: float = 0.08
    """Smallest share of the image that a crop covers."""
    seed: int = 0
    """Seed of the share, the order, the crops and the classifier's start."""

    def __post_init__(self) -> None:
        if not 0 < self.fraction <= 1 or self.samples < 1 or self.epochs < 1 or self.batch_size < 2:
            raise UserError(
                f"finetune: fraction is {self.fraction}, samples {self.samples}, epochs {self.epochs} and batch_size"
                f" {self.batch_size}; give a fraction above 0 and up to 1, and at least 1 sample, 1 epoch and 2 images"
            )
        if not all(
            0 <= one < math.inf
            for one in (self.backbone_learning_rate, self.head_learning_rate, self.weight_decay or 0)
        ):
            raise UserError(
                f"finetune: backbone_learning_rate is {self.backbone_learning_rate}, head_learning_rate"
                f" {self.head_learning_rate} and weight_decay {self.weight_decay}; all must be finite, and none below 0"
            )
        if self.samples > 1 and (self.names or self.fraction == 1):
            raise UserError(
                f"finetune: samples is {self.samples}, but with {'a list of names' if self.names else 'fraction 1'}"
                " every sample has the same images: give one sample, or a smaller fraction without a list"
            )

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Train a copy on images of `train`, evaluate on `test`. A stopped training run continues after the last epoch
        in the cache, and ends as if it had never been stopped; finished samples are read from the cache."""
        images = LabeledSplit.of(train, test, work.progress)
        (train, label, test, test_label), classes, digest = images, images.classes, encoder.digest()
        file = work.cache / "finetune" / f"{self._key(encoder, train, label, test, test_label, work)}.json"
        results = CachedResults(file)
        for sample in range(self.samples):
            if true_on_all(str(sample) in results):
                continue
            seed = draws.mix(self.seed, sample) if sample else self.seed
            rows = self._rows(train, label, seed)
            schedule = self.schedule(len(rows) / len(train), seed)
            copy = tune(schedule, encoder, SourceSubset(train, rows), label[rows], classes, work)
            measures = accuracy(copy.predict(encoder, test, work), test_label, images.trained_classes).measures()
            result = {"measures": measures, "losses": copy.losses, "images": len(rows), "how": dict(copy.how)}
            results.add(str(sample), result)
        if encoder.digest() != digest:
            raise RuntimeError("the backbone changed while its copy was fine-tuned: the result is void")
        samples = [results[str(sample)] for sample in range(self.samples)]
        by_sample = [one["measures"] for one in samples]
        choice: dict[str, float | int | str | list[float]] = {"by": "the protocol"}
        details: dict[str, Any] = {"samples": by_sample, "losses": [one["losses"] for one in samples]}
        if self.names:
            details["names"] = hash_of([_bytes(self.names)])
        images, how = samples[-1]["images"], samples[0]["how"]
        return Outcome(mean_and_spread(by_sample), images, len(test_label), choice, details, how)

    def _key(
        self,
        encoder: FrozenEncoder,
        train: Source,
        label: Int[Tensor, "n"],
        test: Source,
        test_label: Int[Tensor, "m"],
        work: Work,
    ) -> str:
        """A hash of everything that a sample depends on; the number of samples is not part of it."""
        facts = (
            encoder.digest(), repr(encoder.view), cache_key(train), cache_key(test), repr(replace(self, samples=1)),
            str((label.tolist(), test_label.tolist())), work.resolved_device().type, torch.__version__,
            str(self.version), str(work.resident_bytes),  # crops of images that are held in memory are drawn by batch
        )  # fmt: skip
        return hash_of([*facts, _bytes(self.names)])

    def first_sample(self, train: Source, label: Int[Tensor, "n"]) -> tuple[Int[Tensor, "k"], float]:
        """The numbers of the images of the first sample, and the weight decay for that many."""
        rows = self._rows(train, label, self.seed)
        return rows, self.schedule(len(rows) / len(train), self.seed).weight_decay

    def _rows(self, train: Source, label: Int[Tensor, "n"], seed: int) -> Int[Tensor, "k"]:
        rows = (
            images_named_in(train, Path(self.names)) if self.names else share_of_each_class(label, self.fraction, seed)
        )
        if len(rows) < 2:
            raise UserError(f"{len(rows)} image is too few to train on: BatchNorm needs two; give a larger fraction")
        return rows

    def schedule(self, share: float, seed: int) -> TuningSchedule:
        """The schedule for training on a share of a set's images; the weight decay depends on that share if it is
        omitted."""
        decay = self.weight_decay if self.weight_decay is not None else 5e-4 if share < 0.05 else 1e-4
        rates = (self.backbone_learning_rate, self.head_learning_rate)
        return TuningSchedule(self.epochs, self.batch_size, rates, decay, self.smallest_area, seed)


def share_of_each_class(label: Int[Tensor, "n"], fraction: float, seed: int) -> Int[Tensor, "k"]:
    """The numbers of a share of each class, drawn with `seed`, at least one image of each; in order."""
    generator = torch.Generator().manual_seed(draws.mix(seed, draws.Purpose.LABELED_SHARE))
    rows = []
    for number in label.unique().tolist():
        members = (label == number).nonzero().squeeze(1)
        count = max(1, round(fraction * len(members)))
        rows.append(members[torch.randperm(len(members), generator=generator)[:count]])
    return torch.cat(rows).sort().values


def images_named_in(source: Source, file: Path) -> Int[Tensor, "k"]:
    """The numbers of the images named in a file, one name per line, in the order of the source. Names are whole, or the
    last parts of whole names. Raises `UserError` for a file that cannot be read, and for unknown or ambiguous names.
    """
    try:
        names = list(dict.fromkeys(line.strip() for line in file.read_text().splitlines() if line.strip()))
    except (OSError, UnicodeDecodeError) as problem:
        raise UserError(
            f"cannot read names of images from {file}: {getattr(problem, 'strerror', None) or problem}"
        ) from problem
    whole: dict[str, list[int]] = {}
    last: dict[str, list[int]] = {}
    for number in range(len(source)):
        name = source.name(number)
        whole.setdefault(name, []).append(number)
        last.setdefault(name.rpartition("/")[2], []).append(number)
    matches = [whole.get(name) or last.get(name, []) for name in names]
    bad = [name for name, numbers in zip(names, matches, strict=True) if len(numbers) != 1]
    if bad:
        raise UserError(
            f"{len(bad)} of the {len(names)} names in {file} match no labeled image or several, such as {bad[0]!r} (the"
            f" set has names such as {source.name(0)!r}): name each image once, as the set does"
        )
    if not names:
        raise UserError(f"{file} names no image: write one name per line")
    return torch.tensor(sorted({numbers[0] for numbers in matches}))


def _bytes(names: str) -> bytes:
    """Contents of a file of names; empty if it cannot be read, which `images_named_in` reports."""
    try:
        return Path(names).read_bytes() if names else b""
    except OSError:
        return b""


def mean_and_spread(samples: list[dict[str, float]]) -> Mapping[str, float]:
    """The mean of each measure over samples and, of several samples, the standard deviation."""
    means = {name: Mean.of([one[name] for one in samples]) for name in samples[0]}
    spreads = {f"{name} sd": one.deviation for name, one in means.items() if one.deviation is not None}
    return {name: one.mean for name, one in means.items()} | spreads
