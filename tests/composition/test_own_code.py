"""The code of own parts, as kept numbers know it."""

import importlib
import sys
from pathlib import Path

import pytest

from vantage.composition.own_code import code_of

PARTS = """
from dataclasses import dataclass
import numpy as np
import own_helpers

_FACTOR = 2

def doubled(value):
    return _FACTOR * value

class Store:
    def read(self):
        return doubled(1) + np.add(1, 1)

def unused():
    return 0

@dataclass(frozen=True)
class Part:
    length: int = 3

    def build(self):
        return Store()
"""


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("length: int = 3", "length: int = 44", False),
        ("doubled(1)", "doubled(22)", False),
        ("_FACTOR * value", "_FACTOR +  value", False),
        ("_FACTOR = 2", "_FACTOR = 33", False),
        ("return 0", "return 11", True),
    ],
)
def test_the_code_of_a_part_covers_what_it_names_of_its_own_package(
    before: str, after: str, same: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_helpers.py").write_text("")
    codes = []
    for number, text in enumerate((PARTS, PARTS.replace(before, after))):
        assert number == 0 or text != PARTS
        (tmp_path / "own_code_parts.py").write_text(text)
        sys.modules.pop("own_code_parts", None)
        importlib.invalidate_caches()
        codes.append(list(code_of(importlib.import_module("own_code_parts").Part)))
    assert (codes[0] == codes[1]) == same
    assert len(codes[0]) == 4 and not any("unused" in code or "np" == code[:2] for code in codes[0])
