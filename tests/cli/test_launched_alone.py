"""Verbs that processes do not share: of those that a launcher started, the first does all the work."""

import os
import re
import sys
from pathlib import Path

import pytest
from started import TORCHRUN, output_lines, started, write_run_and_images

from vantage.cli import main, program
from vantage.cli.reading import launch


@pytest.fixture
def run_and_images(tmp_path: Path) -> tuple[str, str]:
    """The folder of a run, and a file of labeled images."""
    return write_run_and_images(tmp_path)


@pytest.mark.parametrize("rank", [0, 1])
def test_only_the_first_process_works(
    rank: int, run_and_images: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    for name, value in {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2}.items():
        monkeypatch.setenv(name, str(value))
    out = tmp_path / "backbone.safetensors"
    assert main(["export", run_and_images[0], "--to", "safetensors", "--out", str(out)]) == 0
    assert out.exists() == (rank == 0)
    printed = capsys.readouterr()
    assert bool(printed.out) == (rank == 0)
    assert ("of the 2 that torchrun started, the first does the work" in printed.err) == (rank == 0)
    assert ("RANK" in os.environ) == (rank == 1), "the first one goes on as if it were alone"


@pytest.mark.parametrize(("verb", "shares"), [("reproduce", True), ("recipes", False)])
def test_a_verb_that_starts_processes_itself_says_how(
    verb: str, shares: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main([verb]) == 0
    message = capsys.readouterr().err
    assert "the first does the work and the others end" in message
    assert ("to share it, start one process on each machine, with --jobs N" in message) == shares


def test_a_rank_that_is_left_over_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """As in a container of several: nothing else would say why nothing happens."""
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main(["report", str(tmp_path), "--data", str(tmp_path)]) == 0
    assert "and this one (RANK 1) ends" in capsys.readouterr().err


def test_srun_starts_one_command_or_is_refused(monkeypatch: pytest.MonkeyPatch, capsys, port: int) -> None:
    def run(rank: int, *words: str) -> str:
        """What `vantage recipes` prints on standard error as one of two processes, with the words given to each."""
        numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "MASTER_PORT": port}
        for name, value in {**numbers, "MASTER_ADDR": "127.0.0.1", "VANTAGE_LAUNCHER": "srun"}.items():
            monkeypatch.setenv(name, str(value))
        monkeypatch.setattr(sys, "argv", ["vantage", *words])
        assert main(["recipes"]) == (0 if rank == 0 or words == ("recipes",) else 2)
        return capsys.readouterr().err

    monkeypatch.setattr(launch, "_PATIENCE", 0.1)
    assert "this one (RANK 1) ends" in run(1, "recipes"), "nobody answered, so the commands may differ"
    monkeypatch.setattr(launch, "_PATIENCE", 60.0)
    assert "the first does the work" in run(0, "recipes")
    assert run(1, "recipes") == ""
    assert "srun started different commands" in run(1, "recipes", "--json")


def test_verbs_with_an_option_for_devices_are_shared() -> None:
    folder = Path(program.__file__).parent
    users = [
        path
        for path in folder.rglob("*.py")
        if re.search("import.*(Work|Device)Options|^    DeviceOptions,", path.read_text(), re.M)
    ]
    names = {path.relative_to(folder).parts[0].removesuffix(".py") for path in users}
    assert names - {"reading"} == {verb.__name__ for verb in program._SHARED}


@pytest.mark.slow
def test_torchrun_finds_outliers_once(run_and_images: tuple[str, str], tmp_path: Path) -> None:
    run, images = run_and_images
    words = ("find", "outliers", run, "--data", images, "--out", str(tmp_path / "outliers.csv"))
    lines = output_lines(TORCHRUN, *words, cache=tmp_path / "cache")
    assert len(lines) == 3 and (tmp_path / "outliers.csv").exists()


@pytest.mark.slow
def test_processes_of_srun_export_once(run_and_images: tuple[str, str], tmp_path: Path) -> None:
    words = ["export", run_and_images[0], "--to", "safetensors", "--out", str(tmp_path / "a.safetensors")]
    both = started("srun", tmp_path, words, words)
    assert [process.returncode for process in both] == [0, 0] and not both[1].stdout, both
    assert (tmp_path / "a.safetensors").exists()
