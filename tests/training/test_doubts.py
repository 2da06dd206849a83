"""What is unlikely to be meant in a run's settings is noted before training; no recipe has anything of the kind."""

from dataclasses import replace
from pathlib import Path

import pytest

from vantage.composition.assignments import assign
from vantage.errors import UserError
from vantage.progress import QuietProgress
from vantage.recipes import RECIPES, VARIANTS, everything, jcl, moco_v2, simclr
from vantage.training.loop import train
from vantage.training.run import Data
from vantage.training.start.doubts import doubts


@pytest.mark.parametrize("recipe", [*RECIPES, *VARIANTS], ids=lambda recipe: recipe.__name__)
def test_a_recipe_raises_no_doubt(recipe):
    assert [*doubts(recipe(32)), *doubts(recipe(224))] == []


def test_views_that_no_branch_uses_are_noted():
    run = assign(jcl(32), ["branches=Branch(Queue(64),OtherViews(),(),InfoNCE(0.2))"])
    (line,) = doubts(run)
    assert line.startswith("no branch uses 4 of the 6 views made of each image (2, 3, 4, 5): name them")
    assert not list(doubts(assign(run, ["branches.0.pool=2,3", "branches.0.query=4", "branches.0.keys=0,1,5"])))


@pytest.mark.parametrize("positives", ["OtherViews()", "FixedViews()", "Remembered()", "ClusterMate()"])
def test_jcl_with_one_positive_is_noted_as_info_nce(positives: str):
    run = assign(moco_v2(32), ["estimator=JCL(0.3)", f"positives={positives}"])
    assert list(doubts(run)) == [
        "branch 0 gives each query one positive, so JCL is InfoNCE(0.3), whatever its strength: name several views in"
        " Branch.keys"
    ]
    assert not list(doubts(assign(run, ["positives=ClusterMates()"])))


@pytest.mark.parametrize("recipe", [moco_v2, simclr])
def test_a_query_that_is_its_own_positive_is_noted(recipe):
    (line,) = doubts(assign(recipe(32), ["branches.0.keys=0,1"]))
    assert line.startswith("branch 0 takes view 0 as query and as key, so a query is its own positive")


@pytest.mark.parametrize("setting", ["pool=3,4", "remember=EachKey()"])
def test_what_a_branch_that_reads_another_store_cannot_decide_is_noted(setting: str):
    """It was ignored without a word."""
    (line,) = doubts(assign(everything(32), [f"branches.1.{setting}"]))
    assert line.startswith("branch 1 reads what branch 0 remembers, so its own pool and remember have no effect")
    branches = [
        "branches=Branch(InBatch(),OtherViews(),(),InfoNCE()),Branch(StoreOf(0),OtherViews(),(),InfoNCE(),pool=0)"
    ]
    assert not list(doubts(assign(moco_v2(32), branches)))  # keys of the same step are chosen by each branch


def test_a_learning_rate_of_zero_is_noted():
    """`--learning-rate 0` trained for hours without a word, and learned nothing."""
    (line,) = doubts(assign(moco_v2(32), ["learning_rate.base=0"]))
    assert line.startswith("the learning rate is 0, so the networks stay as they are")


@pytest.mark.parametrize("recipe", [moco_v2, jcl])
def test_views_of_a_few_pixels_are_noted(recipe):
    """`--size 5` trained without a word."""
    (line,) = doubts(recipe(5))
    assert line.startswith("views of 5 x 5 pixels show little but colors") and "--size 8" in line
    assert not list(doubts(recipe(8)))


class Lines(QuietProgress):
    def __init__(self):
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)


def test_they_are_lines_of_the_progress(tmp_path: Path):
    run = assign(jcl(32), ["branches.0.keys=1,2", "precision=32-true"])
    progress = Lines()
    with pytest.raises(UserError, match="nowhere"):
        train(replace(run, data=Data(str(tmp_path / "nowhere"))), tmp_path / "run", progress)
    assert progress.lines == list(doubts(run)) != []
