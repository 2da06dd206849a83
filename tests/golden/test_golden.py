"""The first steps of every recipe are those that were written down: a change that moves them must be meant."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from vantage.recipes import RECIPES

HERE = Path(__file__).resolve().parent
WRITTEN = json.loads((HERE / "losses.json").read_text())
CURVES = json.loads((HERE / "curves.json").read_text())


def _make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_make", HERE / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_recipe_is_written_down():
    names = {recipe.__name__ for recipe in RECIPES}
    assert set(WRITTEN["losses"]) == set(CURVES["curves"]) == names


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_first_ten_losses(recipe):
    """If the change is meant: run `python tests/golden/make.py` and say in the commit why the numbers moved."""
    assert _make().losses(recipe(32)) == pytest.approx(
        WRITTEN["losses"][recipe.__name__], rel=0, abs=WRITTEN["tolerance"]
    )


@pytest.mark.parametrize("steps", [4, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_loss_gradient_norm_and_rank_in_float32(recipe, steps: int):
    """Equal to 1e-4 of max(1, value) on any processor; to 1e-6, and bit by bit, on the one that wrote the file
    (`python tests/golden/make.py --check`).

    Measured on the processor that wrote the file (an Intel Xeon with AVX-512): with kernels for AVX2, for SSE4.1 or for
    no extension at all (ATEN_CPU_CAPABILITY, DNNL_MAX_CPU_ISA, MKL_CBWR), and with two threads, losses moved by at most
    8e-7, gradient norms by 6e-6 and ranks by 7e-7, in the same units. The test leaves 15 times that.
    """
    make = _make()
    curves, expected = make.short_curves(recipe(32), steps), CURVES["curves"][recipe.__name__]
    assert set(curves) == set(expected) == set(make.CURVES)
    assert all(len(curve) == steps and len(expected[name]) == 20 for name, curve in curves.items())
    assert make.apart(curves, {name: curve[:steps] for name, curve in expected.items()}) <= CURVES["tolerance"] == 1e-4
