"""Training in processes that torchrun, srun or mpirun started."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from started import COMMAND, TORCHRUN, output_lines, started, write_run_and_images

from vantage.cli import main
from vantage.cli.reading.launch import join_processes
from vantage.cli.reading.options import DeviceOptions, as_started
from vantage.errors import UserError
from vantage.training.folder import settings


@pytest.fixture
def run_and_images(tmp_path: Path) -> tuple[str, str]:
    """The folder of a run, and a file of labeled images."""
    return write_run_and_images(tmp_path)


@pytest.fixture(scope="session")
def losses_of_one(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    """The losses of the short training on one process, this one."""
    folder = tmp_path_factory.mktemp("one")
    _, images = write_run_and_images(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VANTAGE_CACHE", str(folder / "cache"))
        assert main([*_short_pretraining(images), str(folder / "one")]) == 0
    return _losses(folder / "one")


@pytest.mark.slow
def test_two_machines_train_as_one_does(
    run_and_images: tuple[str, str], losses_of_one: list[float], tmp_path: Path, port: int
) -> None:
    """Two torchruns that meet at an address, as on two machines, have the losses of one process."""
    words = _short_pretraining(run_and_images[1])
    torchrun = ["-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d"]
    start = (*torchrun, "--rdzv-endpoint", f"127.0.0.1:{port}", *COMMAND)
    wide = [*words, str(tmp_path / "two"), "--nodes", "2"]
    with ThreadPoolExecutor(2) as machines:
        lines = list(
            machines.map(lambda number: output_lines(start, *wide, cache=tmp_path / f"cache-{number}"), range(2))
        )
    assert sum(map(len, lines)) <= 1, "process 0 alone prints"
    assert len(losses_of_one) == 3 and _losses(tmp_path / "two") == pytest.approx(losses_of_one, rel=1e-5)


@pytest.mark.slow
def test_processes_of_srun_train_as_one_does(
    run_and_images: tuple[str, str], losses_of_one: list[float], tmp_path: Path
) -> None:
    words = _short_pretraining(run_and_images[1])
    both = started("srun", tmp_path, *(2 * [[*words, str(tmp_path / "two")]]))
    assert [process.returncode for process in both] == [0, 0], both
    assert both[1].stdout == "", "process 0 alone prints"
    assert _losses(tmp_path / "two") == pytest.approx(losses_of_one, rel=1e-5)


@pytest.mark.slow
def test_different_commands_of_one_job_are_refused(run_and_images: tuple[str, str], tmp_path: Path) -> None:
    words = _short_pretraining(run_and_images[1])
    for process in started("mpirun", tmp_path, [*words, str(tmp_path / "a")], [*words, str(tmp_path / "b")]):
        assert process.returncode == 2 and "mpirun started different commands" in process.stderr, process
    assert not (tmp_path / "a").exists() and not (tmp_path / "b").exists()


def _short_pretraining(data: str) -> list[str]:
    words = ["pretrain", "moco_v2", "--data", data, "--backbone", "convolutions", "--size", "16"]
    words += ["--batch-size", "16", "--epochs", "3", "--precision", "32-true"]
    return [*words, "--set", "hardware.accelerator=cpu", "--quiet", "--out"]


def _losses(folder: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_what_is_not_given_is_what_torchrun_started(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LOCAL_WORLD_SIZE": "4", "WORLD_SIZE": "8"}.items():
        monkeypatch.setenv(name, value)
    assert as_started(DeviceOptions(), ()) == DeviceOptions(4, 2)
    assert as_started(DeviceOptions(nodes=2), ()) == DeviceOptions(4, 2)
    assert as_started(DeviceOptions(devices=3), ("epochs=2",)) == DeviceOptions(3, 2)
    assert as_started(DeviceOptions(), ("devices=8",)) == DeviceOptions(None, 2)
    assert as_started(DeviceOptions(), ("hardware.nodes=1",)) == DeviceOptions(4)
    assert as_started(DeviceOptions(), ("hardware=Hardware()",)) == DeviceOptions()


_WITH_A_LIST = """
import os, sys
from importlib import import_module
from vantage.cli import main
scan = import_module("vantage.data.scan")
tried, names, scan._CHUNK = scan._try, open(sys.argv.pop(1) + os.environ["RANK"], "w"), 16
scan._try = lambda source, number: (print(number, file=names, flush=True), tried(source, number))[1]
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_torchrun_opens_each_image_once(run_and_images: tuple[str, str], tmp_path: Path) -> None:
    """Before training, the processes share the search for unreadable images. The run is on as many devices as torchrun
    started."""
    program = tmp_path / "with_a_list.py"
    program.write_text(_WITH_A_LIST)
    words = ["pretrain", "moco_v2", "--data", run_and_images[1], "--backbone", "convolutions", "--size", "16"]
    words += ["--batch-size", "16", "--epochs", "1", "--set", "hardware.accelerator=cpu"]
    start = (*TORCHRUN[:-2], str(program), str(tmp_path / "tried-"))
    output_lines(start, *words, "--set", "data.num_workers=1", "--out", str(tmp_path / "new"), cache=tmp_path / "cache")
    tried = [[int(line) for line in (tmp_path / f"tried-{rank}").read_text().split()] for rank in range(2)]
    assert sorted(tried[0] + tried[1]) == list(range(60))
    assert len(tried[1]) == 28, "every other block of 16 images"
    assert settings.read(tmp_path / "new").hardware.devices == 2


@pytest.mark.parametrize(
    ("rank", "words", "message"),
    [
        ("3", "", "RANK is 3 and WORLD_SIZE 2"),
        ("0", "", "2 processes were started, but the run has 1 device"),
        ("1", "--devices 4", "2 processes were started, but the run has 4 device"),
    ],
)
def test_processes_that_the_run_does_not_count_are_refused(
    rank: str, words: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    """Each of them would otherwise train a run of its own in the same folder, most of them without a word."""
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", "2")
    start = ["pretrain", "moco_v2", "--data", str(tmp_path), "--set", "hardware.accelerator=cpu"]
    assert main([*start, "--out", str(tmp_path / "run"), *words.split()]) == 2
    assert message in capsys.readouterr().err
    with pytest.raises(UserError, match=r"RANK is 3|2 processes were started, but the run has 4"):
        join_processes(4, "cpu")
