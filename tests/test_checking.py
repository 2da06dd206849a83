"""The checks of annotations are on in tests, for arguments and answers, at the first call and at later ones."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from checking import jaxtyped
from jaxtyping import Float, TypeCheckError
from torch import Tensor

from vantage.errors import UserError
from vantage.estimators import InfoNCE
from vantage.functional import info_nce
from vantage.views.operations.operation import uniform

checked = jaxtyped(typechecker=None)


def test_a_wrong_shape_or_kind_is_refused_at_every_call() -> None:
    info_nce(torch.randn(4, 3), torch.randn(4, 3), 0.1)
    for _ in range(2):
        with pytest.raises(TypeCheckError):
            info_nce(torch.randn(4, 3), torch.randn(5, 3), 0.1)
        with pytest.raises(TypeCheckError):
            info_nce(torch.randn(4, 3), torch.randn(4, 3), "warm")  # pyright: ignore[reportArgumentType]
        with pytest.raises(TypeCheckError):
            InfoNCE("warm")  # pyright: ignore[reportArgumentType]


def test_a_wrong_answer_is_refused_at_every_call() -> None:
    @checked
    def transposed(table: Float[Tensor, "rows columns"]) -> Float[Tensor, "columns rows"]:
        return table

    for _ in range(2):
        assert transposed(torch.eye(3)).shape == (3, 3)
        with pytest.raises(TypeCheckError):
            transposed(torch.zeros(2, 3))


def test_methods_properties_and_fields_are_checked() -> None:
    @checked
    @dataclass
    class Part:
        count: int

        @checked
        @classmethod
        def of(cls, count: int) -> "Part":
            return cls(count)

        @checked
        @staticmethod
        def twice(count: int) -> int:
            return 2 * count

        @checked
        @property
        def name(self) -> str:
            return self.count  # pyright: ignore[reportReturnType]

    assert Part.of(3) == Part(3) and Part.twice(2) == 4
    for wrong in (Part, Part.of, Part.twice):
        with pytest.raises(TypeCheckError):
            wrong("3")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeCheckError):
        Part(3).name  # noqa: B018


def test_names_of_sizes_hold_for_one_call_each() -> None:
    @checked
    def rows(table: Float[Tensor, "n d"]) -> Iterator[Float[Tensor, "d"]]:
        yield from table

    @checked
    def both(one: Float[Tensor, "n d"], other: Float[Tensor, "m d"]) -> Float[Tensor, ""]:
        return sum((row.sum() for row in [*rows(one), *rows(other)]), torch.zeros(()))

    assert both(torch.ones(2, 3), torch.ones(4, 3)) == 18
    with pytest.raises(TypeCheckError):
        both(torch.ones(2, 3), torch.ones(4, 2))
    assert uniform(3, (0.0, 1.0), torch.Generator()).shape == (3,)  # "{count}" is an argument's value


def test_what_a_function_raises_is_raised() -> None:
    with pytest.raises(UserError):
        InfoNCE(-1.0)
