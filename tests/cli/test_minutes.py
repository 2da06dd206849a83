"""`vantage pretrain --minutes`: the plan is shown, options win, all processes share it, the end says what it gave."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.torch import save_file
from small_runs import small_run
from stubbed_training import TrainingStub
from tiny import TinyBackbone, saved_run, tiny_run

from vantage.cli import main
from vantage.composition.codec import encode
from vantage.composition.fitting import parts_of
from vantage.encoders import Convolutions, Encoder, ResNet
from vantage.planning.speed import Speed
from vantage.training.folder import settings
from vantage.training.loop import train
from vantage.training.run import Run

pytestmark = pytest.mark.usefixtures("own_cache")

Call = Callable[..., Run]
HEADINGS = ("network: ", "method: ", "epochs: ", "speed: ", "in ten times the time: ")


@pytest.fixture
def call(training: TrainingStub, images: Path, tmp_path: Path) -> Call:
    def pretrain(*words: str) -> Run:
        assert main(["pretrain", *words, "--data", str(images), "--out", str(tmp_path / "run")]) == 0
        assert training.run is not None
        return training.run

    return pretrain


def test_minutes_alone_make_a_run_and_five_lines_show_it(
    call: Call,
    training: TrainingStub,
    capsys: pytest.CaptureFixture[str],
) -> None:
    training.speed = Speed(0.05)
    run = call("--minutes", "2")
    output = capsys.readouterr()
    lines = output.err.splitlines()
    first = lines.index("plan for 2 minutes")
    tried = lines[lines.index("measuring the speed of this machine on these images") + 1 : first]
    assert tried and all(re.fullmatch(r"  \w+\(.*\), views of .* px: [\d,]+ images/s", line) for line in tried)
    assert len({line.split(" px: ")[0] for line in tried}) == len(tried), "the chosen one is measured again"
    assert [line.strip().startswith(head) for line, head in zip(lines[first + 1 :], HEADINGS, strict=False)] == [
        True
    ] * 5
    assert not output.out and "changed from the recipe" not in output.err
    assert run.recipe == "simclr" and run.data.path and run.monitoring.minutes > 0
    assert 80 < run.epochs * 0.25 <= 112  # five steps of a twentieth of a second each


def test_parts_that_batchnorm_cannot_share_are_refused_before_all_images_are_tried(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a recipe that is named: a plan's own gives each part a group."""
    monkeypatch.setattr("vantage.cli.pretrain.minutes.look_at", lambda *_: pytest.fail("all images are tried"))
    out = tmp_path / "run"
    words = ["--data", str(images), "--out", str(out), "--minutes", "2", "--set", "accumulate=2"]
    assert main(["pretrain", "simclr", *words]) == 2
    assert "one group of the joint batch, which 2 accumulated parts" in capsys.readouterr().err and not out.exists()


def test_a_start_whose_backbone_fits_at_no_size_is_refused_before_speeds_are_measured(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    weights, out = tmp_path / "weights.safetensors", tmp_path / "run"
    save_file(ResNet(18).build().state_dict(), weights)
    monkeypatch.setattr("vantage.cli.pretrain.plan_run", lambda *_: pytest.fail("speeds are measured"))
    words = ["--data", str(images), "--out", str(out), "--minutes", "2", "--init", str(weights)]
    for size in ([], ["--size", "32"]):
        assert main(["pretrain", "--backbone", "resnet34", *words, *size]) == 2
        assert "are not those of this backbone: " in capsys.readouterr().err and not out.exists()
    with pytest.raises(pytest.fail.Exception, match="speeds are measured"):
        main(["pretrain", "--backbone", "resnet18", *words])


@pytest.mark.parametrize("recipe", ["", "moco_v2"])
def test_a_plan_that_starts_from_a_run_has_its_network(recipe: str, call: Call, images: Path, tmp_path: Path) -> None:
    start = small_run("simclr", str(images), epochs=1)
    train(start, tmp_path / "start")
    run = call(*filter(None, [recipe]), "--minutes", "2", "--init", str(tmp_path / "start"), "--import", "tiny")
    assert [part.backbone for part in parts_of(run.encoders) if isinstance(part, Encoder)] == [TinyBackbone()]


@pytest.mark.parametrize(
    ("words", "threads"), [((), 1), (("moco_v2",), 1), (("moco_v2", "--set", "hardware.threads=2"), 2)]
)
def test_cores_that_others_use_get_no_thread(
    words: tuple[str, ...],
    threads: int,
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("vantage.machine.load.threads_for_free_cores", lambda: 1)
    assert call(*words).hardware.threads == threads
    note = "other programs are using cores of this machine: training with 1 thread, even"
    assert (note in capsys.readouterr().err) == (threads == 1)


def test_half_an_hour_is_planned_where_nothing_is_given(
    training: TrainingStub,
    images: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["pretrain", "--data", str(images)]) == 0
    assert training.folder == Path("runs/planned") and "plan for 30 minutes" in capsys.readouterr().err


def test_a_recipe_is_sized_and_the_table_says_what_was_planned(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    run = call("moco_v2", "--minutes", "1", "--set", "temperature=0.3")
    message = capsys.readouterr().err
    assert run.recipe == "moco_v2" and run.branches[0].estimator.temperature == 0.3
    assert "method: moco_v2, batch 8, SGD" in message
    assert "encoders.encoder.backbone: recipe ResNet(depth=18, small=True, " in message
    assert "(planned for 1 minute)" in message and "this run 0.3 (given)" in message


def test_what_is_given_wins_over_the_plan(call: Call) -> None:
    words = "--epochs 3 --batch-size 16 --size 24 --learning-rate 0.5 --precision 32-true --seed 4"
    run = call("--minutes", "1", "--backbone", "Convolutions((4, 6))", "--optimizer", "lars", *words.split())
    assert (run.epochs, run.batch_size, run.seed, run.hardware.precision) == (3, 16, 4, "32-true")
    assert type(run.optimizer).__name__ == "LARS" and run.learning_rate.base == 0.5  # pyright: ignore
    assert run.views.evaluation(0).size == 24
    assert run.encoders.encoder.backbone == Convolutions((4, 6))  # pyright: ignore


@pytest.mark.parametrize(("step", "long"), [(0.01, False), (10.0, True)])
def test_a_recipe_alone_says_how_long_it_will_take(
    step: float,
    long: bool,
    call: Call,
    training: TrainingStub,
    capsys: pytest.CaptureFixture[str],
) -> None:
    training.speed = Speed(step)
    run = call("moco_v2", "--epochs", "500")
    message = capsys.readouterr().err
    assert run.epochs == 500 and run.monitoring.minutes == 0.0
    expected = "25 seconds (800.0 images/s here), until" if not long else "6.9 hours (0.8 images/s here), until"
    assert f"training will take about {expected}" in message
    assert ("--minutes 30 plans network" in message) is long


def test_where_nothing_is_shown_nothing_is_measured(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(run: Run, source: object, seconds: float = 2.0) -> Speed:
        raise AssertionError

    monkeypatch.setattr("vantage.planning.speed.measure_speed", measure)
    call("moco_v2", "--epochs", "3", "--quiet")


@pytest.mark.slow
def test_processes_of_one_run_share_one_plan(
    call: Call,
    images: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("VANTAGE_PLANNED_RUN", "")  # so that it is taken back at the end
    first = call("--minutes", "2", "--devices", "2")
    written_run = json.loads(__import__("os").environ["VANTAGE_PLANNED_RUN"])
    assert written_run == encode(first)
    monkeypatch.setenv("LOCAL_RANK", "1")
    capsys.readouterr()
    (tmp_path / "run" / "settings.json").unlink()
    assert call("--minutes", "2", "--devices", "2") == first
    assert capsys.readouterr().err == ""
    monkeypatch.delenv("VANTAGE_PLANNED_RUN")
    assert main(["pretrain", "--minutes", "2", "--data", str(images), "--out", str(tmp_path / "other")]) == 2
    assert "use --devices in place of a launcher" in capsys.readouterr().err


@pytest.fixture
def judgment(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What is said of a planned run."""
    judgment = SimpleNamespace(lines=(), beats_baselines=False)
    monkeypatch.setattr("vantage.evaluate.sanity_check.sanity_check", lambda *_: judgment)
    return judgment


def next_commands(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The commands that were proposed."""
    lines = capsys.readouterr().err.splitlines()
    return [line.removeprefix("next: ") for line in lines if line.startswith("next: ")]


def resume_as_if_begun_by(command: str, run: Path, *words: str, **facts: str) -> None:
    record = {"data": {"fingerprint": "", "images": 40}, "command": command, **facts}
    (run / "provenance.json").write_text(json.dumps([record]))
    assert main(["resume", str(run), *words]) == 0


@pytest.mark.usefixtures("judgment")
@pytest.mark.parametrize("words", [[], ["moco-v2"], ["--set", "temperature=0.3", "--backbone", "Convolutions((4, 6))"]])
def test_the_longer_plan_is_of_the_same_command_also_after_a_resume(
    words: list[str], call: Call, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(*words, "--minutes", "1")
    longer = shlex.join(["vantage", "pretrain", *words, "--data", str(images), "--minutes", "10"])
    assert next_commands(capsys)[-1] == longer
    begun = ["vantage", "pretrain", *words, f"--data={images}", "--out", "an old one", "--minutes", "1"]
    resume_as_if_begun_by(shlex.join(begun), tmp_path / "run")
    assert next_commands(capsys)[-1] == longer


@pytest.mark.usefixtures("judgment")
def test_the_longer_plan_finds_its_start_from_any_folder(
    call: Call, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its images too, also if they have moved. Records of earlier versions do not say where a run was begun."""
    saved_run(tmp_path / "start", tiny_run())
    (tmp_path / "begun").mkdir()
    monkeypatch.chdir(tmp_path / "begun")
    call("--init", "../start", "--import", "tiny", "--minutes", "1")
    begun = f"vantage pretrain --init {tmp_path}/begun/../start --data "
    assert next_commands(capsys)[-1].startswith(f"{begun}{images} ")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "moved").symlink_to(images)
    command = "vantage pretrain --init=../start --minutes 1"
    resume_as_if_begun_by(command, tmp_path / "run", "--data", "moved", folder=str(tmp_path / "begun"))
    assert next_commands(capsys)[-1].startswith(f"{begun}{tmp_path}/moved ")
    resume_as_if_begun_by(command, tmp_path / "run")
    assert f"pretrain --init {tmp_path}/../start " in next_commands(capsys)[-1]


@pytest.mark.usefixtures("judgment")
@pytest.mark.parametrize("recipe", ["", "moco-v2 "])
def test_of_a_command_that_was_recorded_without_quotes_only_the_recipe_is_known(
    recipe: str, call: Call, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call("--minutes", "1")
    command = f"vantage pretrain {recipe}--backbone Convolutions((4, 6)) --minutes 1"
    resume_as_if_begun_by(command, tmp_path / "run")
    assert next_commands(capsys)[-1] == f"vantage pretrain {recipe}--data {images} --minutes 10"


@pytest.mark.parametrize(
    ("beats_baselines", "verbs"),
    [
        (True, ["embed", "export", "pretrain"]),
        (False, ["evaluate", "pretrain"]),
        (None, ["report", "embed", "export", "pretrain"]),
    ],
)
def test_what_to_do_next_depends_on_whether_training_helped(
    beats_baselines: bool | None,
    verbs: list[str],
    call: Call,
    judgment: SimpleNamespace,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without labels nobody can tell, and the features may be used all the same."""
    judgment.beats_baselines = beats_baselines
    call("--minutes", "1")
    assert [command.split()[1] for command in next_commands(capsys)] == verbs


@pytest.mark.usefixtures("judgment")
def test_stopped_while_it_is_judged_a_run_says_that_it_is_complete(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call("--minutes", "1")
    capsys.readouterr()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("vantage.evaluate.sanity_check.sanity_check", interrupted)
    assert main(["resume", str(tmp_path / "run")]) == 130
    complete = "vantage: training is complete and saved; whether it helped is shown by: vantage resume"
    assert f"vantage: interrupted\n{complete} {tmp_path / 'run'}\n" in capsys.readouterr().err


@pytest.mark.slow
def test_a_planned_run_is_trained_judged_and_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generator = np.random.default_rng(0)
    label = np.arange(400) % 4
    color = generator.uniform(40, 215, (4, 1, 1, 3))[label]
    pixels = (color + generator.normal(0, 30, (400, 16, 16, 3))).clip(0, 255).astype(np.uint8)
    np.savez(tmp_path / "images.npz", images=pixels, labels=label)
    words = ["--backbone", "Convolutions((8, 16))", "--epochs", "2", "--precision", "32-true"]
    words += ["--set", "hardware.accelerator=cpu"]
    images_path, out = str(tmp_path / "images.npz"), str(tmp_path / "run")
    assert main(["pretrain", "--data", images_path, "--out", out, "--minutes", "1", *words]) == 0
    message = capsys.readouterr().err
    assert "2 of 360 images, 40 held out to judge by" in message
    assert "kNN on 40 held-out training images: simclr" in message and "random encoder" in message
    longer = shlex.join(["vantage", "pretrain", *words, "--data", images_path, "--minutes", "10"])
    assert f"next: {longer}" in message
    run = settings.read(Path(out))
    assert run.data.hold_out == 0.1 and run.monitoring.minutes > 0
    assert main(["resume", out]) == 0
    assert "kNN on 40 held-out training images" in capsys.readouterr().err
