"""`PATH=VALUE`: any field of a run, by its path or the end of it."""

from typing import Any

import pytest

from vantage.composition.assignments import assign, read_assignments, split_values
from vantage.composition.fields import differences
from vantage.errors import UserError
from vantage.negatives import Ball, OtherImages, Ring
from vantage.recipes import moco_v2
from vantage.schedules import Constant


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        (["branches.0.estimator.temperature=0.17"], {"branches.0.estimator.temperature": 0.17}),
        (["branches.0.memory.length = 77"], {"branches.0.memory.length": 77}),
        (["temperature=.5"], {"branches.0.estimator.temperature": 0.5}),
        (["crop.size=33"], {"views.views.0.crop.size": 33, "views.views.1.crop.size": 33}),
        (["views.1.crop.scale.0=.5"], {"views.views.1.crop.scale.0": 0.5}),
        (["branches.0.negatives=(OtherImages(), Ring())"], {"branches.0.negatives": (OtherImages(), Ring())}),
        (["negatives=Ring()", "branches.0.negatives.0=Ball()"], {"branches.0.negatives": (Ball(),)}),
        (
            ["negatives=(OtherImages(), Ring())", "branches.0.negatives.1.drop=Constant(0.2)", "drop.value=.3"],
            {"branches.0.negatives": (OtherImages(), Ring(drop=Constant(0.3)))},
        ),
        (["branches.0.memory=Queue(7)", "branches.0.memory.length=5"], {"branches.0.memory.length": 5}),
        (["weight=0.3"], {"branches.0.weight.value": 0.3}),
        (["encoders.momentum=0.9"], {"encoders.momentum.value": 0.9}),
        (["weight=0.3", "weight.value=0.4"], {"branches.0.weight.value": 0.4}),
        (["batch-size=6", "accumulate=3"], {"batch_size": 6, "accumulate": 3}),
    ],
)
def test_what_is_set(words: list[str], changes: dict[str, Any]) -> None:
    run = moco_v2(32)
    assert {path: after for path, _, after in differences(run, assign(run, words))} == changes


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("epochs", "'epochs' sets nothing: write PATH=VALUE"),
        ("=3", "sets nothing"),
        ("temprature=1", "moco_v2 has no field 'temprature'; did you mean branches.0.estimator.temperature?"),
        ("rate.peak=1", "no field 'rate.peak'; did you mean learning_rate.base?"),
        ("optimizer.spare=1", "no field 'optimizer.spare'; did you mean optimizer.exclude?"),
        ("branches.3.keys=1", "no field 'branches.3.keys'; did you mean branches.0.keys?"),
        ("crop.scale.7=1", "no field 'crop.scale.7'"),
        ("branches.-1.temperature=1", r"no field 'branches\.-1\.temperature'"),
        ("learning-rat.base=1", "no field 'learning-rat.base'; did you mean learning_rate.base"),
        ("epochs=five", "epochs: expected a whole number, found five"),
        ("crop.scale.0=a", r"views.views.0.crop.scale.0: expected a number, found a"),
        (
            "learning_rate=.3",
            "found .3; for a number of the CosineByEpoch there, write learning_rate.base=.3$",
        ),
        ("memory=64", r"found 64; for a number of the Queue there, write branches.0.memory.length=64$"),
        ("learning_rate=fast", r"no part 'fast'; expected LearningRate \(CosineByEpoch, CosineByStep, StepDecay\)$"),
        ("encoders=0.3", r"expected Role \(Momentum, PerView, Shared\), found 0.3$"),
        (
            "momentum=Linear(0.9, 1, 100)",
            "optimizer.momentum: expected a number, .*; encoders.momentum takes it: write the whole path$",
        ),
        ("momentum=fast", r"no part 'fast'; expected .*\)$"),
        ("weight=inf", "it must be a finite number$"),
        ("recipe=x", "no field 'recipe'"),
        ("accumulate=3", "does not divide into 3"),
        ("branches=()", "a run without branches"),
    ],
)
def test_what_cannot_be_set(word: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        assign(moco_v2(32), [word], may_set=lambda path: path != "recipe", name="moco_v2")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["temperature=0.5", "branches.0.estimator=JCL()"], "temperature is set, but branches.0.estimator after it"),
        (["negatives=()", "estimator=JCL()", "branches=(Branch(Queue(9),OtherViews(),(),InfoNCE()),)"], "negatives is"),
        (["epochs=3", "seed=1", "epochs=4"], "^epochs is set twice: leave one out$"),
        (["batch-size=8", "batch_size=8"], "^batch-size is set twice, also as batch_size: leave one out$"),
        (
            ["temperature=.1", "branches.0.estimator.temperature=.1"],
            "temperature is set twice, also as branches.0.esti",
        ),
        (["views.views.1.crop.size=20", "crop.size=24"], "views.views.1.crop.size is set, but crop.size after it"),
        (["crop.size=24", "views.0.crop.size=20", "views.1.crop.size=20"], "crop.size is set twice, also as views.1"),
        (
            ["crop.scale.0=.3", "crop.scale=.2,1"],
            "crop.scale.0 is set, but crop.scale after it replaces it: set crop.sc",
        ),
        (
            ["estimator=JCL()", "strength.value=1", "strength=Constant(2)"],
            "strength.value is set, but strength after it",
        ),
    ],
)
def test_what_a_later_text_replaces_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message) as refusal:
        read_assignments(moco_v2(32), words)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "words",
    [
        ["branches.0.estimator=JCL()", "temperature=0.5", "strength=Constant(1)", "strength.value=2"],
        ["crop.size=24", "views.0.crop.size=20"],
        ["crop.scale.0=.3", "crop.scale.1=.9"],
        ["hardware=Hardware()", "hardware.threads=2", "hardware.devices=1"],
    ],
)
def test_a_field_may_be_set_inside_of_what_was_set_before(words: list[str]) -> None:
    assert read_assignments(moco_v2(32), words)


def test_commas_within_brackets_and_quotes_separate_nothing() -> None:
    assert split_values("a, (1,2),[3,(4,5)],Ring(x, y),'b,c'") == ("a", "(1,2)", "[3,(4,5)]", "Ring(x, y)", "'b,c'")
    assert split_values(" , ") == ()
