"""The plain values in the syntax tree of an expression."""

import ast
from typing import Any

__all__ = ["NOTHING", "items_of", "plain_value", "source_of", "word_value"]

_WORDS = {"None": None, "True": True, "False": False, "true": True, "false": False}
_NUMBERS = {"inf": float("inf"), "nan": float("nan")}


class _Nothing:
    """Stands for a node that is not a plain value."""


NOTHING = _Nothing()
"""What `plain_value` gives for a node that is not a plain value."""


def plain_value(node: ast.expr) -> Any:
    """The number, boolean, text or None that a node stands for, or `NOTHING`."""
    match node:
        case ast.Constant(bool() | int() | float() | str() | None as value):
            return value
        case ast.Name(name) if name in _WORDS:
            return _WORDS[name]
        case ast.Name(name) if name in _NUMBERS:
            return _NUMBERS[name]
        case ast.UnaryOp(ast.USub(), ast.Constant() | ast.Name() as inside) if type(plain_value(inside)) in (
            int,
            float,
        ):
            return -plain_value(inside)
    return NOTHING


def word_value(node: ast.expr) -> Any:
    """The plain value of a node; a word without quotes is text."""
    return node.id if isinstance(node, ast.Name) and node.id not in _WORDS | _NUMBERS else plain_value(node)


def items_of(node: ast.expr) -> list[ast.expr]:
    """The items of a tuple; a single value counts as a tuple of one."""
    return list(node.elts) if isinstance(node, ast.Tuple | ast.List) else [node]


def source_of(node: ast.expr) -> str:
    """The text of a node."""
    try:
        return ast.unparse(node)
    except (RecursionError, ValueError):
        return "…"
