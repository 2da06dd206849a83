"""Settings come back equal, and nothing that a file names is imported or called unless it is a part."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies

import vantage
from vantage.branch import Branch
from vantage.composition.codec import allowing, decode, encode
from vantage.composition.fields import differences
from vantage.errors import UserError
from vantage.estimators import InfoNCE
from vantage.recipes import RECIPES, moco_v2
from vantage.schedules import Constant, Steps
from vantage.training.folder import settings
from vantage.training.run import Data, Run
from vantage.views import ProgressiveResizing


@dataclass(frozen=True)
class OwnRule:
    """A rule that a user wrote: it keeps every pair."""

    strength: float = 1.0

    def __call__(self, scores: Any, query: Any, pool: Any, step: int) -> Any:
        return scores


@dataclass
class NotFrozen:
    """A dataclass that is no part, since it is not frozen."""

    value: float = 1.0

    def __call__(self, step: int) -> float:
        return self.value


class Plain(Constant):
    """A subclass of a part that is no dataclass itself."""


def stored_content(folder: Path) -> dict[str, Any]:
    return json.loads((folder / settings.FILE).read_text())


def tamper(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    content = stored_content(folder)
    change(content["run"])
    (folder / settings.FILE).write_text(json.dumps(content))


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    settings.write(moco_v2(32), tmp_path)
    return tmp_path


@pytest.mark.parametrize("size", [224, 32])
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_every_recipe_comes_back_equal(recipe: Callable[[int], Run], size: int, tmp_path: Path) -> None:
    for run in (recipe(size), recipe(size).fit(1_300)):
        settings.write(run, tmp_path)
        copy = settings.read(tmp_path)
        assert copy == run
        assert differences(run, copy) == []
        assert repr(copy) == repr(run)


@hypothesis.given(
    strategies.floats(min_value=5e-324, max_value=1.7e308),
    strategies.floats(allow_nan=False),
    strategies.text(),
    strategies.lists(strategies.integers(0, 2**63 - 1), max_size=4, unique=True),
)
def test_numbers_and_text_come_back_exactly(temperature: float, weight: float, path: str, at: list[int]) -> None:
    branch = moco_v2(32).branches[0]
    jumps = Steps(weight if math.isfinite(weight) else 1.0, 0.5, tuple(sorted(at)))
    branch = replace(branch, estimator=replace(branch.estimator, temperature=temperature), weight=jumps)
    copy = decode(json.loads(json.dumps(encode(branch))), Branch)
    assert copy == branch and repr(copy) == repr(branch)
    data = Data(path=path)
    assert decode(json.loads(json.dumps(encode(data))), Data) == data
    number = decode(json.loads(json.dumps(encode(weight))), float)
    assert number == weight and math.copysign(1, number) == math.copysign(1, weight)


def test_the_python_form_is_the_same_run_but_is_not_read(run_folder: Path) -> None:
    text = (run_folder / settings.PYTHON_FORM).read_text()
    assert max(map(len, text.splitlines())) <= 100
    content = stored_content(run_folder)["run"]
    names: dict[str, Any] = {}
    for name in parts_in(content):
        names[name] = getattr(vantage, name)
    assert eval(text.split("\n", 1)[1], names) == moco_v2(32)
    (run_folder / settings.PYTHON_FORM).write_text("raise SystemExit('executed')")
    assert settings.read(run_folder) == moco_v2(32)


def parts_in(data: Any) -> list[str]:
    if isinstance(data, dict):
        return [data["part"], *(part for item in data.values() for part in parts_in(item))]
    return [part for item in data for part in parts_in(item)] if isinstance(data, list) else []


@pytest.mark.parametrize(
    "part",
    [
        "os:system",
        "subprocess:Popen",
        "builtins:eval",
        "vantage_evil:Part",
        "vantage.recipes:moco_v2",
        "vantage.settings:read",
        "vantage.run:Any",
        "vantage.run:replace",
        "vantage.run:Run.fit",
        "vantage.schedules:Schedule",
        "vantage.learner:Learner",
        "vantage.nowhere:Part",
        "vantage.schedules:Nothing",
        "vantage..os:system",
        "../vantage:Run",
        "",
        7,
        None,
    ],
)
def test_a_name_that_is_no_part_of_vantage_is_refused(part: Any, run_folder: Path) -> None:
    tamper(run_folder, lambda run: run["branches"][0].update(weight={"part": part}))
    with pytest.raises(UserError, match=r"settings\.json: branches\.0\.weight: "):
        settings.read(run_folder)


@pytest.mark.parametrize("part", ["Branch", "Run", "Data", "vantage.run:Branch", "vantage:Run"])
def test_a_part_of_another_kind_is_refused(part: str, run_folder: Path) -> None:
    tamper(run_folder, lambda run: run["branches"][0].update(weight={"part": part}))
    with pytest.raises(UserError, match=r"settings\.json: branches\.0\.weight"):
        settings.read(run_folder)


@pytest.mark.parametrize("module", ["vantage.estimators.info_nce", "vantage.estimators", "vantage.somewhere.else"])
def test_a_part_is_found_wherever_its_module_was(module: str, run_folder: Path) -> None:
    before = settings.read(run_folder)
    tamper(run_folder, lambda run: run["branches"][0]["estimator"].update(part=f"{module}:InfoNCE"))
    assert settings.read(run_folder) == before


def test_a_part_is_found_where_a_module_became_a_folder(run_folder: Path) -> None:
    before = settings.read(run_folder)
    tamper(run_folder, lambda run: run["branches"][0]["estimator"].update(part="vantage.estimators:InfoNCE"))
    assert settings.read(run_folder) == before


def test_reading_imports_nothing_outside_the_package(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stranger.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    tamper(run_folder, lambda run: run["branches"][0].update(weight={"part": "stranger:Part"}))
    with pytest.raises(UserError, match=r"is not part of Vantage, so its module was not imported.*--import stranger"):
        settings.read(run_folder)
    with allowing("stranger"), pytest.raises(SystemExit, match="imported"):
        settings.read(run_folder)


def test_all_modules_that_are_to_be_allowed_are_named_at_once(run_folder: Path) -> None:
    tamper(run_folder, lambda run: run.update(views={"part": "my.views:Views"}))
    tamper(run_folder, lambda run: run["branches"][0].update(weight={"part": "mine:Weight"}))
    expected = r"parts of 2 modules .*\(--import my.views --import mine, or vantage.allowing\('my.views', 'mine'\)"
    with pytest.raises(UserError, match=expected):
        settings.read(run_folder)
    with allowing("mine"), pytest.raises(UserError, match="my.views:Views is not part of Vantage"):
        settings.read(run_folder)


def test_a_users_own_part_is_read_only_where_its_module_is_allowed(tmp_path: Path) -> None:
    run = moco_v2(32)
    run = replace(run, branches=(replace(run.branches[0], negatives=(OwnRule(0.25),)),))
    settings.write(run, tmp_path)
    with pytest.raises(UserError, match=f"branches.0.negatives.0: .*--import {__name__}"):
        settings.read(tmp_path)
    with allowing(__name__):
        assert settings.read(tmp_path) == run
    for other in ((), (__name__[:-1],)):
        with allowing(*other), pytest.raises(UserError, match="not imported"):
            settings.read(tmp_path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda run: run.update(epochs="many"), r'epochs: expected int, found "many"'),
        (lambda run: run.update(epochs=True), "epochs: expected int, found true"),
        (lambda run: run.update(epochs=2.5), r"epochs: expected int, found 2\.5"),
        (lambda run: run.update(branches={}), r"branches: expected tuple\[Branch, \.\.\.\], found {}"),
        (lambda run: run.update(recipe=None), "recipe: expected str, found null"),
        (
            lambda run: run["hardware"].update(precision="8-bit"),
            r'hardware\.precision: expected Literal\[.*found "8-bit"',
        ),
        (lambda run: run["hardware"].update(device=2), "hardware.device: .*did you mean devices?"),
        (lambda run: run.update(zebra=2), "zebra: .*its fields are recipe, views"),
        (lambda run: run.pop("recipe"), "recipe: Run needs this field"),
        (lambda run: run.update(epochs=0), "epochs is 0: give at least 1"),
        (lambda run: run["learning_rate"].update(base=-1.0), "learning_rate: CosineByEpoch: base is -1.0"),
        (lambda run: run.update(learning_rate=run["data"]), "learning_rate: expected LearningRate, found "),
        (lambda run: run.update(data=run["hardware"]), "data: expected Data, found "),
        # A protocol names its methods only, and an optimizer has one called `build` too.
        (lambda run: run.update(encoders=run["optimizer"]), "encoders: expected Role, found "),
        (lambda run: run.update(seed=2**63), "seed: expected a whole number of at most 64 bits, found one of 64 bits"),
        (lambda run: run["branches"][0].update(estimator=3), "branches.0.estimator: expected .*Estimator.*, found 3"),
        (
            lambda run: run["branches"][0]["estimator"].update(temperature="hot"),
            'branches.0.estimator.temperature: expected float, found "hot"',
        ),
        (
            lambda run: run["views"]["views"][0]["crop"].update(scale=[0.1]),
            r"views.views.0.crop.scale: expected tuple\[float, float\], found \[0.1\]",
        ),
        (lambda run: run.update(part="Data"), "recipe: Data has no field"),
    ],
)
def test_what_does_not_fit_is_refused_by_path(
    change: Callable[[dict[str, Any]], None], sentence: str, run_folder: Path
) -> None:
    tamper(run_folder, change)
    with pytest.raises(UserError, match=sentence):
        settings.read(run_folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schema": 99, "run": {}}', "[" * 100_000, "\udcff"])
def test_a_damaged_file_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / settings.FILE).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UserError, match=r"settings\.json"):
        settings.read(tmp_path)


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"{tmp_path} holds no run"):
        settings.read(tmp_path)


def test_a_field_that_the_file_lacks_takes_its_default(run_folder: Path) -> None:
    tamper(run_folder, lambda run: run["data"].pop("num_workers"))
    assert settings.read(run_folder) == moco_v2(32)


def test_a_field_that_came_later_is_written_only_where_it_is_used(run_folder: Path) -> None:
    run = settings.read(run_folder)
    assert "resizing" not in encode(run) and run.resizing is None
    small = replace(run, resizing=ProgressiveResizing((8,), (0.5,)))
    assert decode(encode(small), Run) == small


def test_what_could_not_be_read_back_is_not_written(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Local:
        """A part that nothing could import."""

        def __call__(self, step: int) -> float:
            return 1.0

    @dataclass(frozen=True)
    class Holder:
        """A part that holds what is no plain data."""

        value: Any

    branch = moco_v2(32).branches[0]
    for weight in (Local(), NotFrozen(), Plain(1.0)):
        run = replace(moco_v2(32), branches=(replace(branch, weight=weight),))
        with pytest.raises(UserError, match=r"run\.branches\.0\.weight: .* cannot be saved"):
            settings.write(run, tmp_path)
    for value in ([1], {1: 2}, b"x", print, Path("x")):
        with pytest.raises(UserError, match="cannot be saved"):
            encode(Holder(value))
        with pytest.raises(UserError, match="cannot be saved"):
            encode(value)
    with pytest.raises(UserError, match="at most 64 bits"):
        encode(-(2**64))
    assert not (tmp_path / settings.FILE).exists()


def test_a_folder_that_cannot_be_written_to_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="could not be written to"):
        settings.write(moco_v2(32), tmp_path / "file" / "run")


def test_writing_again_replaces_the_whole_file_and_leaves_nothing_else(run_folder: Path) -> None:
    settings.write(moco_v2(64), run_folder)
    assert settings.read(run_folder) == moco_v2(64)
    assert sorted(path.name for path in run_folder.iterdir()) == [settings.FILE, settings.PYTHON_FORM]


def test_whole_numbers_of_a_file_become_floats_where_a_field_is_one() -> None:
    share = decode({"part": "InfoNCE", "temperature": 1}, InfoNCE).temperature
    assert share == 1.0 and type(share) is float
    with pytest.raises(UserError, match="expected float, found 1000"):
        decode({"part": "InfoNCE", "temperature": 10**400}, InfoNCE)
