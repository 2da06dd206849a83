"""The code of own parts, as kept numbers know it."""

import copyreg
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from vantage.composition.own_code import code_of

PARTS = """
from dataclasses import dataclass
import numpy as np
import own_helpers
from own_helpers import half

_FACTOR = 2
_TABLE = {"rates": [0.1, 0.2], "kinds": {"a", "b"}}

def doubled(value):
    return _FACTOR * value

class Store:
    def read(self):
        return doubled(1) + np.add(1, 1) + _TABLE["rates"][0] + half(2) + own_helpers.THIRD

def unused():
    return 0

@dataclass(frozen=True)
class Part:
    length: int = 3

    def build(self):
        return Store()
"""


HELPERS = """
THIRD = 3

def half(value):
    return value / 2
"""


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("length: int = 3", "length: int = 44", False),
        ("doubled(1)", "doubled(22)", False),
        ("_FACTOR * value", "_FACTOR +  value", False),
        ("_FACTOR = 2", "_FACTOR = 33", False),
        ("[0.1, 0.2]", "[0.1, 0.25]", False),
        ("return 0", "return 11", True),
    ],
)
def test_the_code_of_a_part_covers_what_it_names_of_its_own_package(
    before: str, after: str, same: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_helpers.py").write_text(HELPERS)
    codes = []
    for number, text in enumerate((PARTS, PARTS.replace(before, after))):
        assert number == 0 or text != PARTS
        (tmp_path / "own_code_parts.py").write_text(text)
        sys.modules.pop("own_code_parts", None)
        importlib.invalidate_caches()
        codes.append(list(code_of(importlib.import_module("own_code_parts").Part)))
    assert (codes[0] == codes[1]) == same
    assert [code.split()[0] for code in codes[0]].count("own_helpers.half") == 1
    assert not any("unused" in code or "np" == code[:2] for code in codes[0])


VALUES = """
from enum import Enum
from functools import cached_property, partial
from pathlib import Path
import numpy as np
import torch
import own_package.rates

def scaled(value, by):
    return value * by

class Kind(Enum):
    HARD = "hard"

class Power:
    def __init__(self, exponent):
        self.exponent, self.itself = exponent, self

    def __call__(self, value):
        return value ** self.exponent

TENSOR = torch.tensor([0.1, 0.2], dtype=torch.bfloat16)
ARRAY = np.array([1.0, 2.0])
PARTIAL = partial(scaled, by=5)
CHOICES = {"double": lambda value: value * 11}
POWER = Power(13)
FOLDER = Path("first")

class Part:
    table = torch.tensor([0.5])

    @cached_property
    def slow(self):
        return 31

    def __call__(self, value):
        import own_package.later
        from own_package import later as again
        values = TENSOR, ARRAY, PARTIAL, CHOICES["double"], POWER, FOLDER, Kind.HARD, self.table, self.slow
        return values, own_package.rates.rate(value), again.late(value)
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[0.1, 0.2]", "[0.1, 0.25]"),
        ("[1.0, 2.0]", "[1.0, 2.5]"),
        ("by=5", "by=6"),
        ("value * by", "value + by"),
        ("value * 11", "value * 12"),
        ("Power(13)", "Power(14)"),
        ("** self", "// self"),
        ('"first"', '"second"'),
        ('"hard"', '"easy"'),
        ("[0.5]", "[0.6]"),
        ("31", "32"),
        ("value + 17", "value + 18"),
        ("value - 19", "value - 20"),
    ],
)
def test_values_and_modules_of_every_kind_are_seen(
    before: str, after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers were kept after a table in a tensor was edited, or a function in a module of a package."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # an edit of equal size within a second would go unnoticed
    files = {
        "own_package/__init__.py": "",
        "own_package/rates.py": "def rate(value):\n    return value + 17\n",
        "own_package/later.py": "def late(value):\n    return value - 19\n",
        "own_values.py": VALUES,
    }
    (tmp_path / "own_package").mkdir()
    codes = []
    for texts in (files, files, {name: text.replace(before, after) for name, text in files.items()}):
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
        for name in [name for name in sys.modules if name.startswith(("own_package", "own_values"))]:
            del sys.modules[name]
        importlib.invalidate_caches()
        codes.append(list(code_of(importlib.import_module("own_values").Part)))
    assert codes[0] == codes[1] != codes[2]


CELL = """
from dataclasses import dataclass
from functools import wraps

def twice(function):
    @wraps(function)
    def inner(self, value):
        return 2 * function(self, value)
    return inner

def offset():
    return 1

@dataclass(frozen=True)
class Part:
    share: float = 0.5
    @twice
    def __call__(self, value, among=frozenset("abc")):
        return value * self.share + offset()
    @property
    def temperature(self):
        return 0.2
"""


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("value * self", "value / self", False),
        ("return 0.2", "return 0.3", False),
        ("return 1", "return 2", False),
        ('frozenset("abc")', 'frozenset("abd")', False),
        ("@twice", "# once\\n    @twice", True),
    ],
)
def test_code_typed_into_a_notebook_is_known(before: str, after: str, same: bool) -> None:
    """It counted as empty: after a cell was edited, a sweep gave the numbers of the cell before."""
    codes = []
    for text in (CELL, CELL.replace(before, after)):
        cell: dict[str, Any] = {"__name__": "__main__"}
        exec(text, cell)
        codes.append(list(code_of(cell["Part"])))
    assert (codes[0] == codes[1]) == same and CELL != CELL.replace(before, after)


def test_a_file_that_was_edited_since_counts_as_it_was_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers of the code that ran were kept as those of the edited file."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_helpers.py").write_text(HELPERS)
    (tmp_path / "own_code_edited.py").write_text(PARTS)
    part = importlib.import_module("own_code_edited").Part
    before = list(code_of(part))
    (tmp_path / "own_code_edited.py").write_text(PARTS.replace("doubled(1)", "doubled(22)"))
    assert list(code_of(part)) == before


@pytest.mark.parametrize(
    ("begin", "call"),
    [("CALLS = []", "CALLS.append(1)"), ("class Counter:\n    n = 0\nCALLS = Counter()", "CALLS.n += 1")],
)
def test_calls_that_are_recorded_leave_the_code_the_same(begin: str, call: str) -> None:
    cell: dict[str, Any] = {"__name__": "__main__"}
    exec(f"{begin}\nclass Part:\n    def __call__(self):\n        {call}", cell)
    before = list(code_of(cell["Part"]))
    cell["Part"]()()
    copyreg._slotnames(cell["Part"])  # as pickle does, which adds the result to the class  # pyright: ignore
    assert list(code_of(cell["Part"])) == before and any("CALLS" in text for text in before)
