"""Protocols by their command-line names: with their defaults, or with the settings of a saved result."""

import inspect
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

from vantage.composition.codec import allowed_names, allowed_part, decode
from vantage.composition.conformance import conforms
from vantage.composition.names import external_part, name_of
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError
from vantage.storage.strangers import check_file

__all__ = ["protocol_help", "protocol_named", "protocols"]


def protocols(labeled_only: bool = False) -> dict[str, type]:
    """Every protocol by its name; linear is short for linear-moco. `labeled_only` leaves out protocols that need masks
    or boxes."""
    from vantage.evaluate import PROTOCOLS, LinearMoCo, Segmentation
    from vantage.evaluate.protocols.detection import DETECTORS

    kinds = {kind.name: kind for kind in PROTOCOLS} | {"linear": LinearMoCo}
    return kinds if labeled_only else kinds | {kind.name: kind for kind in (Segmentation, *DETECTORS)}


def protocol_help(kind: object) -> str:
    """The docstring of a protocol, with the names used on the command line."""
    words = inspect.getdoc(kind) or ""
    for name, each in protocols().items():
        if name == getattr(each, "name", name):
            words = words.replace(f"`{each.__name__}`", name)
    return words.replace("Raises `UserError` for ", "It is an error to give ").replace(
        "Raises `UserError` if ", "It is an error if "
    )


def protocol_named(word: str, labeled_only: bool = False) -> Any:
    """The protocol of this name with its defaults; for MODULE:NAME, the user's own; for a FILE.json written by
    `vantage evaluate`, the protocol and the settings of that result. Raises `UserError` for any other word."""
    kinds = protocols(labeled_only)
    if word.endswith(".json"):
        return _of_result(Path(word), kinds)
    if word in kinds:
        return kinds[word]()
    if ":" in word:
        return _own(word)
    if word == "transfer":
        raise UserError(
            "transfer is not a protocol: vantage evaluate transfer evaluates one run on many sets; to compare runs on a"
            f" set, name a protocol (protocols: {', '.join(kinds)})"
        )
    if word in protocols():
        raise UserError(
            f"{word} needs images with masks or boxes, as in vantage evaluate {word} and vantage compare; protocols for"
            f" images with classes are {', '.join(kinds)}"
        )
    raise UserError(
        f"there is no protocol {word!r}{did_you_mean(word, kinds)} (protocols: {', '.join(kinds)}; MODULE:NAME of your"
        " own; or a result of vantage evaluate, FILE.json, whose settings are used)"
    )


def _own(word: str) -> Any:
    from vantage.evaluate import EvaluationProtocol

    own = external_part(word)
    if own is None:
        raise UserError(f"{word!r} is not the name of a protocol: write MODULE:NAME")
    kind = allowed_part(*own, "protocol")
    if not conforms(kind, EvaluationProtocol):
        raise UserError(
            f"{word} is not a protocol: a protocol has a name, a version, and a call that takes an encoder, training"
            " images, test images and work"
        )
    if needed := [f.name for f in fields(kind) if f.init and f.default is MISSING and f.default_factory is MISSING]:
        raise UserError(f"{word}: give {', '.join(needed)} a default, since the command line sets it by an option")
    return kind()


def _own_by_name() -> dict[str, type]:
    """The user's own protocols in the imported modules, by their names."""
    from vantage.evaluate import EvaluationProtocol

    names = [word.partition(":") for word in allowed_names().values()]
    kinds = [allowed_part(module, name, "protocol") for module, _, name in names]
    return {getattr(kind, "name", ""): kind for kind in kinds if conforms(kind, EvaluationProtocol)}


def _of_result(file: Path, kinds: Mapping[str, type]) -> Any:
    """Raises `UserError` if the file is not a result, if it has another version, or if its settings do not fit."""
    from vantage.facts.results import current_settings

    kinds = {**_own_by_name(), **kinds}
    check_file(file)
    try:
        record = json.loads(file.read_bytes())
        name, version, settings = str(record["protocol"]), record["version"], current_settings(record)
    except OSError as problem:
        raise UserError(f"cannot read {file}: {problem.strerror or problem}") from problem
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise UserError(f"{file} is not a result of vantage evaluate: it has no protocol with settings") from problem
    if name not in kinds:
        near = did_you_mean(name, kinds, f" (protocols: {', '.join(kinds)})")
        other = ", which does not use one labeled set" if name in protocols() else ""
        raise UserError(f"{file} is a result of {name!r}{other}{near}")
    kind: Any = kinds[name]
    if version != kind.version:
        raise UserError(
            f"{file} is a result of {name} version {version}, but this is version {kind.version}, whose settings may"
            " differ in meaning: name the protocol and give its settings with --set"
        )
    try:
        return decode(_with_kinds(settings, kind()), kind, path="settings")
    except UserError as problem:
        raise UserError(f"{file}: {problem}") from problem


def _with_kinds(settings: Mapping[str, Any], like: Any) -> dict[str, Any]:
    """Plain settings, with the name of each part added for `decode`."""
    inside = {name: getattr(like, name, None) for name in settings}
    values = {
        name: _with_kinds(value, inside[name]) if is_dataclass(inside[name]) and isinstance(value, dict) else value
        for name, value in settings.items()
    }
    return {"part": name_of(type(like)), **values}
