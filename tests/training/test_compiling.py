"""What `Hardware.compile` compiles."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from small_runs import write_images

from vantage.recipes import RECIPES, jcl, jcl_released, simclr
from vantage.schedules import Linear
from vantage.training.computing.compiling import is_one_graph

ONE_GRAPH = [
    *("simclr", "debiased", "hcl", "moco_v1", "moco_v2", "moco_v2_multi_crop", "instance_discrimination_full"),
    *("infomin", "infomin_linear", "jcl", "jcl_vanilla"),
]
NETWORKS_ONLY = ["ring_moco", "cmc"]


def test_recipes_whose_step_is_one_graph() -> None:
    assert [recipe.__name__ for recipe in RECIPES if is_one_graph(recipe(32).branches)] == ONE_GRAPH


def test_a_number_that_follows_the_step_is_no_graph() -> None:
    """The released ramp of λ, and any weight of a branch."""
    assert is_one_graph(jcl(32).branches) and not is_one_graph(jcl_released(32).branches)
    (branch,) = simclr(32).branches[:1]
    assert not is_one_graph((replace(branch, weight=Linear(0.0, 1.0, 10)),))


@pytest.mark.slow
def test_compiled_steps_give_the_same_losses(tmp_path: Path) -> None:
    """Whole graphs, forward and backward, over all steps: one for a whole step and one for each network otherwise, with
    BatchNorm in groups, shuffled keys and views of growing size."""
    images = write_images(tmp_path / "images.npz")
    script = Path(__file__).parents[1] / "support" / "compiled_steps.py"
    subprocess.run([sys.executable, script, images, *ONE_GRAPH, *NETWORKS_ONLY], check=True, cwd=script.parent)
