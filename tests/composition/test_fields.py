"""Fields of a run: each can be replaced by its path and has a help text; near names are suggested for wrong ones."""

from collections.abc import Callable

import pytest

from vantage import Run
from vantage.composition.fields import field_help, leaves, replace_at, settings_in
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError
from vantage.estimators import InfoNCE
from vantage.recipes import RECIPES, moco_v2


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_every_field_of_a_recipe_can_be_replaced_and_has_help(recipe: Callable[[int], Run]) -> None:
    run = recipe(32)
    settings_of_run = list(leaves(run))
    assert len({leaf.path for leaf in settings_of_run}) == len(settings_of_run)
    assert [leaf.path for leaf in settings_of_run if not leaf.help] == []
    assert [setting.path for setting in settings_in(run) if not setting.help] == []
    assert replace_at(run, {leaf.path: leaf.value for leaf in settings_of_run}) == run


def test_replacing_sees_all_changes_at_once() -> None:
    run = replace_at(moco_v2(32), {"batch_size": 6, "accumulate": 3, "views.views.1.crop.size": 16})
    assert (run.batch_size, run.accumulate) == (6, 3)
    assert [view.crop.size for view in run.views.views] == [32, 16]
    with pytest.raises(UserError, match="does not divide into 3"):
        replace_at(moco_v2(32), {"accumulate": 3})


def test_field_help_is_the_text_under_the_field() -> None:
    assert field_help(InfoNCE)["temperature"] == "τ: what cosines are divided by."
    assert set(field_help(Run)) == {f for f in Run.__dataclass_fields__}


def test_suggestions_look_at_the_whole_and_at_the_last_part() -> None:
    flags = ["--epochs", "--branches.0.estimator.temperature", "--data.place"]
    assert did_you_mean("--epocs", flags) == "; did you mean --epochs?"
    assert did_you_mean("--temperatur", flags) == "; did you mean --branches.0.estimator.temperature?"
    assert did_you_mean("--zzz", flags, "; none") == "; none"
    assert did_you_mean("--size", ["--a.size", "--b.size", "--c.size"]).endswith("(or 1 more)?")
    assert did_you_mean("jcl-table", ["jcl-table-1", "jcl-table-2"]) == "; did you mean jcl-table-1 or jcl-table-2?"
