"""What is remembered of a step's keys if an image has keys of several views.

b: images of a step   d: width
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch.nn.functional import normalize

from vantage.records import Keys

__all__ = ["EachKey", "MeanKey", "Remember", "UnitMeanKey"]


@runtime_checkable
class Remember(Protocol):
    """Makes the keys that a store reads and writes from this step's keys."""

    def __call__(self, keys: tuple[Keys, ...]) -> Keys:
        """The keys to remember. `keys` holds one record for each view of `Branch.pool_views`, with the same images in
        the same order."""
        ...


@dataclass(frozen=True)
class EachKey:
    """Every key by itself, one view after the other."""

    def __call__(self, keys: tuple[Keys, ...]) -> Keys:
        """All keys."""
        if len(keys) == 1:
            return keys[0]
        return Keys(torch.cat([key.vector for key in keys]), torch.cat([key.image for key in keys]))


@dataclass(frozen=True)
class MeanKey:
    """The mean of an image's keys, not normalized, so its length is at most 1 (JCL, arXiv 2009.14776, and its code)."""

    def __call__(self, keys: tuple[Keys, ...]) -> Keys:
        """One key for each image."""
        return Keys(torch.stack([key.vector for key in keys]).mean(0), keys[0].image)


@dataclass(frozen=True)
class UnitMeanKey:
    """The mean of an image's keys, normalized."""

    def __call__(self, keys: tuple[Keys, ...]) -> Keys:
        """One unit key for each image."""
        return Keys(normalize(torch.stack([key.vector for key in keys]).mean(0), dim=1), keys[0].image)
