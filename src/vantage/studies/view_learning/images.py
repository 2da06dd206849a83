"""The images for view learning: all, the labeled ones, and those held out to choose the best state.

b: images of a batch   n: images
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vantage import draws
from vantage.data import BatchOrder, Source, SourceSubset, labels_of
from vantage.data.sources.source import class_count
from vantage.data.splits import hold_out_mask
from vantage.errors import UserError
from vantage.progress import Progress
from vantage.studies.view_learning.game import LabeledBatch
from vantage.studies.view_learning.learning import ViewLearning
from vantage.training.feed import Feed, feed_of
from vantage.training.images import training_part
from vantage.training.run import Data
from vantage.training.watching.missed import report_missed
from vantage.views.augmentation import Views

__all__ = ["LearningImages", "Stream", "count_training_images", "images_of"]

_ORDER, _LABELED, _HELD_OUT, _VIEWS = range(4)  # uses of the seed
_KINDS = {
    "every": "training",
    "labeled": "labeled training",
    "held_out": "held-out",
    "held_out_labeled": "labeled held-out",
}


class Stream:
    """An endless sequence of batches; each is a function of the seed and the step."""

    def __init__(self, feed: Feed, label: Int[Tensor, "n"], seed: int, device: torch.device) -> None:
        """Serve the images of `feed`, whose labels are `label`; `seed` determines their crops."""
        self.feed, self.seed, self.device = feed, seed, device
        self.label = label.to(device)
        self.generator = torch.Generator()

    @property
    def steps(self) -> int:
        """Batches in a pass over all images."""
        return self.feed.steps

    def batches(self, start: int = 0) -> Iterator[LabeledBatch]:
        """The batches from step `start` on; the label is −1 for images without one."""
        step, (epoch, within) = start, divmod(start, self.feed.steps)
        while True:
            for batch in self.feed.batches(epoch, within):
                batch = batch.to(self.device)
                self.generator.manual_seed(draws.mix(self.seed, step, _VIEWS))
                (images,) = self.feed.views_of(batch, self.generator)
                yield LabeledBatch(images, self.label[batch.image])
                step += 1
            epoch, within = epoch + 1, 0

    def report_missed(self, progress: Progress) -> None:
        """Warn of images that could not be read in this pass; raises `DataError` if they are too many."""
        report_missed(self.feed.images, len(self.label), progress, "give the same command again")


@dataclass(frozen=True)
class LearningImages:
    """All kinds of batches that view learning uses."""

    every: Stream
    """All training images."""

    labeled: Stream | None
    """The labeled training images; None if no term needs labels."""

    held_out: Stream
    """Images that are never trained on."""

    held_out_labeled: Stream | None
    """The labeled ones among them."""

    classes: int
    """Number of classes; 0 if no term needs labels."""

    def channels(self, most: int = 1_024) -> Iterator[Float[Tensor, "b 3 _ _"]]:
        """The flow's input for about `most` training images, always the same ones."""
        count = 0
        for batch in self.every.batches():
            yield batch.images
            count += len(batch.images)
            if count >= min(most, self.every.steps * len(batch.images)):
                return


def images_of(learning: ViewLearning, source: Source, device: torch.device) -> LearningImages:
    """Divide the images of a source into the parts that a learning needs.

    Raises `UserError` if labels are needed and missing, or if there are too few images of some kind for a batch.
    """
    needs_labels = _needs_labels(learning)
    label, is_held_out = _held_out(learning, source)
    parts = {"every": ~is_held_out, "held_out": is_held_out}
    if needs_labels:
        parts |= {"labeled": ~is_held_out & (label >= 0), "held_out_labeled": is_held_out & (label >= 0)}
    salts = {"every": _ORDER, "labeled": _LABELED, "held_out": _HELD_OUT, "held_out_labeled": _HELD_OUT}
    for name, rows in parts.items():
        _check_count(learning, source, name, int(rows.sum()))
    streams = {name: _stream(learning, source, label, rows, salts[name], device) for name, rows in parts.items()}
    return LearningImages(
        streams["every"],
        streams.get("labeled"),
        streams["held_out"],
        streams.get("held_out_labeled"),
        class_count(label, source) if needs_labels else 0,
    )


def count_training_images(learning: ViewLearning, source: Source) -> int:
    """How many images of a source are not held out. Raises `UserError` if labels are needed and missing."""
    return int((~_held_out(learning, source)[1]).sum())


def _needs_labels(learning: ViewLearning) -> bool:
    return any(term.labeled for term in learning.terms)


def _held_out(learning: ViewLearning, source: Source) -> tuple[Int[Tensor, "n"], Bool[Tensor, "n"]]:
    """The labels that may be used, −1 for all other images; and which images are held out."""
    label = _labels(learning, source) if _needs_labels(learning) else torch.full((len(source),), -1)
    return label, hold_out_mask(label, learning.validation, learning.seed)


def _labels(learning: ViewLearning, source: Source) -> Int[Tensor, "n"]:
    """The labels that may be used; −1 for all other images."""
    label = labels_of(source)
    labeled = (label >= 0).nonzero()[:, 0]
    if not len(labeled):
        raise UserError(
            f"{learning.name} learns views with labels, but none of the {len(source):,} images has one: put each class"
            " in a folder of its own, or learn without labels (vantage views learn unsupervised)"
        )
    if not learning.labels:
        return label
    if learning.labels > len(labeled):
        raise UserError(
            f"labels is {learning.labels:,}, but only {len(labeled):,} of the {len(source):,} images have one: give at"
            " most that, or 0 for all"
        )
    part = training_part(SourceSubset(source, labeled), Data(max_images=learning.labels))
    numbers = part.numbers if isinstance(part, SourceSubset) else torch.arange(len(labeled))
    selection = torch.full_like(label, -1)
    selection[labeled[numbers]] = label[labeled[numbers]]
    return selection


def _check_count(learning: ViewLearning, source: Source, name: str, count: int) -> None:
    """Raises `UserError` if there are too few images of a kind for a step."""
    least = learning.batch_size if name == "every" else 2
    if count >= least:
        return
    remedy = "give more of them"
    if name == "every":
        remedy = "give more images, or set a smaller batch_size"
    elif "labeled" in name:
        remedy = "label more images of each class" + ", or set labels to a larger number" * (learning.labels > 0)
    raise UserError(
        f"too few {_KINDS[name]} images: a step takes {least}, found {count} among {len(source):,} images: {remedy}"
    )


def _stream(
    learning: ViewLearning, source: Source, label: Int[Tensor, "n"], rows: Tensor, salt: int, device: torch.device
) -> Stream:
    numbers = rows.nonzero()[:, 0]
    most = learning.labeled_batch_size if salt == _LABELED else learning.batch_size
    batch = most if salt == _ORDER else min(most, len(numbers))
    seed = draws.mix(learning.seed, salt)
    order = BatchOrder(batch, seed, window=learning.data.shuffle_window)
    feed = feed_of(Views((learning.view,)), learning.data, order, SourceSubset(source, numbers), device)
    return Stream(feed, label[numbers], seed, device)
