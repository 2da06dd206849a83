"""Random numbers that are a function of what they are for, not of when they are drawn.

A draw for a query depends only on the query's seed, which is made from the run's seed, the step and the image's number.
So all tiles of a table, processes and devices draw the same numbers, and a resumed run needs no generator state.

The generator is the finalizer of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014) on 64-bit integers that wrap around.

b: queries   k: draws for each   n: columns
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum, unique

import numpy as np
import torch
from jaxtyping import Float, Int, Int64, UInt64
from torch import Tensor

__all__ = [
    "Purpose",
    "bits",
    "bits_at",
    "integers",
    "mix",
    "permutation",
    "query_seeds",
    "set_torch_seed",
    "torch_seed",
    "uniforms",
]

_STEP = -7046029254386353131  # 0x9E3779B97F4A7C15, 2**64 divided by the golden ratio, as a signed number
_FIRST = -4658895280553007687  # 0xBF58476D1CE4E5B9
_SECOND = -7723592293110705685  # 0x94D049BB133111EB
_WORD = (1 << 64) - 1
_CPU = torch.device("cpu")


@unique
class Purpose(IntEnum):
    """What is drawn: a number for `mix`, so that draws with the same seed are independent if they differ in purpose.

    A new kind of draw takes a new number. Results depend on the values, so they never change. The numbers below 4 that
    `Learner`, `Session` and view learning mix in stand in other places of `mix`, which keeps them apart.
    """

    EPOCH_ORDER = 1  # the order of an epoch's images
    CROPS = 2  # the crops of one image in one epoch
    BLOCK_ORDER = 3  # the order of a source's shards in an epoch
    FIRST_ROWS = 0xF111  # the images whose keys fill a memory before training
    MAX_IMAGES = 0x9A27  # the images that `max_images` keeps
    HELD_OUT = 0x5917  # the images of each class that are held out
    HELD_OUT_MASKS = 0x3A5C  # the held-out images of a set with masks
    HELD_OUT_BOXES = 0xDE7E  # the held-out images of a set with boxes
    MOSAIC = 0x7113  # the tiles of a mosaic
    LINEAR_ORDER = 0x11EA  # the order of images for a linear classifier on crops
    LINEAR_VIEWS = 0x11EB  # the views of its steps
    LOW_SHOT_SAMPLE = 0x10E5  # the images of each class in a low-shot sample
    LABELED_SHARE = 0x5E41  # the share of labels that fine-tuning uses
    FINETUNE_START = 0x7E5A  # the initial weights of its classifier
    FINETUNE_STEP = 0x7E5B  # dropout in its steps
    SEGMENTATION_FLIPS = 0x5E9F  # the images of an epoch that are mirrored for segmentation
    DETECTION_ORDER = 0xDE71  # the order of images for a detector
    DETECTION_MIRROR = 0xDE72  # whether it sees an image mirrored
    DETECTION_STEP = 0xDE73  # the sides, anchors and regions of its steps
    DETECTION_START = 0xDE74  # its initial weights
    HELD_OUT_VIEWS = 0x4E1D  # the views of the held-out contrast
    HELD_OUT_NEGATIVES = 0x4E1E  # its pairs and negatives
    ANALYZED_IMAGES = 0xA7A1  # the images that an analysis looks at
    PERMUTED_LABELS = 0x1ABE  # the random labelings that clusters are compared with
    CLIPS = 0xC11B  # the clips of Moving-MNIST
    VIEW_LEARNING_STEP = 0x57E9  # dropout in a step of view learning


def mix(*numbers: int) -> int:
    """One well-mixed seed in [0, 2⁶³) made from several integers; their order matters."""
    state = 0
    for number in numbers:
        state = (state + (number & _WORD) + 0x9E3779B97F4A7C15) & _WORD
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _WORD
        state ^= state >> 31
    return state >> 1


def _shift(number: Int[Tensor, "*s"], by: int) -> Int[Tensor, "*s"]:
    """Logical shift to the right; torch's own shift is arithmetic."""
    return (number >> by) & ((1 << (64 - by)) - 1)


def _scramble(number: Int[Tensor, "*s"]) -> Int[Tensor, "*s"]:
    number = (number ^ _shift(number, 30)) * _FIRST
    number = (number ^ _shift(number, 27)) * _SECOND
    return number ^ _shift(number, 31)


def query_seeds(seed: int, step: int, image: Int[Tensor, "b"]) -> Int[Tensor, "b"]:
    """A seed for each query of a step.

    Equal (seed, step, image) give equal seeds. In particular, two branches of one step draw the same for an image.
    """
    return _scramble(image * _STEP + mix(seed, step))


def bits(seed: Int[Tensor, "b"], count: int, salt: int = 0, first: int = 0) -> Int[Tensor, "b k"]:
    """`count` random 64-bit integers for each seed, from column `first` on; a different `salt` gives different ones."""
    counter = torch.arange(first + 1, first + count + 1, device=seed.device) + (salt << 40)
    return _scramble(seed[:, None] + counter * _STEP)


def bits_at(seed: int, column: Int64[np.ndarray, "n"], salt: int = 0) -> UInt64[np.ndarray, "n"]:
    """Some columns of `bits` for one seed, without computing the others: the same bits, as unsigned NumPy integers."""
    number = column.astype(np.uint64)
    number += np.uint64(1 + (salt << 40))
    number *= np.uint64(_STEP & _WORD)
    number += np.uint64(seed & _WORD)
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        number ^= number >> np.uint64(shift)
        number *= np.uint64(factor & _WORD)
    number ^= number >> np.uint64(31)
    return number


def uniforms(seed: Int[Tensor, "b"], count: int, salt: int = 0) -> Float[Tensor, "b k"]:
    """`count` numbers in [0, 1) for each seed, in float64 with 53 random bits."""
    return _shift(bits(seed, count, salt), 11).double() * 2.0**-53


def integers(seed: Int[Tensor, "b"], count: int, below: int | Int[Tensor, "b 1"], salt: int = 0) -> Int[Tensor, "b k"]:
    """`count` integers in [0, below) for each seed, with replacement; `below` may differ from seed to seed.

    Their bias is below `below` / 2⁶³, too small to be noticed.
    """
    return _shift(bits(seed, count, salt), 1).remainder(below)


def permutation(count: int, seed: int) -> Int[Tensor, "n"]:
    """A random order of `count` rows, on the CPU, from one seed: what torch's generator gives."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed))


def set_torch_seed(seed: int, device: torch.device = _CPU) -> None:
    """Start torch's own generators, of the CPU and of the device, at `seed`.

    They then give what they give after `torch.manual_seed`, which without a GPU takes up to a millisecond: it writes
    down the stack of its callers, for a GPU that may be used later.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed_all(seed)


@contextmanager
def torch_seed(seed: int, device: torch.device = _CPU) -> Iterator[None]:
    """Within this context torch's generators on the CPU and the device start at `seed`; they are restored
    afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        set_torch_seed(seed, device)
        yield
