"""Values as people write them: a literal, or a part with its settings, such as `Sample(count=4_095)`.

The text is parsed with Python's grammar, and values are read from the syntax tree; nothing is evaluated. A text may
hold numbers, text, None, True, False, tuples, and calls of parts by their names. A number in place of a schedule stands
for `Constant` of it.
"""

import ast
import types
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from vantage.composition.conformance import conforms, shortfall
from vantage.composition.kinds import find_part, part_from_number, usual_parts
from vantage.composition.literals import NOTHING, items_of, plain_value, source_of, word_value
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError, quantity, shorten

__all__ = ["alternatives", "describe", "read_value", "takes_number", "takes_several"]

LONGEST, DEEPEST, LARGEST = 20_000, 20, 2**63 - 1
"""Limits on a text's length in characters, on the nesting of brackets, and on whole numbers."""

_PLAIN = {int: "a whole number", float: "a number", bool: "True or False", str: "text", types.NoneType: "None"}
_MANY = {int: "whole numbers", float: "numbers", str: "words", bool: "True or False for each"}


def read_value(text: str, annotation: Any, path: str) -> Any:
    """The value that a text stands for, if it fits the annotation.

    If the annotation takes text, quotes may be left out. Raises `UserError` with one line: the path, what was expected,
    what was found, and a suggestion.
    """
    text = text.strip()
    for choice in _choices(annotation):
        if text == str(choice):
            return choice
    if str in alternatives(annotation) and not _is_quoted(text):
        return None if text == "None" and type(None) in alternatives(annotation) else text
    return _read(_tree(text, annotation, path), annotation, path, text)


def takes_several(annotation: Any) -> bool:
    """Whether a value may be a tuple."""
    return any(get_origin(kind) is tuple for kind in alternatives(annotation))


def takes_number(annotation: Any) -> bool:
    """Whether a value may be a number, or a part that a number stands for."""
    return any(_matches(ast.Constant(0), kind) for kind in alternatives(annotation))


def describe(annotation: Any) -> str:
    """What a field takes, in words."""
    *before, last = [words for kind in alternatives(annotation) for words in _describe(kind)]
    return f"{', '.join(before)} or {last}" if before else last


def _describe(kind: Any) -> Iterator[str]:
    arguments = get_args(kind)
    if get_origin(kind) is Literal:
        yield from (str(choice) for choice in arguments if choice != "")
    elif get_origin(kind) is tuple and len(set(arguments) - {Ellipsis}) == 1:
        count = "" if arguments[-1] is Ellipsis else f"{len(arguments)} "
        yield f"{count}{_MANY[arguments[0]]}" if arguments[0] in _MANY else f"a tuple of {describe(arguments[0])}"
    elif kind in _PLAIN:
        yield _PLAIN[kind]
    elif isinstance(kind, type):
        if part_from_number(kind):
            yield _PLAIN[float]
        near, others = usual_parts(kind)
        more = ", …" if len(near) > 6 or others else ""
        yield f"{kind.__name__} ({', '.join(near[:6])}{more})" if near and near != [kind.__name__] else kind.__name__
    else:
        yield str(kind).replace("typing.", "")


def alternatives(annotation: Any) -> tuple[Any, ...]:
    """The types that a union consists of, or the only one."""
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(kind for choice in get_args(annotation) for kind in alternatives(choice))
    return (annotation,)


def _choices(annotation: Any) -> list[Any]:
    return [choice for kind in alternatives(annotation) if get_origin(kind) is Literal for choice in get_args(kind)]


def _is_quoted(text: str) -> bool:
    return len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]


def _tree(text: str, annotation: Any, path: str) -> ast.expr:
    """The syntax tree of a text of bounded size."""
    if len(text) > LONGEST:
        raise UserError(f"{path}: the value has {len(text):,} characters; at most {LONGEST:,} are read")
    depth = deepest = 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        deepest = max(deepest, depth)
    if deepest > DEEPEST:
        raise UserError(f"{path}: the value has {deepest} brackets within brackets; at most {DEEPEST} are read")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about odd escapes in text
            return ast.parse(_with_dots(text), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        _refuse(text, annotation, path)


def _with_dots(text: str) -> str:
    """The text with `MODULE:NAME` written as `MODULE.NAME`, except within quotes, so that Python can parse it."""
    letters, quote = [], ""
    for letter in text:
        if letter in "'\"" and quote in ("", letter):
            quote = "" if quote else letter
        letters.append("." if letter == ":" and not quote else letter)
    return "".join(letters)


def _read(node: ast.expr, annotation: Any, path: str, text: str = "") -> Any:
    for choice in alternatives(annotation):
        if _matches(node, choice):
            return _read_as(node, choice, path, annotation)
    return _refuse(text or source_of(node), annotation, path)


def _matches(node: ast.expr, kind: Any) -> bool:
    """Whether a node has a form that the annotation accepts."""
    if get_origin(kind) is Literal:
        return word_value(node) in get_args(kind)
    if get_origin(kind) is tuple:
        kinds = get_args(kind)
        items = items_of(node)
        if kinds[-1] is Ellipsis:
            return all(any(_matches(item, one) for one in alternatives(kinds[0])) for item in items)
        return len(items) == len(kinds)
    if kind is str:
        return isinstance(word_value(node), str)
    if kind in _PLAIN:
        return type(plain_value(node)) in ((int, float) if kind is float else (kind,))
    return _is_part(node) or kind is Any or _part_from(node, kind) is not None


def _is_part(node: ast.expr) -> bool:
    return isinstance(node, ast.Call | ast.Name | ast.Attribute) and plain_value(node) is NOTHING


def _part_from(node: ast.expr, kind: Any) -> ast.Call | None:
    """The call of the part that a number stands for, or None."""
    if not isinstance(kind, type) or type(plain_value(node)) not in (int, float):
        return None
    name = part_from_number(kind)
    return ast.Call(ast.Name(name), [node], []) if name else None


def _read_as(node: ast.expr, kind: Any, path: str, annotation: Any) -> Any:
    if get_origin(kind) is tuple:
        arguments, items = get_args(kind), items_of(node)
        kinds = arguments[:1] * len(items) if arguments[-1] is Ellipsis else arguments
        pairs = enumerate(zip(items, kinds, strict=True))
        return tuple(_read(item, each, f"{path}.{number}") for number, (item, each) in pairs)
    if get_origin(kind) is Literal or kind is str:
        return word_value(node)
    if kind in _PLAIN:
        plain: Any = plain_value(node)
        if isinstance(plain, int) and abs(plain) > LARGEST:
            raise UserError(f"{path}: {str(plain)[:20]}… does not fit in 64 bits")
        return float(plain) if kind is float else plain
    part = node if _is_part(node) else _part_from(node, kind)
    return plain_value(node) if part is None else _part(part, annotation, path)


def _part(node: ast.expr, annotation: Any, path: str) -> Any:
    """The part that a call stands for, or the name of a part without a call."""
    call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
    kind = find_part(_name(call.func, annotation, path), path, lambda: describe(annotation))
    if not any(conforms(kind, one) for one in alternatives(annotation) if isinstance(one, type) or one is Any):
        raise UserError(
            f"{path}: expected {describe(annotation)}, found the part {kind.__name__}{shortfall(kind, annotation)}"
        )
    by_name = {f.name: f for f in fields(kind) if f.init}
    arguments = _arguments(call, kind, by_name, path)
    required = [n for n, f in by_name.items() if f.default is MISSING and f.default_factory is MISSING]
    missing = [n for n in required if n not in arguments]
    if missing:
        raise UserError(f"{path}: {kind.__name__} needs {' and '.join(missing)}")
    hints = get_type_hints(kind)
    values = {name: _read(inside, hints[name], f"{path}.{name}") for name, inside in arguments.items()}
    try:
        return kind(**values)
    except UserError as problem:
        raise UserError(f"{path}: {problem}") from problem


def _arguments(call: ast.Call, kind: type, by_name: Mapping[str, Any], path: str) -> dict[str, ast.expr]:
    """The argument nodes of a call, by field name."""
    if len(call.args) > len(by_name):
        raise UserError(f"{path}: {kind.__name__} takes {quantity(len(by_name), 'setting')}, found {len(call.args)}")
    arguments = dict(zip(by_name, call.args, strict=False))
    for word in call.keywords:
        name = word.arg or "**"
        if name not in by_name:
            hint = did_you_mean(name, by_name, f"; its fields are {', '.join(by_name) or 'none'}")
            raise UserError(f"{path}: {kind.__name__} has no field {name!r}{hint}")
        if name in arguments:
            raise UserError(f"{path}: {kind.__name__} has {name} twice")
        arguments[name] = word.value
    return arguments


def _name(node: ast.expr, annotation: Any, path: str) -> str:
    """The name of a part, or MODULE:NAME if the node names its module."""
    names: list[str] = []
    at = node
    while isinstance(at, ast.Attribute):
        names.insert(0, at.attr)
        at = at.value
    if not isinstance(at, ast.Name) or len(names) > 9:
        _refuse(source_of(node), annotation, path)
    *module, name = (at.id, *names)
    return f"{'.'.join(module)}:{name}" if module else name


def _refuse(text: str, annotation: Any, path: str) -> NoReturn:
    hint = did_you_mean(text, [str(choice) for choice in _choices(annotation) if choice != ""])
    words = shorten(" ".join(text.split())) or "nothing"
    raise UserError(f"{path}: expected {describe(annotation)}, found {words}{hint}")
