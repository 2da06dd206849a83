"""What `Hardware.compile` compiles."""

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from small_runs import small_run, write_images
from torch import Tensor
from torch.testing import assert_close

from vantage.estimators import InfoNCE
from vantage.learner import Learner
from vantage.recipes import RECIPES, jcl, jcl_released, simclr
from vantage.records import Negatives, Scores
from vantage.schedules import Linear
from vantage.training.computing.compiling import compile_learner, is_one_graph

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


@dataclass(frozen=True)
class Ramp:
    """A user's own estimator, which reads the step."""

    temperature: float = 0.2

    def __call__(self, positive: Scores, negatives: Negatives, step: int) -> Tensor:
        """InfoNCE times the steps so far."""
        return InfoNCE(self.temperature)(positive, negatives, step) * (1.0 + step)


def test_a_part_of_a_users_own_gets_the_step_of_each_step() -> None:
    """A whole compiled step would hand it step 0 for good."""
    run = small_run("moco_v2", "")
    branches = (replace(run.branches[0], estimator=Ramp()),)
    losses = []
    for compiles in (False, True):
        torch.manual_seed(0)
        learner = Learner(run.encoders, branches, images=48, seed=0)
        if compiles:
            compile_learner(learner)
        views = [torch.randn(8, 3, 16, 16) for _ in range(2)]
        with torch.compiler.set_stance("force_eager"):  # what is called, without the minutes that compiling takes
            losses.append([learner(views, torch.arange(8), step=step).loss for step in (0, 5)])
    assert_close(*losses)


@pytest.mark.slow
def test_compiled_steps_give_the_same_losses(tmp_path: Path) -> None:
    """Whole graphs, forward and backward, over all steps: one for a whole step and one for each network otherwise, with
    BatchNorm in groups, shuffled keys and views of growing size."""
    images = write_images(tmp_path / "images.npz")
    script = Path(__file__).parents[1] / "support" / "compiled_steps.py"
    subprocess.run([sys.executable, script, images, *ONE_GRAPH, *NETWORKS_ONLY], check=True, cwd=script.parent)
