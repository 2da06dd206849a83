"""`vantage pretrain` with a recipe of a user's own, whose module is named."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from stubbed_training import TrainingStub, run_of
from torch import nn

from vantage import Run
from vantage.cli import main
from vantage.composition.printing import as_python
from vantage.recipes import moco_v2
from vantage.schedules import CosineByEpoch, CosineByStep
from vantage.training.folder import settings
from vantage.training.optimizers import SGD, AdamW

pytestmark = pytest.mark.usefixtures("own_cache")


@dataclass(frozen=True)
class KeepAll:
    """A rule of a user's own."""

    share: float = 1.0
    """Share that is kept."""

    def __call__(self, scores: Any, query: Any, pool: Any, step: int) -> Any:
        return scores


def own_recipe(size: int = 224) -> Run:
    """A recipe of a user's own."""
    run = moco_v2(size)
    return replace(run, recipe="own", branches=(replace(run.branches[0], negatives=(KeepAll(),)),))


@dataclass(frozen=True)
class Nesterov:
    """An optimizer of a user's own."""

    def build(self, module: nn.Module, lr: float = 0.0) -> torch.optim.Optimizer:
        return torch.optim.SGD(module.parameters(), lr=lr, momentum=0.9, nesterov=True)


@dataclass(frozen=True)
class Flat:
    """A learning rate of a user's own, without a base."""

    rate: float = 0.1
    """The rate of every step."""

    def __call__(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        return self.rate

    def scale(self, factor: float) -> "Flat":
        return Flat(self.rate * factor)

    def for_epochs(self, epochs: int, to: int) -> "Flat":
        return self


def flat_recipe(size: int = 224) -> Run:
    """A recipe with a learning rate of a user's own."""
    return replace(moco_v2(size), learning_rate=Flat())


def still_recipe(size: int = 224) -> Run:
    """A recipe that learns nothing until a learning rate is given."""
    return replace(moco_v2(size), learning_rate=CosineByEpoch(0.0))


def no_recipe(size: int = 224) -> int:
    """Looks like a recipe."""
    return size


def broken_recipe(size: int = 224) -> Run:
    """A recipe with an error."""
    return moco_v2(size // (size - 32))


def recipe_of_one_size() -> Run:
    """Takes no size."""
    return own_recipe(32)


def test_a_recipe_of_ones_own_needs_its_module_named(
    training: TrainingStub, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pretrain", f"{__name__}:own_recipe", "--data", str(images), "--out", str(tmp_path / "run")]
    assert main(words) == 2
    assert f"--import {__name__}" in capsys.readouterr().err
    run = run_of(training, *words, "--import", __name__, "--set", "branches.0.negatives.0.share=0.5")
    assert run.branches[0].negatives == (KeepAll(0.5),)
    assert main(["resume", str(tmp_path / "run")]) == 2
    assert "is not part of Vantage" in capsys.readouterr().err
    assert run_of(training, f"--import={__name__}", "resume", tmp_path / "run") == run
    for name in ("no_recipe", "recipe_of_one_size"):
        assert main([*words[:1], f"{__name__}:{name}", *words[2:], "--import", __name__]) == 2
        assert f"{name} is not a recipe" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        (f"{__name__}.py:own_recipe", f"; write the name of the module, in its folder: {__name__}:own_recipe --import"),
        (f"./{__name__}.py:own_recipe", f": {__name__}:own_recipe --import {__name__} (vantage recipes"),
        ("own_recipe", f"there is no recipe 'own_recipe'; did you mean {__name__}:own_recipe? (vantage recipes"),
    ],
)
def test_a_recipe_of_ones_own_is_suggested_as_it_is_written(
    name: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recipes", name, "--import", __name__]) == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "place"),
    [("./near_rule.py", ""), ("own/near_rule.py", " in the folder own, or PYTHONPATH=own before the command")],
)
def test_a_module_that_is_given_by_its_path_is_named(path: str, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The error was Python's own, about relative imports."""
    assert main(["recipes", "--import", path]) == 2
    message = f"vantage: --import {path} is a path: give a module's name: --import near_rule{place}\n"
    assert capsys.readouterr().err == message


def test_an_error_of_a_recipe_of_ones_own_is_no_bug_of_vantage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes", f"{__name__}:broken_recipe", "--size", "32", "--import", __name__]) == 2
    message = capsys.readouterr().err
    assert f"the recipe {__name__}:broken_recipe at 32 pixels: ZeroDivisionError: " in message
    assert message.count("\n") == 1


def test_the_command_to_copy_next_names_the_module_and_quotes_the_folder(
    training: TrainingStub, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without its module, a run with parts of one's own can be neither judged nor resumed."""
    folder = tmp_path / "my run"
    words = ["pretrain", f"{__name__}:own_recipe", "--data", str(images), "--out", str(folder), "--import", __name__]
    assert main(words) == 0
    judge = f"next: vantage evaluate knn '{folder}' --data LABELED_IMAGES --import {__name__}\n"
    assert judge in capsys.readouterr().err
    training.finished = False
    assert main(["resume", str(folder), "--import", __name__]) == 130
    assert f"continue with: vantage resume '{folder}' --import {__name__}\n" in capsys.readouterr().err


def test_the_command_to_copy_next_names_the_modules_that_the_recipe_takes_parts_from(
    training: TrainingStub,
    images: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "assembled.py").write_text(f"from {__name__} import own_recipe\n")
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "run"
    words = ["--data", str(images), "--out", str(folder), "--import", "assembled"]
    assert main(["pretrain", "assembled:own_recipe", *words]) == 0
    judge = f"next: vantage evaluate knn {folder} --data LABELED_IMAGES --import assembled --import {__name__}\n"
    assert judge in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("KeepAll(0.5)", f"there is no part 'KeepAll'; did you mean {__name__}:KeepAll?"),
        (f"{__name__}.py:KeepAll(0.5)", f"write it without .py: {__name__}:KeepAll\n"),
        ("other.py:KeepAll(0.5)", "other.py:KeepAll names a file: write it without .py: other:KeepAll\n"),
        (f"{__name__}:KeepAl(0.5)", f"there is no {__name__}:KeepAl here; did you mean KeepAll?"),
    ],
)
def test_a_part_of_ones_own_is_suggested_as_it_is_written(
    rule: str, message: str, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pretrain", "moco_v2", "--data", str(images), "--out", str(tmp_path / "run"), "--import", __name__]
    assert main([*words, "--set", f"negatives=({rule},)"]) == 2
    assert message in capsys.readouterr().err


def test_a_run_is_shown_like_a_recipe_but_not_trained_like_one(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, folder = own_recipe(32), tmp_path / "runs" / "own1"
    settings.write(run, folder)
    assert main(["recipes", str(folder)]) == 2
    assert "is not part of Vantage" in capsys.readouterr().err
    assert main(["recipes", str(folder), "--import", __name__]) == 0
    output = capsys.readouterr().out
    assert f"The run in {folder}." in output and as_python(run) in output
    assert "\nbranches.0.negatives.0.share=1.0\n    Share that is kept.\n" in output
    assert main(["recipes", str(tmp_path / "runs" / "own2")]) == 2
    assert f"holds no run: there is no such folder; did you mean {folder}?" in capsys.readouterr().err
    assert main(["pretrain", str(folder), "--data", str(images)]) == 2
    assert f"is a run, not a recipe: its values are fitted to its images. vantage pretrain RECIPE --init {folder}" in (
        capsys.readouterr().err
    )


def test_a_name_that_is_both_means_the_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings.write(own_recipe(32), tmp_path / "simclr")
    assert main(["recipes", "simclr"]) == 0
    assert main(["recipes", "./simclr"]) == 2, "the run, whose parts need --import"


def test_an_unknown_recipe_is_reported_in_a_short_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes", "zzz"]) == 2
    assert capsys.readouterr().err == "vantage: there is no recipe 'zzz' (vantage recipes lists them all)\n"


def test_pretrain_builds_a_recipe_once_for_each_size(
    training: TrainingStub, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And once more at 224 pixels to see that it is a recipe, and at the size of the views to show what options do."""
    sizes: list[int] = []

    def counted(size: int) -> Run:
        sizes.append(size)
        return moco_v2(size)

    monkeypatch.setattr(sys.modules[__name__], "own_recipe", counted)
    words = ["pretrain", f"{__name__}:own_recipe", "--data", images, "--out", tmp_path / "run", "--backbone", "resnet9"]
    run_of(training, "--import", __name__, *words)
    assert sizes == [224, 224, 32, 32]


@pytest.mark.parametrize("recipe", [flat_recipe, still_recipe])
def test_an_optimizer_for_a_learning_rate_without_a_base_is_given_with_its_rate(
    recipe: Callable[[int], Run],
    training: TrainingStub,
    images: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--import", __name__, "pretrain", f"{__name__}:{recipe.__name__}", "--data", str(images)]
    words += ["--out", str(tmp_path / "run")]
    assert main([*words, "--optimizer", "adamw"]) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert "has no base above 0: replace the option by --set 'optimizer=AdamW()'" in message
    instead = shlex.split(message.partition("replace the option by ")[2].partition(",")[0])
    run = run_of(training, *words, *instead)
    assert run.optimizer == AdamW() and run.learning_rate == CosineByStep(0.001)


@pytest.mark.parametrize(
    ("name", "optimizer", "rate"),
    [
        (f"{__name__}:Nesterov", Nesterov(), 0.03),
        ("SGD(momentum=0.8)", SGD(0.8), 0.03),
        ("sgd", moco_v2(32).optimizer, 0.03),
        ("AdamW(weight_decay=0.05)", AdamW(weight_decay=0.05), 1e-3),
    ],
)
def test_an_optimizer_comes_with_its_learning_rate_and_one_of_ones_own_keeps_it(
    name: str, optimizer: Any, rate: float, training: TrainingStub, images: Path, tmp_path: Path
) -> None:
    words = ["--import", __name__, "pretrain", "moco_v2", "--data", images, "--out", tmp_path / "run"]
    run = run_of(training, *words, "--batch-size", "8", "--optimizer", name)
    assert run.optimizer == optimizer
    assert run.learning_rate.base == pytest.approx(rate / 32)  # pyright: ignore
