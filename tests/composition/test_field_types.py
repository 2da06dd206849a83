"""A run that was composed in Python names a field that holds something else than it takes, before anything is made.

In tests, beartype refuses such values even earlier, so they are put into runs that exist.
"""

import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from tiny import tiny_run

import vantage
from vantage.composition.field_types import check_types
from vantage.errors import UserError
from vantage.recipes import RECIPES
from vantage.training.run import Run


def with_field(path: str, value: Any) -> Run:
    """A run that holds any value at a path."""
    run = part = deepcopy(tiny_run())
    *above, name = path.split(".")
    for step in above:
        part = part[int(step)] if isinstance(part, tuple) else getattr(part, step)
    object.__setattr__(part, name, value)
    return run


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_every_recipe_holds_what_its_fields_take(recipe: Callable[[], Run]) -> None:
    check_types(recipe().fit(images=2_000))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("branches.0.memory.length", 64.5, r"branches.0.memory.length: expected a whole number, found 64.5"),
        ("branches.0.memory", None, r"branches.0.memory: expected Memory \(Bank, .* or StoreOf, found None"),
        ("branches.0.estimator", vantage.InfoNCE, r"estimator: expected .*, found the class InfoNCE itself"),
        (
            "branches.0.positives",
            vantage.InfoNCE(0.1),
            r"positives: expected Positives .*, found InfoNCE\(temperature=0.1",
        ),
        ("branches.0.negatives", (vantage.OtherImages(), 3), r"branches.0.negatives.1: expected Rule .*, found 3"),
        ("branches.0.keys", (0, "1"), r"branches.0.keys.1: expected a whole number, found '1'"),
        ("branches.0.keys", [1], r"branches.0.keys: expected whole numbers, found a list; write a tuple, as in"),
        ("branches.0.keys", 1, r"branches.0.keys: expected whole numbers, found 1"),
        (
            "branches.0.estimator.temperature",
            np.float32(0.1),
            "temperature: expected a number, found " + re.escape(repr(np.float32(0.1))),  # NumPy 1 prints it as 0.1
        ),
        ("learning_rate", 0.03, r"learning_rate: expected LearningRate \(CosineByEpoch, .*found 0.03"),
        (
            "branches.0.weight",
            0.5,
            r"weight: expected a number or Schedule .*, found 0.5: in Python, write Constant\(0.5\)$",
        ),
        ("learning_rate", 3, r"found 3$"),
        ("epochs", "5", r"epochs: expected a whole number, found '5'"),
        ("epochs", True, r"epochs: expected a whole number, found True"),
        ("data.on_bad_image", "ignore", r"data.on_bad_image: expected skip or stop, found 'ignore'"),
        ("encoders.encoder.backbone", "resnet18", r"encoders.encoder.backbone: expected Backbone .*, found 'resnet18'"),
        ("encoders.encoder.backbone", 1, r"Backbone \(Convolutions, ResNet, ResNet9, Timm, TinyAlexNet, …\), found 1"),
    ],
)
def test_a_field_of_another_type_is_named(path: str, value: Any, words: str) -> None:
    run = with_field(path, value)
    with pytest.raises(UserError, match=words):
        run.__post_init__()


@dataclass(frozen=True)
class Doubled:
    """Views of which most is missing."""

    def crop(self, image: Any) -> Any:
        """Another number of arguments."""

    @property
    def count(self) -> int:
        """Of the views."""
        return 2


@dataclass(frozen=True)
class Nameless:
    """A rule without the one method that it needs."""


@dataclass(frozen=True)
class Wrong:
    """A rule that says it returns something else."""

    def __call__(self, scores: Any, query: Any, pool: Any, step: int) -> int:
        """No scores."""
        return 3


@dataclass(frozen=True)
class WithoutDefault:
    """An optimizer that cannot be built without a learning rate, as the loop builds it."""

    def build(self, module: Any, lr: float) -> torch.optim.Optimizer:
        """Never called."""
        raise NotImplementedError


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("optimizer", WithoutDefault(), r"WithoutDefault\(\): it must have build\(module, lr=0.0\) -> Optimizer$"),
        (
            "views",
            Doubled(),
            r"found Doubled\(\): it has no finish\(crops, generator\), no batch\(images, generator\), no"
            r" evaluation\(view=None\) -> EvaluationView: it must have crop\(image, generator\)$",
        ),
        (
            "branches.0.negatives",
            (Nameless(),),
            r"found Nameless\(\): it has no __call__\(scores, query, pool, step\) -> Scores$",
        ),
        (
            "branches.0.negatives",
            (Wrong(),),
            r"found Wrong\(\): it must have __call__\(scores, query, pool, step\) -> Scores$",
        ),
        (
            "branches.0.estimator",
            Wrong(),
            r"found Wrong\(\): it has no temperature: it must have __call__\(positive, negatives, step\)$",
        ),
        ("branches.0.memory", Nameless(), r"StoreOf, found Nameless\(\): it has no build\(images, width\)"),
    ],
)
def test_what_an_own_part_lacks_is_named(path: str, value: Any, words: str) -> None:
    run = with_field(path, value)
    with pytest.raises(UserError, match=words):
        run.__post_init__()


def test_a_whole_number_is_a_number_and_an_object_that_is_no_part_is_left_to_the_user() -> None:
    with_field("branches.0.estimator.temperature", 1).__post_init__()
    with_field("branches.0.weight", lambda step: 0.5).__post_init__()


def test_types_that_only_type_checkers_import_are_not_checked() -> None:
    @dataclass(frozen=True)
    class Part:
        count: "NotImported"  # noqa: F821  # pyright: ignore

    check_types(Part(3))


def test_a_part_that_can_change_is_checked_again() -> None:
    @dataclass
    class Own:
        count: int

    @dataclass(frozen=True)
    class Several:
        parts: tuple[Own, ...]

    @dataclass(frozen=True)
    class Above:
        part: Several

    check_types(whole := Above(Several((own := Own(3),))))
    own.count = "3"  # pyright: ignore
    with pytest.raises(UserError, match=r"part.parts.0.count: expected a whole number, found '3'"):
        check_types(whole)
