"""Results of the parts of a long piece of work, one small file each, so that what is done is not done again."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vantage.errors import UserError
from vantage.storage.files import write_json

__all__ = ["Kept"]


class Kept:
    """Measures of rows and seeds in a folder, made under one set of settings."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Raises `UserError` where the folder holds results of other settings or images, or cannot be read."""
        self.folder, self.settings = folder, json.loads(json.dumps(settings))
        place = folder / "settings.json"
        if not place.exists():
            write_json(place, self.settings)
            return
        before = _read(place)
        if before != self.settings:
            raise UserError(
                f"{folder} holds results that were made otherwise ({_differing(before, self.settings)}):"
                " choose another --out, or ask for the same again"
            )

    def find(self, row: str, seed: int) -> dict[str, float] | None:
        """The measures of a row and seed, or None where they are not there yet."""
        place = self._place(row, seed)
        if not place.exists():
            return None
        found = _read(place).get("measures")
        if not isinstance(found, dict) or not all(isinstance(value, int | float) for value in found.values()):
            raise UserError(f"{place} is damaged: remove it, and it is made again")
        return {name: float(value) for name, value in found.items()}

    def keep(self, row: str, seed: int, measures: Mapping[str, float], seconds: float) -> None:
        """Write them, whole or not at all."""
        told = {"row": row, "seed": seed, "measures": dict(measures), "seconds": round(seconds, 1)}
        write_json(self._place(row, seed), told)

    def _place(self, row: str, seed: int) -> Path:
        words = "".join(letter if letter.isalnum() else " " for letter in row).split()
        return self.folder / "rows" / f"{'-'.join(words)}-seed-{seed}.json"


def _read(place: Path) -> dict[str, Any]:
    try:
        found = json.loads(place.read_text())
        if isinstance(found, dict):
            return found
        problem = "it holds no record"
    except (OSError, ValueError) as error:
        problem = str(error)
    raise UserError(f"{place} is damaged ({problem}): remove it, or choose another --out")


def _differing(before: Any, now: Any, path: str = "") -> str:
    """The first place where two records differ, in words."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in [*before, *now]:
            if before.get(name) != now.get(name):
                return _differing(before.get(name), now.get(name), f"{path}.{name}" if path else name)
    return f"{path} was {before}, and is {now}"
