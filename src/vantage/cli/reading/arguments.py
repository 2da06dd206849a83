"""Read the words of a command line into flat dataclasses."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, fields
from itertools import takewhile
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from vantage.cli.printing.console import first_sentence
from vantage.cli.reading.old_names import suggest_option
from vantage.cli.reading.parser import Option, Word, parser_of, without_none
from vantage.composition.expression import describe, read_value, takes_several
from vantage.composition.fields import field_help
from vantage.errors import UserError

__all__ = ["Command", "Repeated", "Word", "read", "wants_help"]


Repeated = Annotated[tuple[str, ...], Word("PATH=VALUE", repeated=True)]
"""An option that may be repeated."""


@dataclass(frozen=True)
class Command:
    """A verb, as shown in help and messages."""

    name: str
    """Its name, such as "evaluate knn"."""

    about: str
    """What it does."""

    settable: Callable[[], Iterable[str]] = tuple
    """The paths that `--set` may set, for suggestions."""


def wants_help(words: Sequence[str]) -> bool:
    """Whether the words contain the flag for help."""
    return "--help" in words or "-h" in words


def read(command: Command, words: Sequence[str], *groups: Any) -> tuple[Any, ...]:
    """One value for each group of options. A group is a dataclass of plain values, or a part whose fields are the
    defaults.

    Help shows the first sentence of a part's fields. Parts inside a part are not options; `--set` reaches them. For
    `--help`, prints help and raises `SystemExit(0)`. Raises `UserError` for an unknown flag (with a suggestion), an
    invalid value, and a missing required option.
    """
    options: list[list[Option]] = []
    by_flag: dict[str, Option] = {}
    for group in groups:  # if two options share a name, the flag sets the first; --set reaches the other
        options.append([option for option in _options(group) if option.flag not in by_flag])
        by_flag |= {option.flag: option for option in options[-1]}
    parser = parser_of(command.name, command.about, tuple(by_flag.values()))
    if wants_help(words):
        parser.print_help()
        raise SystemExit(0)
    words = [_plain(word) for word in words]
    _check_flags(command, by_flag, words)
    texts, rest = parser.parse_known_intermixed_args(words)
    if rest:
        raise UserError(f"{command.name} has no use for {rest[0]!r}: {_stray(rest[0], words, by_flag)}")
    positionals_first = sorted(by_flag.values(), key=lambda option: not option.word.positional)
    values = {option.name: _value(command, option, vars(texts)[option.name]) for option in positionals_first}
    pairs = zip(groups, options, strict=True)
    return tuple(_build(group, {option.name: values[option.name] for option in own}) for group, own in pairs)


def _options(group: Any) -> list[Option]:
    kind = group if isinstance(group, type) else type(group)
    hints, words = get_type_hints(kind, include_extras=True), field_help(kind)
    options = []
    for f in fields(kind):
        annotation, word = hints[f.name], Word()
        if get_origin(annotation) is Annotated:
            annotation, word = get_args(annotation)
        default = f.default if group is kind else getattr(group, f.name)
        if f.init and _is_plain(annotation):
            text = words.get(f.name, "")
            options.append(Option(f.name, annotation, default, text if group is kind else first_sentence(text), word))
    return options


def _is_plain(annotation: Any) -> bool:
    inside = [kind for kind in get_args(annotation) if isinstance(kind, type) or get_args(kind)]
    return (
        all(map(_is_plain, inside))
        if inside
        else annotation in (bool, int, float, str, type(None)) or get_args(annotation) != ()
    )


def _value(command: Command, option: Option, words: Any) -> Any:
    """Convert an option's words to its value."""
    if words is None or (option.word.positional and not words):
        if option.default is MISSING:
            name = option.word.metavar if option.word.positional else option.flag
            raise UserError(f"{command.name} needs {name}: {option.help[:1].lower()}{option.help[1:]}")
        return option.default
    if option.annotation is bool:
        return words
    if option.word.repeated:
        return tuple(words)
    if words == ():
        raise UserError(f"{option.flag}: expected {describe(without_none(option.annotation))}, found nothing")
    words = list(words) if isinstance(words, list) else [words]
    if takes_several(option.annotation) and get_args(option.annotation)[0] is str:
        return tuple(words)
    text = words[0] if len(words) == 1 else f"({', '.join(words)})"
    try:
        return read_value(text, without_none(option.annotation), option.flag)
    except UserError as problem:
        raise UserError(f"{problem} (see vantage {command.name} --help)") from None


def _build(group: Any, values: dict[str, Any]) -> Any:
    if isinstance(group, type):
        return group(**values)
    return type(group)(**{f.name: values.get(f.name, getattr(group, f.name)) for f in fields(group) if f.init})


def _plain(word: str) -> str:
    """The word, with the underscores in its flag replaced by dashes."""
    name, equals, value = word.partition("=")
    return f"{name.replace('_', '-')}{equals}{value}" if word.startswith("--") else word


def _check_flags(command: Command, options: dict[str, Option], words: Sequence[str]) -> None:
    for position, word in enumerate(words):
        flag, equals, value = word.partition("=")
        bare = flag.replace("--no-", "--", 1)
        if not flag.startswith("--") or flag in options or (bare in options and options[bare].annotation is bool):
            continue
        after = [value] if equals else _values_after(words, position)
        flags = [name for name, option in options.items() if not option.word.positional]
        suggestion = suggest_option(flag, after, flags, command.settable, command.name)
        raise UserError(f"{command.name} has no option {flag}{suggestion}")


def _values_after(words: Sequence[str], position: int) -> list[str]:
    return list(takewhile(lambda word: not word.startswith("--"), words[position + 1 :]))


def _stray(word: str, words: Sequence[str], options: dict[str, Option]) -> str:
    """Explain why no option accepts this word."""
    position = list(words).index(word)
    flag = words[position - 1].partition("=")[0] if position else ""
    before = words[position - 2] if position > 1 else ""
    if flag in options and options[flag].annotation is bool:
        return f"{flag} takes no value"
    if before in options and not takes_several(options[before].annotation):
        return f"{before} takes one value"
    flags = (option.flag for option in options.values() if option.default is MISSING and not option.word.positional)
    missing = next((each for each in flags if not any(one.partition("=")[0] == each for one in words)), "")
    return f"did you mean {missing} {word}?" if missing else "options are written --name value"
