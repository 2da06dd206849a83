"""Protocols by the names that a person writes: with their defaults, or with the settings of a result."""

import inspect
import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError

__all__ = ["described", "protocol_named", "protocols"]


def protocols(labeled_only: bool = False) -> dict[str, type]:
    """Every protocol by its name on the command line; linear is short for linear-moco. `labeled_only` leaves out those
    of images with masks or boxes."""
    from vantage.evaluate import PROTOCOLS, LinearMoCo, Segmentation
    from vantage.evaluate.protocols.detection import DETECTORS

    known = {kind.name: kind for kind in PROTOCOLS} | {"linear": LinearMoCo}
    return known if labeled_only else known | {kind.name: kind for kind in (Segmentation, *DETECTORS)}


def described(kind: object) -> str:
    """What a protocol is, as its docstring has it, in the words of the command line."""
    words = inspect.getdoc(kind) or ""
    for name, each in protocols().items():
        if name == getattr(each, "name", name):
            words = words.replace(f"`{each.__name__}`", name)
    return words.replace("Raises `UserError` for ", "Refuses ").replace("Raises `UserError` where ", "Refuses where ")


def protocol_named(word: str, labeled_only: bool = False) -> Any:
    """The protocol of this name with its defaults; one of your own for MODULE:NAME; or, for a file FILE.json that
    `vantage evaluate` wrote, the protocol and the settings that the result has. Raises `UserError` for any other."""
    known = protocols(labeled_only)
    if word.endswith(".json"):
        return _of_result(Path(word), known)
    if word in known:
        return known[word]()
    if ":" in word:
        return _own(word)
    if word == "transfer":
        raise UserError(
            "transfer is no protocol: it judges one run on many sets, by vantage evaluate transfer; to compare runs on"
            f" a set, name the protocol that judges it (protocols: {', '.join(known)})"
        )
    if word in protocols():
        raise UserError(
            f"{word} is judged on images of another kind, by vantage evaluate {word} and by vantage compare; here are"
            f" protocols of images with classes: {', '.join(known)}"
        )
    raise UserError(
        f"there is no protocol {word!r}{did_you_mean(word, known)} (protocols: {', '.join(known)}; MODULE:NAME of your"
        " own; or a result of vantage evaluate, FILE.json, for the settings it has)"
    )


def _own(word: str) -> Any:
    from vantage.composition.codec import allowed_part
    from vantage.composition.kinds import fits
    from vantage.composition.names import own_part
    from vantage.evaluate import EvaluationProtocol

    own = own_part(word)
    if own is None:
        raise UserError(f"{word!r} names no protocol: write MODULE:NAME")
    kind = allowed_part(*own, "protocol")
    if not fits(kind, EvaluationProtocol):
        raise UserError(
            f"{word} is no protocol: it needs a name, a version, and a call that takes an encoder, training images,"
            " test images and work"
        )
    return kind()


def _of_result(file: Path, known: Mapping[str, type]) -> Any:
    """Raises `UserError` for what is no result, or one of another version, and for settings that do not fit."""
    from vantage.composition.codec import decode
    from vantage.evaluate.result import current_settings

    try:
        record = json.loads(file.read_bytes())
        name, version, settings = record["protocol"], record["version"], current_settings(record)
    except OSError as problem:
        raise UserError(f"cannot read {file}: {problem.strerror or problem}") from problem
    except (ValueError, KeyError, TypeError) as problem:
        raise UserError(f"{file} is not a result of vantage evaluate: it holds no protocol with settings") from problem
    if name not in known:
        near = did_you_mean(str(name), known, f" (protocols: {', '.join(known)})")
        other = ", which does not judge by one labeled set" if name in protocols() else ""
        raise UserError(f"{file} is a result of {name!r}{other}{near}")
    kind: Any = known[name]
    if version != kind.version:
        raise UserError(
            f"{file} is a result of {name} version {version}, but this is version {kind.version}, whose settings may"
            " mean other things: name the protocol and give its settings by --set"
        )
    try:
        return decode(_with_kinds(settings, kind()), kind, path="settings")
    except UserError as problem:
        raise UserError(f"{file}: {problem}") from problem


def _with_kinds(settings: Mapping[str, Any], like: Any) -> dict[str, Any]:
    """Plain settings, with the kinds of a part and of the parts in it as `decode` wants them."""
    inside = {name: getattr(like, name, None) for name in settings}
    values = {
        name: _with_kinds(value, inside[name]) if is_dataclass(inside[name]) and isinstance(value, dict) else value
        for name, value in settings.items()
    }
    return {"part": type(like).__name__, **values}
