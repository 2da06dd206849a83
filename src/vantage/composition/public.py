"""Public names of a package, and its parts, which name a field that holds something of another type."""

from collections.abc import Mapping
from functools import wraps
from typing import Any, TypeVar

from vantage.composition.names import is_part
from vantage.errors import UserError

__all__ = ["make_public", "name_wrong_types"]

P = TypeVar("P")


def make_public(namespace: Mapping[str, Any]) -> list[str]:
    """The names that a package's `__init__` has from its own modules, for `__all__`.

    The parts among them name a field of another type from then on. Python runs this `__init__` before it gives anyone
    a module of the package, so this holds wherever a part is imported from.
    """
    inside = f"{namespace['__package__']}."
    names = [name for name, value in namespace.items() if getattr(value, "__module__", "").startswith(inside)]
    for name in names:
        if is_part(namespace[name]):
            name_wrong_types(namespace[name])
    return names


def name_wrong_types(part: type[P]) -> type[P]:
    """The same part. If it checks its fields, and cannot because one is of another type, then making it raises
    `UserError` with the field, what it takes, and what it holds."""
    check = getattr(part, "__post_init__", None)
    if check is None:
        return part

    @wraps(check)
    def __post_init__(self: Any) -> None:
        problem = None
        try:
            check(self)
        except UserError:  # it knows better what is wrong
            raise
        except Exception as error:  # comparing text with a number is a TypeError, but a check may do anything
            problem = error
        if problem is not None:
            from vantage.composition.field_types import check_types  # only now, to import a package in less time

            check_types(self, type(self).__name__)
            raise problem

    part.__post_init__ = __post_init__  # pyright: ignore
    return part
