"""Protocols as the words of a verb name them: with their defaults, or with the settings of a result."""

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from vantage.composition.fields import Leaf, leaves, replaced
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError

__all__ = [
    "any_protocols",
    "first_said",
    "of_options",
    "protocol_named",
    "protocols",
    "settings_of",
    "spoken",
    "with_settings",
]


def spoken(kind: object) -> str:
    """What a protocol is, as its docstring has it, in the words of the command line."""
    words = inspect.getdoc(kind) or ""
    for name, each in protocols().items():
        if name == getattr(each, "name", name):
            words = words.replace(f"`{each.__name__}`", name)
    return words.replace("Raises `UserError` for ", "Refuses ").replace("Raises `UserError` where ", "Refuses where ")


def protocols() -> dict[str, type]:
    """Every protocol of one labeled set by the name it has on the command line; linear is short for linear-moco."""
    from vantage.evaluate import PROTOCOLS, LinearMoCo

    return {kind.name: kind for kind in PROTOCOLS} | {"linear": LinearMoCo}


def any_protocols() -> dict[str, type]:
    """Every protocol, those of images with masks or boxes too."""
    from vantage.evaluate import Segmentation
    from vantage.evaluate.protocols.detection import DETECTORS

    return protocols() | {kind.name: kind for kind in (Segmentation, *DETECTORS)}


def protocol_named(word: str, known: Mapping[str, type] | None = None) -> Any:
    """The protocol of this name with its defaults, or that of the file FILE.json which `vantage evaluate` wrote, with
    the settings that the result has; one of those known, which are those of one labeled set unless told."""
    known = known or protocols()
    if word.endswith(".json"):
        return _of_result(Path(word), known)
    if word in known:
        return known[word]()
    if word == "transfer":
        raise UserError(
            "transfer is no protocol: it judges one run on many sets, by vantage evaluate transfer; to compare runs on"
            f" a set, name the protocol that judges it (protocols: {', '.join(known)})"
        )
    if word in any_protocols():
        raise UserError(
            f"{word} is judged on images of another kind, by vantage evaluate {word} and by vantage compare; here are"
            f" protocols of images with classes: {', '.join(known)}"
        )
    raise UserError(
        f"there is no protocol {word!r}{did_you_mean(word, known)} (protocols: {', '.join(known)}; or a result of"
        " vantage evaluate, FILE.json, for the settings it has)"
    )


def settings_of(name: str, protocol: Any) -> tuple[Leaf, ...]:
    """The fields of a protocol as options that begin with its name, such as --linear-cached.iterations."""
    return tuple(leaves(protocol, name.replace("-", "_")))


def with_settings(name: str, protocol: Any, values: Mapping[str, Any]) -> Any:
    """The protocol with the values that these options were given."""
    said = {leaf.path.partition(".")[2]: values[leaf.path] for leaf in settings_of(name, protocol)}
    return replaced(protocol, said)


def of_options(words: str, name: str, protocol: Any) -> str:
    """A protocol's sentence with its fields named as the options that `settings_of` has: --knn.k in place of --k."""
    flags = {leaf.path.replace("_", "-") for leaf in leaves(protocol)}
    return re.sub(
        r"(?<![\w-])--([a-z][a-z0-9-]*(?:\.[a-z0-9-]+)*)",
        lambda found: f"--{name}.{found[1]}" if found[1] in flags else found[0],
        words,
    )


def first_said(flag: str, words: Sequence[str], otherwise: str) -> str:
    """The value that words give to a flag on which it depends what other words mean."""
    for place, word in enumerate(words):
        if word.startswith(f"{flag}="):
            return word.removeprefix(f"{flag}=")
        if word == flag and place + 1 < len(words):
            return words[place + 1]
    return otherwise


def _of_result(file: Path, known: Mapping[str, type]) -> Any:
    """Raises `UserError` for what is no result, or one of another version, and for settings that do not fit."""
    from vantage.composition.codec import decode

    try:
        record = json.loads(file.read_bytes())
        name, version, settings = record["protocol"], record["version"], dict(record["settings"])
    except OSError as problem:
        raise UserError(f"cannot read {file}: {problem.strerror or problem}") from problem
    except (ValueError, KeyError, TypeError) as problem:
        raise UserError(f"{file} is not a result of vantage evaluate: it tells no protocol with settings") from problem
    if name not in known:
        near = did_you_mean(str(name), known, f" (protocols: {', '.join(known)})")
        kind = ", which does not judge by one labeled set" if name in any_protocols() else ""
        raise UserError(f"{file} is a result of {name!r}{kind}{near}")
    kind: Any = known[name]
    if version != kind.version:
        raise UserError(
            f"{file} is a result of {name} version {version}, but this is version {kind.version}, whose settings may"
            " mean other things: name the protocol and give its settings as options"
        )
    try:
        return decode(_with_kinds(settings, kind()), kind, path="settings")
    except UserError as problem:
        raise UserError(f"{file}: {problem}") from problem


def _with_kinds(settings: Mapping[str, Any], like: Any) -> dict[str, Any]:
    """Plain settings, with the kinds of a part and of the parts in it as `decode` wants them."""
    inside = {name: getattr(like, name, None) for name in settings}
    told = {
        name: _with_kinds(value, inside[name]) if is_dataclass(inside[name]) and isinstance(value, dict) else value
        for name, value in settings.items()
    }
    return {"part": f"{type(like).__module__}:{type(like).__qualname__}", **told}
