"""The first ten losses of every recipe are those that were written down: a change that moves them must be meant."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from vantage.recipes import RECIPES

HERE = Path(__file__).resolve().parent
WRITTEN = json.loads((HERE / "losses.json").read_text())


def _make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_make", HERE / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_recipe_is_written_down():
    assert set(WRITTEN["losses"]) == {recipe.__name__ for recipe in RECIPES}


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_first_ten_losses(recipe):
    """If the change is meant: run `python tests/golden/make.py` and say in the commit why the numbers moved."""
    assert _make().losses(recipe(32)) == pytest.approx(
        WRITTEN["losses"][recipe.__name__], rel=0, abs=WRITTEN["tolerance"]
    )
