"""Views, rates, weights, rules and estimators of a user's own: a mistake is found before the first step."""

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import SIZE, small_run, write_images
from torch import Tensor

import vantage
from vantage.draws import torch_seed
from vantage.errors import UserError
from vantage.training.loop import train
from vantage.training.start.try_parts import try_branches
from vantage.training.start.try_views import some_views
from vantage.views import ViewMaker


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Images, and a cache of the test's own."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    return write_images(tmp_path / "images.npz")


@dataclass(frozen=True)
class OwnViews:
    """Views of a user's own, of which one method is wrong."""

    wrong: str = ""
    own: ViewMaker = vantage.views.simclr_views(SIZE)

    @property
    def count(self) -> int:
        return self.own.count

    def crop(self, image: Tensor, generator: torch.Generator) -> tuple[Tensor, ...]:
        if self.wrong == "crop":
            raise KeyError("side")
        if self.wrong == "default":
            image = image.roll(int(torch.randint(0, 9, ())), -1)
        with torch_seed(int(torch.randint(1 << 62, (), generator=generator))):
            image = image.roll(int(torch.randint(0, 9, ())), -1)
        return self.own.crop(image, generator)

    def finish(self, crops: tuple[Tensor, ...], generator: torch.Generator) -> list[Any]:
        views: list[Any] = self.own.finish(crops, generator)
        if self.wrong == "rows":
            return [view[:1] for view in views]
        if self.wrong == "values":
            return [views[0], views[1] * torch.nan]
        return views[:1] if self.wrong == "finish" else views

    def batch(self, images: Tensor, generator: torch.Generator) -> list[Any]:
        views = self.own.batch(images, generator)
        return [view[:, :1] for view in views] if self.wrong == "batch" else views

    def evaluation(self, view: int | None = None) -> Any:
        right = self.own.evaluation(view)
        if self.wrong == "raises":
            raise KeyError("side")
        if self.wrong == "channels":
            return replace(right, channels=(0,))
        return {"nothing": None, "outside": replace(right, channels=(7,))}.get(self.wrong, right)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("raises", r"OwnViews.evaluation\(\) cannot be used: KeyError: 'side' \(.*own_parts.py, line \d+\)$"),
        ("nothing", r"OwnViews.evaluation\(\) (returns a NoneType: return a v|cannot be used: TypeCheckError)"),
        ("outside", r"Pick\(7,\) leaves no image: give some of the channels 0, 1 and 2"),
        (
            "channels",
            r"the encoder does not fit the view of OwnViews.evaluation\(\), which has 1 channels and 16 x 16 pixels",
        ),
        (
            "crop",
            r"OwnViews cannot make views of these images: KeyError: 'side' \(.*own_parts.py, line \d+\)$",
        ),
        ("finish", r"OwnViews.finish returns 1 in place of a list of 2 views, which is the count"),
        ("rows", r"OwnViews.finish: view 0 of 2 image\(s\) is torch.float32 of shape \(1, 3, 16, 16\)"),
        ("values", r"OwnViews.finish: view 1 has values that are no finite numbers"),
        ("batch", r"OwnViews.finish makes views of the shapes \[.*\], and batch \[.*\]: make the same"),
    ],
)
def test_a_mistake_in_own_views_is_found_before_anything_is_written(
    path: str, tmp_path: Path, wrong: str, words: str
) -> None:
    run = replace(small_run("simclr", path), views=OwnViews())
    assert train(replace(run, epochs=1), tmp_path / "right").finished
    with pytest.raises(UserError, match=words):
        train(replace(run, views=OwnViews(wrong)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_views_of_another_generator_are_refused() -> None:
    """Processes that decode images have generators of their own, so a resumed run would see other views."""
    run, image = small_run("simclr", ""), torch.zeros(3, SIZE, SIZE, dtype=torch.uint8)
    assert some_views(replace(run, views=OwnViews()), [image])
    with pytest.raises(UserError, match="OwnViews draws from torch's default generator, .*: draw from the generator"):
        some_views(replace(run, views=OwnViews("default")), [image])


@dataclass(frozen=True)
class OwnRate:
    """A learning rate, weight or momentum of a user's own."""

    value: str = "0.01"

    def __call__(self, step: int, steps_per_epoch: int = 1, epochs: int = 1) -> Any:
        if self.value == "late" and step:
            raise KeyError("rate")
        return {"tensor": torch.tensor(0.01), "none": None, "nan": float("nan")}.get(self.value, 0.01)

    def scale(self, factor: float) -> "OwnRate":
        return self

    def for_epochs(self, epochs: int, to: int) -> "OwnRate":
        return self


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("tensor", r" is tensor\(0.0100\) at step 0: return a finite number, an int or a float"),
        ("none", " is None at step 0: return a finite number"),
        ("nan", " is nan at step 0: return a finite number"),
        ("late", r" cannot be computed at step 17: KeyError: 'rate' \(.*test_try_own_parts.py, line \d+\)"),
    ],
)
def test_a_number_that_is_none_is_found_before_anything_is_written(
    path: str, tmp_path: Path, wrong: str, words: str
) -> None:
    """A tensor trained until the first checkpoint, which could not hold it."""
    run = small_run("moco_v2", path)
    (branch,), encoders = run.branches, run.encoders
    for where, other in (
        ("learning_rate", replace(run, learning_rate=OwnRate(wrong))),
        ("branches.0.weight", replace(run, branches=(replace(branch, weight=OwnRate(wrong)),))),
        ("encoders.momentum", replace(run, encoders=replace(encoders, momentum=OwnRate(wrong)))),  # pyright: ignore
    ):
        with pytest.raises(UserError, match=where + words):
            train(other, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert train(replace(run, learning_rate=OwnRate(), epochs=1), tmp_path / "run").finished


@dataclass(frozen=True)
class OwnEstimator:
    """InfoNCE whose temperature may follow a schedule."""

    temperature: Any

    def __call__(self, positive: Any, negatives: Any, step: int) -> Any:
        return vantage.InfoNCE(self.temperature(step))(positive, negatives, step)


def test_a_temperature_that_is_no_number_is_explained() -> None:
    run = vantage.moco_v2(SIZE).fit(64)
    wrong = replace(run.branches[0], estimator=OwnEstimator(vantage.Constant(0.2)))
    words = (
        r"temperature is Constant\(value=0.2\), .*: if τ follows a schedule or is learned, inherit from TableEstimator"
    )
    with pytest.raises(UserError, match=words):
        try_branches(replace(run, branches=(wrong,)))


_OWN_RULES = """
from dataclasses import dataclass, replace
import vantage
from vantage.training.start.try_parts import try_branches

@dataclass(frozen=True)
class OwnRule:
    what: str
    def __call__(self, scores, query, pool, step):
        near = scores.cosine.detach() < 0.5
        if self.what == "short":
            return scores.only(near).only(near[:, 1:])
        masks = {"": near, "float": near.float(), "row": near[:1], "column": near[:, :1]}
        return near if self.what == "mask" else scores.only(masks[self.what])

run = vantage.moco_v2(32).fit(64)
for what in ("", "mask", "float", "row", "column", "short"):
    try:
        try_branches(replace(run, branches=(replace(run.branches[0], negatives=(OwnRule(what),)),)))
    except vantage.UserError as problem:
        print(problem)
"""


def _printed_by(code: str) -> list[str]:
    """The lines that a process of its own prints, where calls are not checked against annotations, as at a user's."""
    environment = {**os.environ, "PYTHONPATH": str(Path(vantage.__file__).parents[1])}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.splitlines()


@pytest.mark.slow
def test_what_an_own_rule_returns_is_named() -> None:
    lines = _printed_by(_OWN_RULES)
    words = "branch 0 cannot work: the rule OwnRule returns {}: return scores.only(keep), a boolean for each pair"
    found = ("a Tensor", "a mask of torch.float32", "a mask of (1, 32) for pairs of (8, 32)")
    assert lines[:3] == [words.format(each) for each in found]
    assert lines[3] == words.format("a mask of (8, 1) for pairs of (8, 32)")
    assert lines[4].startswith("branch 0 cannot work: the rule OwnRule: RuntimeError: ")
    assert lines[4].endswith("(<string>, line 12)"), "the line of the rule, not that of Vantage or torch"


_OWN_ESTIMATORS = """
from dataclasses import dataclass, replace
import vantage
from vantage.training.start.try_parts import try_branches

@dataclass(frozen=True)
class Own:
    what: str
    temperature: float = 0.2
    def __call__(self, positive, negatives, step):
        losses = vantage.InfoNCE(self.temperature)(positive, negatives, step)
        return {"": losses, "nothing": None, "detached": losses.detach()}[self.what]

run = vantage.moco_v2(32).fit(64)
for what in ("", "nothing", "detached"):
    try:
        try_branches(replace(run, branches=(replace(run.branches[0], estimator=Own(what)),)))
    except vantage.UserError as problem:
        print(problem)
"""


@pytest.mark.slow
def test_what_an_own_estimator_returns_is_named() -> None:
    assert _printed_by(_OWN_ESTIMATORS) == [
        "branch 0 cannot work: Own gives a NoneType for 8 queries: give one for each query",
        "branch 0 cannot work: no gradient reaches the queries: compute the loss from cosines that are not detached",
    ]
