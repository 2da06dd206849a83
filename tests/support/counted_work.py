"""How much of the work that processes share is done by this one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from vantage.data import Arrays
from vantage.data.sources.folder import Folder
from vantage.encoding import Work
from vantage.evaluate.protocols.linear import logistic
from vantage.evaluate.protocols.neighbors import knn, retrieval
from vantage.evaluate.protocols.segmentation import feature_maps
from vantage.evaluate.protocols.segmentation.decoder import Decoder
from vantage.measures import neighbors
from vantage.storage import arrays
from vantage.training.watching import probe

KINDS = ("images read", "images encoded", "maps decoded", "queries looked up", "rows fitted")
"""Kinds of work. Images are encoded by a convolution of at most three channels; rows are those of each pass of a
logistic regression."""


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """The work of this process within the block, by kind; filled at the end of the block."""
    amounts: dict[str, list[int]] = {kind: [] for kind in KINDS}  # threads append at the same time
    done: dict[str, int] = {}

    def of_network(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        if isinstance(module, nn.Conv2d) and module.in_channels <= 3:
            amounts["images encoded"].append(len(inputs[0]))
        elif isinstance(module, Decoder):
            amounts["maps decoded"].append(len(inputs[0]))

    handle = register_module_forward_pre_hook(of_network)
    try:
        with pytest.MonkeyPatch.context() as patch:
            for kind in (Arrays, Folder):
                _count(patch, kind, "image", amounts["images read"], lambda arguments: 1)
            for module in (neighbors, knn, retrieval):
                _count(patch, module, "nearest", amounts["queries looked up"], lambda arguments: len(arguments[1]))
            _count(patch, logistic, "_add_gradient", amounts["rows fitted"], lambda arguments: len(arguments[2]))
            yield done
    finally:
        handle.remove()
    done |= {kind: sum(each) for kind, each in amounts.items()}


def _count(
    patch: pytest.MonkeyPatch,
    owner: type | ModuleType,
    name: str,
    amounts: list[int],
    amount: Callable[[Sequence[Any]], int],
) -> None:
    """Have every call of a function append to `amounts` what `amount` makes of its arguments."""
    function = getattr(owner, name)

    def counting(*arguments: Any) -> Tensor:
        amounts.append(amount(arguments))
        return function(*arguments)

    patch.setattr(owner, name, counting)


@contextmanager
def small_parts(images: int) -> Iterator[None]:
    """Parts of `images` images where they always have 256, so that a few images are shared too; parts of one map where
    they have 64."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "Work", partial(Work, batch_size=images))
        for module in (arrays, feature_maps):
            patch.setattr(module, "AT_ONCE", 1)
        yield
