"""Protocols as the words of a verb name them: with their defaults, or with the settings of a result."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vantage.cli.fields import Leaf, leaves
from vantage.cli.suggestions import did_you_mean
from vantage.errors import UserError

__all__ = ["first_said", "protocol_named", "protocols", "settings_of", "with_settings"]


def protocols() -> dict[str, type]:
    """Every protocol of one labelled set by the name it has on the command line; linear is short for linear-moco."""
    from vantage.evaluate import PROTOCOLS, LinearMoCo

    return {kind.name: kind for kind in PROTOCOLS} | {"linear": LinearMoCo}


_OF_THEIR_OWN = (
    "detection", "detection-c4", "instances", "instances-c4", "keypoints", "segmentation", "transfer",
)  # fmt: skip
"""Verbs of `vantage evaluate` whose images have boxes, masks or several places."""


def protocol_named(word: str) -> Any:
    """The protocol of this name with its defaults, or that of the file FILE.json which `vantage evaluate` wrote, with
    the settings that the result has."""
    if word.endswith(".json"):
        return _of_result(Path(word))
    known = protocols()
    if word in _OF_THEIR_OWN:
        raise UserError(
            f"{word} is judged on images of another kind, by vantage evaluate {word}; a table has protocols of images"
            f" with classes: {', '.join(known)}"
        )
    if word not in known:
        near = did_you_mean(word, known)
        raise UserError(
            f"there is no protocol {word!r}{near} (protocols: {', '.join(known)}; or a result of vantage evaluate,"
            " FILE.json, for the settings it has)"
        )
    return known[word]()


def settings_of(name: str, protocol: Any) -> tuple[Leaf, ...]:
    """The fields of a protocol as options that begin with its name, such as --linear-cached.iterations."""
    return tuple(leaves(protocol, name.replace("-", "_")))


def with_settings(name: str, protocol: Any, values: Mapping[str, Any]) -> Any:
    """The protocol with the values that these options were given."""
    said = {leaf.path.partition(".")[2]: values[leaf.path] for leaf in settings_of(name, protocol)}
    return replace(protocol, **said)


def first_said(flag: str, words: Sequence[str], otherwise: str) -> str:
    """The value that words give to a flag on which it depends what other words mean."""
    for place, word in enumerate(words):
        if word.startswith(f"{flag}="):
            return word.removeprefix(f"{flag}=")
        if word == flag and place + 1 < len(words):
            return words[place + 1]
    return otherwise


def _of_result(file: Path) -> Any:
    """Raises `UserError` for what is no result, or one of another version, and for settings that do not fit."""
    from vantage.settings import decode

    try:
        record = json.loads(file.read_bytes())
        name, version, settings = record["protocol"], record["version"], dict(record["settings"])
    except OSError as problem:
        raise UserError(f"cannot read {file}: {problem.strerror or problem}") from problem
    except (ValueError, KeyError, TypeError) as problem:
        raise UserError(f"{file} is not a result of vantage evaluate: it tells no protocol with settings") from problem
    known = protocols()
    if name not in known:
        near = did_you_mean(str(name), known, f" (protocols: {', '.join(known)})")
        raise UserError(f"{file} is a result of {name!r}, which does not judge by one labelled set{near}")
    kind: Any = known[name]
    if version != kind.version:
        raise UserError(
            f"{file} is a result of {name} version {version}, but this is version {kind.version}, whose settings may"
            " mean other things: name the protocol and give its settings as options"
        )
    try:
        return decode({"part": f"{kind.__module__}:{kind.__qualname__}", **settings}, kind, path="settings")
    except UserError as problem:
        raise UserError(f"{file}: {problem}") from problem
