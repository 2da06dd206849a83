"""An export that is killed leaves nothing that looks complete, and nothing that blocks the same call."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest
from killed_exports import export_until_killed
from small_runs import new_process
from tiny import saved_run, tiny_run

from vantage.encoders import Convolutions, Encoder, LinearHead, ResNet, Shared
from vantage.encoders.backbones.resnet import Backbone
from vantage.errors import UserError
from vantage.frozen.export.backbone import ENDINGS, Format, export


def run_of(folder: Path, backbone: Backbone) -> Path:
    saved_run(folder, replace(tiny_run(), encoders=Shared(Encoder(backbone, LinearHead(8)))))
    return folder


def kill(run: Path, to: Format, out: Path, files: int) -> None:
    process = new_process(export_until_killed, run, to, out, files)
    process.join()
    assert process.exitcode == -signal.SIGKILL


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("to", ["safetensors", "torch"])
def test_the_same_call_goes_on_after_a_kill_at_any_file(to: Format, tmp_path: Path) -> None:
    run, whole, killed = run_of(tmp_path / "run", Convolutions((4, 8))), tmp_path / "whole", tmp_path / "killed"
    name = f"backbone{ENDINGS[to]}"
    export(run, to, whole / name)
    for files in (0, 1):
        kill(run, to, killed / name, files)
        assert not (killed / name).exists(), "a network that is there has its card"
        export(run, to, killed / name)
        assert contents(killed).keys() == contents(whole).keys() == {name, f"{name}.md"}
        assert contents(killed)[f"{name}.md"] == contents(whole)[f"{name}.md"]
        (killed / name).unlink()


@pytest.mark.slow
@pytest.mark.parametrize("files", [0, 1, 5])
def test_a_folder_for_detectron2_that_a_kill_left_is_filled_again(files: int, tmp_path: Path) -> None:
    run, whole, killed = run_of(tmp_path / "run", ResNet(18)), tmp_path / "whole", tmp_path / "killed"
    export(run, "detectron2", whole)
    kill(run, "detectron2", killed, files)
    assert not (killed / "README.md").exists()
    (killed / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="killed exists already"):
        export(run, "detectron2", killed)
    assert contents(killed) == {"mine.txt": b"mine"}, "only what the export left is removed"
    (killed / "mine.txt").unlink()
    kill(run, "detectron2", killed, files)
    export(run, "detectron2", killed)
    assert contents(killed).keys() == contents(whole).keys()
    with pytest.raises(UserError, match="killed exists already"):
        export(run, "detectron2", killed)
