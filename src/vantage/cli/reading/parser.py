"""Define the options of a verb for argparse, and show them in help. No other module uses argparse."""

import argparse
import re
import textwrap
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from typing import Any, NoReturn, Union, get_args, get_origin

from vantage.cli.printing.console import columns, paragraphs
from vantage.composition.expression import describe, takes_several
from vantage.errors import UserError

__all__ = ["Option", "Word", "parser_of", "without_none"]


@dataclass(frozen=True)
class Word:
    """How an option is written on the command line; used in its annotation."""

    metavar: str = ""
    """Name of its value in help."""

    positional: bool = False
    """Whether it is positional, without a flag."""

    repeated: bool = False
    """Whether its flag may be repeated, each time with one value."""


@dataclass(frozen=True)
class Option:
    """One field of a group of options."""

    name: str
    """The field's name."""

    annotation: Any
    """Type of its value."""

    default: Any
    """Its value if the option is omitted; `dataclasses.MISSING` if it is required."""

    help: str
    """What it means."""

    word: Word
    """How it is written."""

    @property
    def flag(self) -> str:
        """Its flag, such as `--batch-size`."""
        return f"--{self.name.replace('_', '-')}"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise `UserError` instead of exiting, as argparse would."""
        message = message.removeprefix("argument ").replace("ignored explicit argument", "takes no value, found")
        raise UserError(f"{message} (see {self.prog} --help)")


def parser_of(name: str, about: str, options: Sequence[Option]) -> argparse.ArgumentParser:
    """The parser of a verb, with positional words first. It returns the words of each option by the option's name."""
    parser = _Parser(f"vantage {name}", add_help=False, allow_abbrev=False, formatter_class=_formatter)
    parser.description = paragraphs(about)
    every = sorted(options, key=lambda option: not option.word.positional)
    positions = [_position(option) for option in every if option.word.positional]
    parser.usage = " ".join(["%(prog)s", *positions, "[--option value …]"])
    section = parser.add_argument_group("options")
    for option in every:
        _add(section, option)
    return parser


def _position(option: Option) -> str:
    """How usage shows a positional word."""
    word = option.word.metavar
    if takes_several(option.annotation):
        return f"{word} [{word} …]" if option.default is MISSING else f"[{word} …]"
    return word if option.default is MISSING else f"[{word}]"


def _formatter(prog: str) -> argparse.HelpFormatter:
    return _Formatter(prog, max_help_position=24, width=columns())


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the description's line breaks, names with hyphens and defaults whole, and shows values without brackets."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        whole = re.sub("(default:|--set) ", "\\1\xa0", text)
        return [line.replace("\xa0", " ") for line in textwrap.wrap(whole, width, break_on_hyphens=False)]

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        return f"{action.metavar}{' …' * (action.nargs == '*')}"

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if isinstance(action, argparse.BooleanOptionalAction):
            return action.option_strings[0].replace("--", "--[no-]", 1)
        return super()._format_action_invocation(action)


def _add(section: Any, option: Option) -> None:
    plain = f"{option.help}{_default(option)}".replace("%", "%%")
    several = takes_several(option.annotation)
    if option.word.positional:
        section.add_argument(option.name, nargs="*" if several else "?", metavar=option.word.metavar, help=plain)
    elif option.annotation is bool:
        section.add_argument(option.flag, dest=option.name, action=argparse.BooleanOptionalAction, help=plain)
    else:
        metavar = option.word.metavar or _metavar(option.annotation)
        how: dict[str, Any] = {"nargs": "*"} if several else {"nargs": "?", "const": ()}
        how = {"action": "append"} if option.word.repeated else how
        section.add_argument(option.flag, dest=option.name, metavar=metavar, help=plain, **how)


def _metavar(annotation: Any) -> str:
    words = describe(annotation := without_none(annotation))
    if get_origin(annotation) is not None and "Literal" in str(annotation):
        return words.replace(" or ", "|").replace(", ", "|") if len(words) < 24 else "NAME"
    return "N" if "number" in words else "NAME" if annotation is str else "VALUE"


def without_none(annotation: Any) -> Any:
    """The annotation without None, which means an omitted option and cannot be written."""
    inside = [kind for kind in get_args(annotation) if kind is not type(None)]
    return Union[tuple(inside)] if type(None) in get_args(annotation) else annotation  # noqa: UP007


def _default(option: Option) -> str:
    if option.default in (None, "", (), MISSING) or option.default is False:
        return ""
    default = "yes" if option.default is True else option.default
    values = default if isinstance(default, tuple) else (default,)
    text = " ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in values)
    return f" (default: {text})"
