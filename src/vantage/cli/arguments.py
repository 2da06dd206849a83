"""Words of the command line to typed values, by tyro; no other module knows it."""

import contextlib
import inspect
import io
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import tyro
from tyro.constructors import ConstructorRegistry, StructConstructorSpec, StructFieldSpec, StructTypeInfo

from vantage.cli.console import columns
from vantage.cli.values import misfit, takes_several
from vantage.composition.fields import REQUIRED, Leaf
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError

__all__ = ["EVERYWHERE", "Command", "Parsed", "parse", "wants_help"]

EVERYWHERE = ("--quiet", "--import", "--help")
"""Flags that every verb knows."""


@dataclass(frozen=True)
class Command:
    """What is being read, as help and messages name it."""

    name: str
    """Such as "vantage pretrain moco_v2"."""

    about: str
    """What it does."""

    headings: Mapping[str, str]
    """Words over the fields below a path."""

    @property
    def verb(self) -> str:
        """The name without the program's."""
        return self.name.partition(" ")[2]


@dataclass(frozen=True)
class Parsed:
    """Values of all fields, and which of them were written."""

    values: Mapping[str, Any]
    """Value by path."""

    asked: frozenset[str]
    """Paths of the fields that were written on the command line."""


def wants_help(words: Sequence[str]) -> bool:
    """Whether help is asked for."""
    return "--help" in words or "-h" in words


def parse(command: Command, known: Iterable[Leaf], words: Sequence[str], also: Iterable[str] = ()) -> Parsed:
    """Read words as fields. Prints help and raises `SystemExit(0)` where that is asked for.

    With flags in `also`, those and their values are left alone: another reading will see to them. Raises `UserError`
    for a flag that is neither known nor there, with what may have been meant; for a value that does not fit its field;
    for a field that must be given and is not.
    """
    known, also = tuple(known), frozenset(also)
    flags = {flag: leaf.path for leaf in known for flag in flags_of(leaf)}
    written = [_flag(word) for word in words if word.startswith("--")]
    if not wants_help(words):
        _check(command, known, flags, written, also)
    if wants_help(words):  # tyro would break its lines inside words
        for paragraph in inspect.cleandoc(command.about).split("\n\n"):
            print(textwrap.fill(" ".join(paragraph.split()), columns(), break_on_hyphens=False) + "\n")
    tree = _tree(known, command.headings)
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):
            values, rest = tyro.cli(
                _Tree,
                default=tree,
                prog=command.name,
                description="",
                args=[_plain(word, flags) for word in words],
                registry=_registry,
                return_unknown_args=True,
            )
    except SystemExit as end:
        if not end.code:
            raise
        found = next(_misfits(known, words), None) or _unboxed(told.getvalue())
        raise UserError(f"{found} (see {command.name} --help)") from None
    if rest and not also:
        raise UserError(f"{command.verb} does not know what {rest[0]!r} is for: {_stray(rest[0], words, flags, known)}")
    asked = frozenset(flags[flag] for flag in written if flag in flags)
    return Parsed({leaf.path: _at(values, leaf.path) for leaf in known}, asked)


def flags_of(leaf: Leaf) -> tuple[str, ...]:
    """The flags that set a field; a yes or no has one for each."""
    if leaf.positional:
        return ()
    above, dot, last = leaf.path.replace("_", "-").rpartition(".")
    off = (f"--{above}{dot}no-{last}",) if leaf.annotation is bool else ()
    return (f"--{above}{dot}{last}", *off, *leaf.aliases)


def _check(
    command: Command, known: Sequence[Leaf], flags: Mapping[str, str], written: Sequence[str], also: frozenset[str]
) -> None:
    for flag in written:
        if flag not in flags and flag not in also:
            hint = did_you_mean(flag, (*flags, *also, *EVERYWHERE), f"; see {command.name} --help")
            raise UserError(f"{command.verb} has no option {flag}{hint}")
    asked = {flags[flag] for flag in written if flag in flags}
    for leaf in known:
        if leaf.value is REQUIRED and not leaf.positional and leaf.path not in asked:
            raise UserError(f"{command.verb} needs --{leaf.path.replace('_', '-')}: {leaf.help}")


def _stray(word: str, words: Sequence[str], flags: Mapping[str, str], known: Iterable[Leaf]) -> str:
    """Why a word has no place."""
    flag = ""
    for one in words:
        name, equals, value = one.partition("=")
        flag = name if name.startswith("--") else flag
        if one == word or equals and value == word:
            break
    leaf = next((leaf for leaf in known if leaf.path == flags.get(_flag(flag))), None)
    if leaf is not None and leaf.annotation is bool:
        return f"{flag} is written alone, without a value"
    if leaf is not None and not takes_several(leaf.annotation):
        return f"{flag} takes one value"
    return "every option begins with --name"


def _misfits(known: Iterable[Leaf], words: Sequence[str]) -> Iterator[str]:
    """The flags whose values do not fit their fields."""
    flags = {flag: leaf for leaf in known for flag in flags_of(leaf) if leaf.annotation is not bool}
    starts = [place for place, word in enumerate(words) if word.startswith("--")]
    for start, end in zip(starts, [*starts[1:], len(words)], strict=True):
        flag, equals, value = words[start].partition("=")
        if _flag(flag) in flags:
            annotation = flags[_flag(flag)].annotation
            written = (
                [value] if equals else words[start + 1 : end if takes_several(annotation) else min(end, start + 2)]
            )
            if told := misfit(annotation, written):
                yield f"{' '.join((flag, *written))}: {told}"


def _flag(word: str) -> str:
    return word.partition("=")[0].replace("_", "-")


def _plain(word: str, flags: Mapping[str, str]) -> str:
    """The word with the spelling tyro knows: an alias may be written with underscores too."""
    return _flag(word) + word[len(_flag(word)) :] if word.startswith("--") and _flag(word) in flags else word


class _Tree:
    """Fields by name; some of them trees."""

    def __init__(self) -> None:
        self.fields: dict[str, StructFieldSpec | _Tree] = {}
        self.words = ""


_registry = ConstructorRegistry()


@_registry.struct_rule
def _rule(info: StructTypeInfo) -> StructConstructorSpec | None:
    """How tyro reads a tree. Its own narrowing of a protocol to the part in its place fails where the protocol has a
    property, and values must be known before parts are built, so that a part's refusal is told as it is."""
    if info.type is not _Tree:
        return None
    fields = [
        StructFieldSpec(name=name, type=_Tree, default=inside, helptext=inside.words or None)
        if isinstance(inside, _Tree)
        else inside
        for name, inside in info.default.fields.items()
    ]
    return StructConstructorSpec(instantiate=dict, fields=tuple(fields))


def _tree(known: Iterable[Leaf], words: Mapping[str, str]) -> _Tree:
    root = _Tree()
    for leaf in known:
        *above, last = leaf.path.split(".")
        node, path = root, ""
        for name in above:
            path = f"{path}.{name}" if path else name
            found = node.fields.setdefault(name, _Tree())
            assert isinstance(found, _Tree), f"{path} is a field and holds fields"
            node, node.words = found, words.get(path, "")
        kind: Any = Annotated[leaf.annotation, _words(leaf)]
        if leaf.positional:
            kind = Annotated[kind, tyro.conf.Positional]
        default = tyro.MISSING if leaf.value is REQUIRED else leaf.value
        node.fields[last] = StructFieldSpec(name=last, type=kind, default=default, helptext=leaf.help)
    return root


def _words(leaf: Leaf) -> Any:
    return tyro.conf.arg(
        aliases=list(leaf.aliases) or None,
        metavar=leaf.path.upper() if leaf.positional else None,
        help_behavior_hint="" if leaf.value == "" or leaf.value is REQUIRED and leaf.positional else None,
    )


def _at(values: Any, path: str) -> Any:
    for name in path.split("."):
        values = values[name]
    return values


def _unboxed(text: str) -> str:
    """What is told inside a box, as one line, up to the rule over its footnote."""
    lines = [line.strip("│ ") for line in text.splitlines() if line.startswith("│")]
    if not lines:  # where │ has no code, the box is a title over a rule of dashes
        lines = [re.sub("^-+$", "─", line.strip()) for line in text.splitlines()]
        lines = lines[lines.index("─") + 1 :] if "─" in lines else lines
    before = [line for line in lines[: next((n for n, line in enumerate(lines) if line.startswith("─")), None)] if line]
    return re.sub(r"\s+", " ", " ".join(before) or text).rstrip(".")
