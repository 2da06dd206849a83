"""`PATH=VALUE` as people write it: sets any field of a composition to a value or a part.

The end of a path is enough: `crop.size` sets the size of every crop. `crop.scale.0` is the first number of a scale.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from vantage.composition.expression import read_value, takes_number
from vantage.composition.fields import Setting, replace_at, settings_in
from vantage.composition.names import RENAMED_FIELDS
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError

__all__ = ["assign", "read_assignments", "split_values"]

_EARLIER = {old: new for fields in RENAMED_FIELDS.values() for old, new in fields.items() if new is not None}
"""Current names of fields, by their names in earlier versions."""


def assign(value: Any, texts: Sequence[str], **limits: Any) -> Any:
    """The composition after all of these `PATH=VALUE`. Raises `UserError` as `read_assignments` does, and if a part
    rejects its new values."""
    return replace_at(value, read_assignments(value, texts, **limits))


def read_assignments(
    value: Any, texts: Sequence[str], may_set: Callable[[str], bool] = lambda path: True, name: str = ""
) -> dict[str, Any]:
    """New values by full path, from texts such as `branches.0.estimator=InfoNCE(0.1)`. They are read in order, so a
    later text may set a field of a part that an earlier one chose.

    `may_set` decides which paths may be set; `name` is what messages call the composition. Raises `UserError` for a
    path that does not exist, for a value that does not fit its field, and for a text of which later ones leave nothing.
    """
    changes: dict[str, Any] = {}
    still_set: list[tuple[str, set[str]]] = []  # what each text set that no later one has replaced
    for text in texts:
        path, equals, new = text.partition("=")
        path = path.strip()
        if not equals or not path:
            raise UserError(f"{text!r} sets nothing: write PATH=VALUE, such as branches.0.estimator.temperature=0.1")
        settings = {one.path: one for one in settings_in(value, changes=changes) if may_set(one.path)}
        targets = _targets(settings, path, name)
        full_paths = {_full(*target) for target in targets}
        still_set = [(each, _left(each, of_each, path, full_paths)) for each, of_each in still_set]
        still_set.append((path, full_paths))
        for full, change in _changes(targets, new, changes).items():
            outside = {one: other for one, other in changes.items() if not one.startswith(f"{full}.")}
            changes = outside | {full: change}
    return changes


def _changes(targets: list[tuple[Setting, int | None]], text: str, earlier: Mapping[str, Any]) -> dict[str, Any]:
    """New values by full path, from the settings that a text sets, after the changes in `earlier`."""
    changes: dict[str, Any] = {}
    for setting, position in targets:
        try:
            new = _read(text, setting, position)
        except UserError as problem:
            others = [_full(other, at) for other, at in targets if other is not setting and _takes(text, other, at)]
            raise UserError(f"{problem}{f'; {others[0]} takes it: write the whole path' if others else ''}") from None
        above = next((one for one in earlier if setting.path.startswith(f"{one}.")), None)
        if above is None:
            changes[setting.path] = new
        else:
            below = setting.path.removeprefix(f"{above}.")
            changes[above] = replace_at(changes.get(above, earlier[above]), {below: new})
    return changes


def _full(setting: Setting, position: int | None) -> str:
    """The path of a setting, or of an element of its tuple."""
    return setting.path if position is None else f"{setting.path}.{position}"


def _takes(text: str, setting: Setting, position: int | None) -> bool:
    try:
        _read(text, setting, position)
    except UserError:
        return False
    return True


def _read(text: str, setting: Setting, position: int | None) -> Any:
    """The new value of a setting, or of a tuple with a new element at a position. If it is a number in place of a part,
    the error names a number of the part there."""
    if position is not None:
        kinds = get_args(setting.annotation)
        kind = kinds[0 if kinds[-1] is Ellipsis else position]
        element = read_value(text, kind, f"{setting.path}.{position}")
        return (*setting.value[:position], element, *setting.value[position + 1 :])
    try:
        return read_value(text, setting.annotation, setting.path)
    except UserError as problem:
        names = [name for name, value in getattr(setting.value, "__dict__", {}).items() if type(value) in (int, float)]
        if takes_number(setting.annotation) or not _is_number(text) or not names:
            raise
        own = f"{setting.path}.{names[0]}={text.strip()}"
        raise UserError(f"{problem}; for a number of the {type(setting.value).__name__} there, write {own}") from None


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def split_values(text: str) -> tuple[str, ...]:
    """The values of `VALUE,VALUE,…`. Commas within brackets and quotes do not separate."""
    values, depth, start, quote = [], 0, 0, ""
    for position, letter in enumerate(f"{text},"):
        if letter in "'\"" and quote in ("", letter):
            quote = "" if quote else letter
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0 and not quote:
            values.append(text[start:position].strip())
            start = position + 1
    return tuple(value for value in values if value)


def _left(earlier: str, paths: set[str], later: str, replaced: set[str]) -> set[str]:
    """The full paths of an earlier text that a later one does not replace. Raises `UserError` if it replaces all."""
    left = {path for path in paths if not any(f"{path}.".startswith(f"{full}.") for full in replaced)}
    if left:
        return left
    if paths == replaced:
        raise UserError(f"{earlier} is set twice{'' if earlier == later else f', also as {later}'}: leave one out")
    raise UserError(f"{earlier} is set, but {later} after it replaces it: set {later} first, or leave one out")


def _targets(settings: Mapping[str, Setting], path: str, name: str) -> list[tuple[Setting, int | None]]:
    """The settings at a path, or at the paths that end in it, each with a position in a tuple if the path names one.
    Dashes are read as underscores; the message for a path that does not exist has it as it was typed."""
    typed, path = path, path.replace("-", "_")
    if path in settings:
        return [(settings[path], None)]
    if ends := [setting for full, setting in settings.items() if full.endswith(f".{path}")]:
        return [(setting, None) for setting in ends]
    above, _, last = path.rpartition(".")
    if last.isdecimal() and above:
        rows = [setting for full, setting in settings.items() if full == above or full.endswith(f".{above}")]
        rows = [setting for setting in rows if isinstance(setting.value, tuple) and int(last) < len(setting.value)]
        if rows:
            return [(setting, int(last)) for setting in rows]
    raise UserError(f"{name or 'it'} has no field {typed!r}{_suggestion(path, settings)}")


def _suggestion(path: str, settings: Mapping[str, Setting]) -> str:
    """A suggestion for a path that does not exist: the path with current field names, else the most similar path."""
    present = ".".join(_EARLIER.get(part, part) for part in path.split("."))
    if present != path and any(full == present or full.endswith(f".{present}") for full in settings):
        return f"; did you mean {present}?"
    return did_you_mean(path, settings)
