"""The command line: words become the run they describe, mistakes are reported in a few lines; results can be piped."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tiny import saved_run, tiny_run

import vantage
from vantage import Run
from vantage.cli import main
from vantage.cli.printing.summary import short, summary
from vantage.cli.reading.images import absolute
from vantage.composition.expression import read_value
from vantage.composition.fields import field_help, leaves, replace_at, settings_in
from vantage.composition.printing import as_python
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError
from vantage.estimators import JCL, InfoNCE
from vantage.negatives import OtherImages, Ring
from vantage.planning.sizing import override
from vantage.planning.speed import Speed
from vantage.recipes import RECIPES, VARIANTS, moco_v1, moco_v2, simclr
from vantage.schedules import CosineByEpoch, CosineByStep
from vantage.training.folder import settings
from vantage.training.loop import TrainingOutcome
from vantage.training.optimizers import LARS, SGD, AdamW
from vantage.training.run import Data, Hardware

MOST_LINES = 4


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


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("COLUMNS", "100")


def make_images(folder: Path, side: int = 40, count: int = 20) -> Path:
    generator = np.random.default_rng(0)
    for name in "ab":
        (folder / name).mkdir(parents=True)
        for number in range(count):
            pixels = generator.integers(0, 255, (side + 4, side, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_images(tmp_path_factory.mktemp("images"))


@dataclass
class TrainingStub:
    """Stands in for training, and keeps what it was called with."""

    run: Run | None = None
    folder: Path | None = None
    finished: bool = True
    init: str | None = None
    speed: Speed = Speed(0.01)

    def train(self, run: Run, folder: Path, progress: Any = None, init: str | None = None) -> TrainingOutcome:
        self.run, self.folder, self.init = run, folder, init
        settings.write(run, folder)
        return TrainingOutcome(folder, 5, self.finished)

    def resume(self, folder: Path, run: Run | None = None, progress: Any = None) -> TrainingOutcome:
        self.run, self.folder = run, folder
        return TrainingOutcome(folder, 5, self.finished)


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> TrainingStub:
    stub = TrainingStub()
    monkeypatch.setattr(
        "vantage.planning.speed.measure_speed", lambda run, source, seconds=2.0, progress=None: stub.speed
    )
    monkeypatch.setattr("vantage.training.loop.train", stub.train)
    monkeypatch.setattr("vantage.training.loop.resume", stub.resume)
    return stub


def run_of(training: TrainingStub, *words: str | Path) -> Run:
    assert main([str(word) for word in words]) == 0
    assert training.run is not None
    return training.run


# Fields


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


def test_the_learning_rate_follows_batch_and_epochs_unless_it_is_given() -> None:
    fitted_run = moco_v1(224)
    run = override(fitted_run, {"batch_size": 512, "epochs": 100})
    assert run.learning_rate.base == pytest.approx(0.06) and run.learning_rate.milestones == (60, 80)
    run = override(fitted_run, {"batch_size": 512, "epochs": 100, "learning_rate.base": 0.5})
    assert run.learning_rate.base == 0.5 and run.learning_rate.milestones == (60, 80)
    assert override(fitted_run, {}) == fitted_run


def test_suggestions_look_at_the_whole_and_at_the_last_part() -> None:
    flags = ["--epochs", "--branches.0.estimator.temperature", "--data.place"]
    assert did_you_mean("--epocs", flags) == "; did you mean --epochs?"
    assert did_you_mean("--temperatur", flags) == "; did you mean --branches.0.estimator.temperature?"
    assert did_you_mean("--zzz", flags, "; none") == "; none"
    assert did_you_mean("--size", ["--a.size", "--b.size", "--c.size"]).endswith("(or 1 more)?")


# Pretraining


def test_pretrain_fits_the_recipe_and_lets_the_user_win(training: TrainingStub, images: Path, tmp_path: Path) -> None:
    words = ["pretrain", "moco_v2", "--data", images, "--out", tmp_path / "run"]
    fitted_run = moco_v2(32).fit(40)
    assert run_of(training, *words) == replace(fitted_run, data=Data(str(images)))
    words[-1] = tmp_path / "other"
    run = run_of(
        training, *words, "--set", "branches.0.estimator.temperature=0.17", "--set=branches.0.memory.length=77"
    )
    assert run.branches[0].estimator == InfoNCE(0.17)
    assert run.branches[0].memory.length == 77
    assert run.batch_size == fitted_run.batch_size


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--epochs 5", {"epochs": 5}),
        ("--batch-size 4", {"batch_size": 4, "learning_rate.base": pytest.approx(0.03 * 4 / 256)}),
        ("--batch_size 4 --learning-rate 0.5", {"batch_size": 4, "learning_rate.base": 0.5}),
        ("--devices 2 --precision 32-true", {"hardware": Hardware(devices=2, precision="32-true")}),
        ("--devices 2 --nodes 4", {"hardware": Hardware(devices=2, nodes=4)}),
        ("--set accumulate=8", {"accumulate": 8, "batch_size": 8}),
        ("--set views.views.0.crop.scale=0.5,0.75", {"views.views.0.crop.scale": (0.5, 0.75)}),
        ("--set branches.0.keys=1 --seed 7", {"branches.0.keys": (1,), "seed": 7}),
        ("--set hardware.compile=True", {"hardware.compile": True}),
        ("--on-bad-image stop --num-workers 1", {"data.on_bad_image": "stop", "data.num_workers": 1}),
        ("--set optimizer.weight-decay=0.25", {"optimizer.weight_decay": 0.25}),
        ("--set negatives=(OtherImages(),Ring())", {"branches.0.negatives": (OtherImages(), Ring())}),
        ("--set temperature=.3 --set branches.0.estimator=JCL()", {"branches.0.estimator": JCL()}),
        ("--size 64", {"views.views.0.crop.size": 64, "encoders.encoder.backbone.small": True}),
        ("--size 224", {"views.views.0.crop.size": 224, "encoders.encoder.backbone.depth": 50}),
        ("--backbone resnet50", {"encoders.encoder.backbone.depth": 50, "encoders.encoder.head.hidden": 2048}),
        (
            "--backbone resnet18 --size 224",
            {"encoders.encoder.backbone.depth": 18, "encoders.encoder.head.hidden": 512},
        ),
        (
            "--backbone Convolutions((4,6))",
            {"encoders.encoder.backbone.widths": (4, 6), "encoders.encoder.head.hidden": 6},
        ),
        ("--optimizer sgd", {"optimizer": SGD(weight_decay=5e-4)}),
        ("--optimizer adamw --batch-size 16", {"optimizer": AdamW(), "learning_rate.base": pytest.approx(1e-3 / 16)}),
        ("--optimizer lars --learning-rate 1", {"optimizer": LARS(), "learning_rate.base": 1.0}),
    ],
)
def test_any_field_is_set_by_its_path(
    words: str,
    expected: dict[str, Any],
    training: TrainingStub,
    images: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MASTER_ADDR", "node0")  # where several machines would meet
    run = run_of(training, "pretrain", "moco_v2", "--data", images, "--out", tmp_path / "run", *words.split())
    for path, value in expected.items():
        current: Any = run
        for name in path.split("."):
            current = current[int(name)] if isinstance(current, tuple) else getattr(current, name)
        assert current == value


def test_a_run_starts_from_another(
    training: TrainingStub, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved_run(tmp_path / "first", tiny_run())
    words = ["pretrain", "ring_moco", "--data", images, "--out", tmp_path / "run", "--init", tmp_path / "first"]
    assert run_of(training, *words).recipe == "ring_moco" and training.init == str(tmp_path / "first")
    assert main([*map(str, words[:2]), "--data", "nowhere", "--init", str(tmp_path / "nothing")]) == 2
    assert "nothing holds no run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "offered"),
    [("ring_ir", True), ("ring_ir --set mean=0.5,0.5,0.5", False), ("ring_ir --size 224", False), ("moco_v2", False)],
)
def test_statistics_of_small_images_are_offered(
    words: str, offered: bool, training: TrainingStub, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_of(training, "pretrain", *words.split(), "--data", images, "--out", tmp_path / "run").epochs
    output = " ".join(capsys.readouterr().err.split())
    assert (f"vantage views statistics ring_ir --data {images}" in output) == offered


@pytest.mark.parametrize(("side", "size"), [(20, 32), (48, 32), (49, 64), (97, 224)])
def test_the_size_of_views_follows_the_images(side: int, size: int, training: TrainingStub, tmp_path: Path) -> None:
    folder = make_images(tmp_path / "images", side, 8)
    run = run_of(
        training, "pretrain", "simclr", "--data", folder, "--out", tmp_path / "run", "--set", "branches.0.query=1"
    )
    assert run.views == simclr(size).views
    assert run.branches[0].query == 1


def test_what_was_fitted_and_what_was_given_is_reported(
    training: TrainingStub, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pretrain", "moco_v1", "--data", images, "--out", tmp_path / "run", "--epochs", "6"]
    run_of(training, *words)
    output = capsys.readouterr()
    assert output.out == ""
    assert "branches.0.memory.length: recipe 4,096, this run 20 (fitted to the images)" in output.err
    assert "epochs: recipe 200, this run 6 (given)" in output.err
    assert re.search(r"learning_rate\.milestones\.0: recipe 120, this run .* \(follows what was given\)", output.err)
    assert f"images: 40 from {images}" in output.err
    assert "the short side of the images is 40 px" in output.err
    words[5] = tmp_path / "quiet"
    run_of(training, *words, "--quiet")
    assert capsys.readouterr() == ("", "")


def test_other_processes_of_a_run_say_nothing(
    training: TrainingStub,
    images: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    run_of(training, "pretrain", "moco_v2", "--data", images, "--out", tmp_path / "run")
    assert capsys.readouterr().err == ""


def test_a_stopped_run_is_no_success(
    training: TrainingStub, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    training.finished = False
    assert main(["pretrain", "moco_v2", "--data", str(images), "--out", str(tmp_path / "run")]) == 130
    assert f"continue with: vantage resume {tmp_path / 'run'}" in capsys.readouterr().err


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
    assert main([*words[:1], f"{__name__}:no_recipe", *words[2:], "--import", __name__]) == 2
    assert "is not a recipe" in capsys.readouterr().err


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


# Mistakes


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        ("pretran", "no verb 'pretran'; did you mean pretrain?"),
        ("zzz", "verbs: recipes, pretrain"),
        ("--quiet", "no verb is given"),
        ("recipes --import", "--import needs the name of a module"),
        ("recipes --import no_such_module_here", "no module of this name is in this folder or installed"),
        ("recipes moco_v3", "no recipe 'moco_v3'; did you mean moco_v"),
        ("recipes --sise 3", "no option --sise; did you mean --size?"),
        ("pretrain", "pretrain needs --data: a folder"),
        ("pretrain --data OUT/nowhere --out OUT", "nowhere does not exist"),
        ("pretrain --data IMAGES --out OUT --minutes 0", "--minutes 0: give a number above 0"),
        ("pretrain moco_v2 --data IMAGES --out OUT --minutes soon", "--minutes: expected a number, found soon"),
        ("pretrain moco --data x --out y", "no recipe 'moco'; did you mean moco_v"),
        ("pretrain moco_v2 --out OUT", "needs --data: a folder"),
        ("pretrain moco_v2 --out OUT --data OUT/nowhere", "nowhere does not exist"),
        ("pretrain moco_v2 --out OUT --data IMAGES --epocs 3", "no option --epocs; did you mean --epochs?"),
        ("pretrain moco_v2 --resume RUN", "no option --resume; did you mean vantage resume RUN?"),
        (
            "pretrain moco_v2 --out OUT --data IMAGES --epochs five",
            "--epochs: expected a whole number, found five",
        ),
        (
            "pretrain moco_v2 --out OUT --data IMAGES --epochs",
            "--epochs: expected a whole number, found nothing",
        ),
        ("pretrain moco_v2 --out OUT --data IMAGES --epochs 0", "epochs is 0"),
        ("pretrain moco_v2 --out OUT --data IMAGES --nodes 2", "not started by torchrun"),
        ("pretrain moco_v2 --out OUT --data IMAGES --precision 8", "expected 32-true, bf16-mixed,"),
        ("pretrain moco_v2 --out OUT --data IMAGES --batch-size 7 --set accumulate=2", "use a batch of 6"),
        ("pretrain moco_v2 --out OUT --data IMAGES --set memory.length=0", "a queue of length 0"),
        ("pretrain moco_v2 --out OUT --data IMAGES --set epochs", "'epochs' sets nothing: write PATH=VALUE"),
        (
            "pretrain moco_v2 --out OUT --data IMAGES --set temprature=1",
            "'temprature'; did you mean branches.0.esti",
        ),
        ("pretrain moco_v2 --out OUT --data IMAGES --set negatives=Rnig()", "no part 'Rnig'; did you mean Ring?"),
        ("pretrain moco_v2 --out OUT --data IMAGES --set estimator=Ring()", "expected Estimator .*found the part Ring"),
        ("pretrain moco_v2 --out OUT --data IMAGES --set recipe=x", "no field 'recipe'"),
        ("pretrain moco_v2 --out OUT --data IMAGES --backbone resnet19", "no backbone 'resnet19'; did you mean resnet"),
        (
            "pretrain moco_v2 --out OUT --data IMAGES --optimizer adm",
            "expected sgd, adamw or lars, found adm",
        ),
        ("pretrain moco_v2 --out OUT --data IMAGES --size 0", "a crop's size must be 1 to 4,096 pixels, found 0"),
        ("views show moco_v2 --data IMAGES --size 0", "a crop's size must be 1 to 4,096 pixels, found 0"),
        ("pretrain moco_v2 --out OUT --data IMAGES stray", "pretrain has no use for 'stray': --data takes one value"),
        ("pretrain moco_v2 --out IMAGES/a/0.png --data IMAGES", "is a file: name a folder"),
        ("pretrain moco_v2 --out RUN --data IMAGES", "already holds a run: continue it with `vantage resume"),
        ("resume", "resume needs RUN: folder of the run"),
        ("resume OUT", "holds no run"),
        ("resume RUN --set epochs=7", "epochs is 8 in the run, 7 was asked"),
        ("resume RUN --set branches.0.memory.length=7", r"branches\.0\.memory\.length is 20 in the run, 7 was asked"),
        ("resume RUN --epochs 7", "no option --epochs; did you mean --set epochs=7?"),
        ("embed RUN", "needs --data"),
        ("embed RUN --data IMAGES", "needs --out"),
        ("embed RUN --data IMAGES --out OUT", "holds no checkpoint"),
        ("embed --data IMAGES --out OUT", "RUN"),
        ("embed RUN --data OUT/nowhere --out OUT.npy", "holds no checkpoint"),
        ("embed RUN --data IMAGES --quite", "no option --quite; did you mean --quiet?"),
        ("evaluate knn RUN --data OUT/nowhere", "holds no checkpoint"),
        ("evaluate", "needs a protocol first"),
        ("evaluate kn RUN --data IMAGES", "no protocol 'kn'; did you mean knn?"),
        ("evaluate knn RUN", "needs --data"),
        ("evaluate knn RUN --data IMAGES --kk 3", "no option --kk; did you mean --k?"),
        ("evaluate knn RUN --data IMAGES --k 0", "k is 0"),
        ("evaluate knn RUN --data IMAGES --set k=0", "k is 0"),
        ("evaluate nowhere:KNN RUN --data IMAGES", "allow it by name .--import nowhere"),
        (
            "export RUN --to onxn",
            "--to: expected torchvision, timm, safetensors, detectron2, onnx or torch, found onxn",
        ),
        ("export RUN --to onnx --data OUT/nowhere", "nowhere does not exist"),
        ("export RUN --out OUT", "needs --to"),
        ("demo --out IMAGES/a/0.png", "is a file: name a folder"),
        ("demo --oot x", "no option --oot; did you mean --out?"),
    ],
)
def test_a_mistake_is_reported_in_a_few_lines(
    words: str, pattern: str, training: TrainingStub, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.write(replace(moco_v2(32).fit(40), epochs=8), tmp_path / "run")
    paths = {"IMAGES": images, "RUN": tmp_path / "run", "OUT": tmp_path / "out"}
    words_with_paths = re.sub("IMAGES|RUN|OUT", lambda match: str(paths[match[0]]), words)
    assert main(words_with_paths.split()) == 2
    output = capsys.readouterr()
    mistake = output.err[output.err.index("vantage: ") :]
    assert re.search(pattern, mistake), mistake
    assert len(mistake.splitlines()) <= MOST_LINES and "Traceback" not in output.err
    assert output.out == ""
    assert training.folder is None


@pytest.mark.parametrize(
    ("code", "problem"),
    [("\n1 / 0", "ZeroDivisionError: division by zero"), ("\nimport nowhere", "ModuleNotFoundError: No module named")],
)
def test_a_mistake_in_an_imported_module_is_its_own(
    code: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    Path("broken_part.py").write_text(code)
    assert main(["recipes", "--import", "broken_part"]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"vantage: --import broken_part: {problem}")
    assert message.endswith("broken_part.py, line 2)\n") and message.count("\n") == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--rate.peak 0.5", "--learning-rate"),
        ("--learning-rat 0.5", "--learning-rate"),
        ("--lr .1", "--learning-rate"),
        ("--optimizer.lr .1", "--learning-rate"),
        ("--rate.at-epochs 3 4", "--set learning_rate.milestones=3,4"),
        ("--batch 8", "--batch-size"),
        ("--workers 2", "--num-workers"),
        ("--data.workers 2", "--num-workers"),
        ("--data.place photos", "--data"),
        ("--data.images 7", "--set data.max_images=7"),
        ("--hardware.devices 2", "--devices"),
        ("--hardware.nodes 2", "--nodes"),
        ("--nnodes 2", "--nodes"),
        ("--hardware.precision 32-true", "--precision"),
        ("--device 7", "--devices"),
        ("--hardware.compile", "--set hardware.compile=True"),
        ("--hardware.no-compile", "--set hardware.compile=False"),
        ("--branches.0.estimator.temperature 0.1", "--set branches.0.estimator.temperature=0.1"),
        ("--branches.0.estimator.temperature=0.1", "--set branches.0.estimator.temperature=0.1"),
        ("--temperature 3", "--set branches.0.estimator.temperature=3"),
        ("--tau 3", "--set branches.0.estimator.temperature=3"),
        ("--views.views.0.crop.scale 0.5 1", "--set views.views.0.crop.scale=0.5,1"),
        ("--branches.0.estimator.temprature 1", "--set branches.0.estimator.temperature=1"),
        ("--optimizer.spare x", "--set optimizer.exclude=x"),
        ("--monitoring.log-every 1", "--set monitoring.log_every=1"),
    ],
)
def test_names_of_earlier_versions_and_other_programs_are_known(
    old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pretrain", "moco_v1", "--data", "photos", *old.split()]) == 2
    message = capsys.readouterr().err
    assert message.endswith(f"; did you mean {new}?\n") and message.count("\n") == 1, message


def test_a_mistake_in_a_value_is_reported_before_the_images_are_looked_at(
    training: TrainingStub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pretrain", "moco_v2", "--data", "/nowhere", "--out", str(tmp_path / "run"), "--epochs", "five"]) == 2
    assert "--epochs" in capsys.readouterr().err


@pytest.mark.slow
def test_a_terminal_without_greek_letters_or_boxes_is_served(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(vantage.__file__).parents[1]), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "vantage.cli"]
    process = subprocess.run([*command, "recipes", "moco_v2"], capture_output=True, text=True, env=environment)
    assert process.returncode == 0 and "MLP head without normalization, ? .2" in process.stdout, process.stderr
    words = ["export", str(tmp_path), "--to", "timn"]
    process = subprocess.run([*command, *words], capture_output=True, text=True, env=environment)
    assert process.returncode == 2 and process.stderr.startswith("vantage: --to: expected torchvision, timm"), process
    assert "---" not in process.stderr


def test_a_bug_shows_where_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, images: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def buggy(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("vantage.training.loop.train", buggy)
    assert main(["pretrain", "moco_v2", "--data", str(images), "--out", str(tmp_path / "run"), "--quiet"]) == 1
    message = capsys.readouterr().err
    assert "Traceback" in message and "ZeroDivisionError: a bug" in message


def test_an_interrupt_is_one_line(
    monkeypatch: pytest.MonkeyPatch, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("vantage.training.images.open_images", interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start background jobs that ignore it
    try:
        assert main(["pretrain", "moco_v2", "--data", str(images), "--out", str(tmp_path / "run")]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "vantage: interrupted\n"


# Resuming


def test_resume_may_change_hardware_monitoring_and_place(training: TrainingStub, tmp_path: Path) -> None:
    stored_run = moco_v2(32).fit(40)
    settings.write(stored_run, tmp_path)
    run = run_of(training, "resume", tmp_path, "--precision=32-true", "--set", "monitoring.log_every=3", "--data", "x")
    assert run == replace_at(stored_run, {"hardware.precision": "32-true", "monitoring.log_every": 3, "data.path": "x"})
    assert run_of(training, "resume", tmp_path, "--set", f"epochs={stored_run.epochs}") == stored_run


def test_a_run_finds_its_images_from_any_folder(
    training: TrainingStub,
    images: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(images.parent)
    run = run_of(training, "pretrain", "moco_v2", "--data", images.name, "--out", tmp_path / "run")
    assert run.data.path == str(images.parent / images.name)
    assert absolute("torchvision:CIFAR10") == "torchvision:CIFAR10"
    assert absolute(f"{images.name}#a") == f"{images}#a"
    settings.write(replace_at(moco_v2(32).fit(40), {"data.path": "gone"}), tmp_path)
    assert main(["resume", str(tmp_path)]) == 2
    assert "the images of the run are not at gone: give their new location with --data PATH" in capsys.readouterr().err


# What is printed


def test_recipes_are_listed_with_what_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes"]) == 0
    lines, _, others = capsys.readouterr().out.partition("\n\nother published settings:\n")
    assert others.split() == [recipe.__name__ for recipe in VARIANTS] and max(map(len, others.splitlines())) <= 100
    assert len(lines.splitlines()) + len(others.splitlines()) <= 40, "a screen"
    lines = lines.splitlines()
    assert main(["recipes", "ring-moco-decoupled"]) == 0
    assert "Decoupled(temperature=0.07)" in capsys.readouterr().out
    assert len(lines) == len(RECIPES) and all(
        any(f" {recipe.__name__} " in line for line in lines) for recipe in RECIPES
    )
    assert len(lines) <= 40 and max(map(len, lines)) <= 100 and len(lines[0]) > 60
    assert main(["recipes", "MoCo-v2", "--size", "32"]) == 0
    output = capsys.readouterr().out
    assert "2003.04297" in output and "memory=Queue(length=4096)" in output
    assert "branches.0.estimator.temperature=0.1\n    τ: what cosines are divided by." in output
    assert "branches.0.negatives=()" in output


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_a_recipe_prints_itself_as_python(recipe: Callable[[int], Run]) -> None:
    run = recipe(32)
    text = as_python(run)
    assert max(map(len, text.splitlines())) <= 120
    assert read_value(text, Run, "run") == run
    assert eval(text, {name: getattr(vantage, name) for name in dir(vantage)}) == run


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "usage: vantage VERB"),
        ("--help", "usage: vantage VERB"),
        ("--version", "vantage 0"),
        ("recipes --help", "--size N"),
        ("pretrain --help", "--set PATH=VALUE"),
        ("pretrain moco_v2 --help", "--learning-rate N"),
        ("resume --help", "--devices N"),
        ("embed --help", "--device DEVICE"),
        ("evaluate --help", "nearest-neighbor"),
        ("evaluate knn --help", "--temperature N"),
        ("export --help", "(torchvision, timm or detectron2)"),
        ("demo --help", "--out FOLDER"),
    ],
)
def test_help_is_on_standard_output(words: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == (0 if words else 2)
    output = capsys.readouterr()
    assert sentence in output.out
    assert output.err == ""


def test_help_does_not_wait_for_torch() -> None:
    """That takes seconds. `evaluate` and `analyse` list what their rooms hold, so they wait."""
    program = """if True:
        import sys
        from vantage.cli import main
        from vantage.cli.program import VERBS
        verbs = [verb.__name__ for verb in VERBS if verb.__name__ not in ("evaluate", "analyse")]
        assert all(main([*verb, "--help"]) == 0 for verb in ([], *([verb] for verb in verbs)))
        assert "torch" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


VERBS_WITH_HELP = (
    "", "recipes", "pretrain", "resume", "embed", "report", "evaluate", "evaluate knn", "evaluate detection",
    "evaluate finetune", "evaluate svm", "evaluate transfer", "evaluate retrieval", "evaluate segmentation", "compare",
    "benefit", "find", "find duplicates", "shots", "analyse", "analyse similarity", "analyse optimal-toy",
    "analyse views", "analyse views crop", "views", "views show", "views learn", "views statistics", "reproduce",
    "reproduce infomin-table-4", "export", "convert", "demo",
)  # fmt: skip


@pytest.mark.parametrize("verb", VERBS_WITH_HELP)
def test_help_fits_a_screen(verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*verb.split(), "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 50 and max(map(len, lines)) <= 80
    assert "%%" not in "".join(lines)


def test_a_summary_names_every_part() -> None:
    rows = dict(summary(moco_v2(32).fit(40), 40))
    parts = "Queue(length=20) · OtherViews() · all negatives · InfoNCE(temperature=0.1)"
    assert rows["branch"] == f"{parts} · query view 0, key view 1"
    assert rows["views"].startswith("2 × RandomResizedCrop(size=32")
    assert rows["images"].startswith("40 from")
    assert {"branch 0", "branch 1"} <= dict(summary(simclr(224))).keys()
    assert short(CosineByEpoch(0.03)) == "CosineByEpoch(base=0.03)"
    assert short((InfoNCE(), InfoNCE())) == "2 × InfoNCE()"


# All of it, with nothing replaced


def test_from_images_to_a_backbone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = make_images(tmp_path / "images", 16, count=8)
    quick_options = ["--size", "16", "--set", "encoders.encoder.normalization.groups=4", "--precision", "32-true"]
    run = tmp_path / "run"
    pretrain = ["pretrain", "moco_v2", "--data", images, "--out", run, "--epochs", "1", *quick_options]
    later = [
        ["resume", run, "--set", "monitoring.log-every=1"],
        ["embed", run, "--data", images, "--out", tmp_path / "features.npy"],
        ["evaluate", "knn", run, "--data", images, "--k", "3", "--baselines", "--out", tmp_path / "knn.json"],
        ["export", run, "--to", "torchvision"],
    ]
    for words in (pretrain, *later):
        assert main([*map(str, words), "--quiet"]) == 0, capsys.readouterr().err
    output = capsys.readouterr()
    assert output.err == ""
    assert settings.read(run).epochs == 1
    assert np.load(tmp_path / "features.npy").shape == (16, 512)
    assert json.loads((tmp_path / "knn.json").read_text())["settings"]["k"] == 3
    assert "moco_v2: top-1 " in output.out and "raw pixels: top-1 " in output.out
    backbone = run / "backbone-torchvision.safetensors"
    assert f"load_state_dict(load_file('{backbone}'), strict=True)" in output.out and backbone.is_file()


def test_the_process_ends_with_the_status(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(vantage.__file__).parents[1])}
    command = [sys.executable, "-m", "vantage.cli", "pretran"]
    process = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr.startswith("vantage: there is no verb 'pretran'; did you mean pretrain?")


def test_the_command_line_itself_imports_no_torch() -> None:
    code = (
        "import sys, types\n"
        "package = types.ModuleType('vantage')\n"
        f"package.__path__ = [{str(Path(vantage.__file__).parent)!r}]\n"
        "sys.modules['vantage'] = package\n"
        "from vantage.cli import main\n"
        "assert main(['pretrain', '--help']) == 0\n"
        "assert main(['--help']) == 0 and main(['embed', '--help']) == 0 and main(['pretran']) == 2\n"
        "assert 'torch' not in sys.modules, 'torch is imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
