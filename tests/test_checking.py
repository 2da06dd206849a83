"""The checks of annotations are on in tests: what they ask is of no use where they are not."""

import pytest
import torch
from checking import when_called
from jaxtyping import TypeCheckError

from vantage.functional import info_nce


def test_a_wrong_shape_or_kind_is_refused_at_every_call() -> None:
    info_nce(torch.randn(4, 3), torch.randn(4, 3), 0.1)
    for _ in range(2):
        with pytest.raises(TypeCheckError):
            info_nce(torch.randn(4, 3), torch.randn(4, 3, 1), 0.1)
        with pytest.raises(TypeCheckError):
            info_nce(torch.randn(4, 3), torch.randn(4, 3), "warm")  # pyright: ignore[reportArgumentType]


def test_a_wrong_answer_is_refused_at_every_call() -> None:
    @when_called
    def doubled(number: int) -> int:
        return number * 2.0  # pyright: ignore[reportReturnType]

    for _ in range(2):
        with pytest.raises(Exception, match="violates type hint"):
            doubled(1)
