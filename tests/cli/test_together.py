"""Verbs on several processes."""

import json
import os
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from annotated import small_coco
from tiny import images, saved_run, tiny_run

from vantage.cli import main
from vantage.cli.reading.launch import join_processes
from vantage.cli.reading.options import DeviceOptions, as_started
from vantage.encoders import Convolutions, Encoder, LinearHead, ResNet, Shared
from vantage.errors import UserError
from vantage.frozen import embedding_parts
from vantage.frozen.embedding_parts import write_embedding_parts
from vantage.training import settings

COMMAND = ("-m", "vantage.cli")
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *COMMAND)


@pytest.fixture
def run_and_images(tmp_path: Path) -> tuple[str, str]:
    """The folder of a run, and a file of labeled images."""
    saved_run(tmp_path / "run", tiny_run(Shared(Encoder(Convolutions(widths=(4, 8)), LinearHead(8)))))
    source = images(60, 0)
    pixels = np.stack([source.image(number).permute(1, 2, 0).numpy() for number in range(60)])
    np.savez(tmp_path / "images.npz", images=pixels, labels=np.arange(60) % 3)
    return str(tmp_path / "run"), str(tmp_path / "images.npz")


@pytest.mark.parametrize("verb", ["evaluate knn", "embed"])
def test_one_device_by_name_cannot_be_several(
    verb: str, run_and_images: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run, data = run_and_images
    out = ["--out", str(tmp_path / "rows.npy")] if verb == "embed" else []
    assert main([*verb.split(), run, "--data", data, *out, "--devices", "2", "--device", "cpu:0"]) == 2
    assert "--device cpu:0 is one device, but 2 share the work" in capsys.readouterr().err


@pytest.mark.slow
def test_two_processes_evaluate_and_embed_as_one_does(
    run_and_images: tuple[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    """By --devices and by torchrun: the results of one process, printed and written once."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    run, data = run_and_images
    knn = ["evaluate", "knn", run, "--data", data, "--k", "5", "--device", "cpu"]
    rows = ["embed", run, "--data", data, "--device", "cpu", "--out"]
    assert main([*knn, "--out", str(tmp_path / "one.json")]) == 0
    assert main([*rows, str(tmp_path / "one.npy")]) == 0
    lines = capsys.readouterr().out.splitlines()
    ours = _output_lines(COMMAND, *knn, "--devices", "2", "--out", str(tmp_path / "two.json"), cache=tmp_path / "other")
    assert ours == lines[:1], "one line, of the first process"
    assert (tmp_path / "two.json").read_bytes() == (tmp_path / "one.json").read_bytes()
    assert _output_lines(TORCHRUN, *rows, str(tmp_path / "two.npy"), cache=tmp_path / "other") == [
        str(tmp_path / "two.npy")
    ]
    for name in ("{}.npy", "{}.npy.rows.jsonl"):
        assert (tmp_path / name.format("two")).read_bytes() == (tmp_path / name.format("one")).read_bytes()


def _output_lines(start: tuple[str, ...], *words: str, cache: Path) -> list[str]:
    environment = {**os.environ, "VANTAGE_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    process = subprocess.run([sys.executable, *start, *words], env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


@pytest.mark.slow
def test_two_machines_train_as_one_does(run_and_images: tuple[str, str], tmp_path: Path) -> None:
    """Two torchruns that meet at an address, as on two machines, have the losses of one process."""
    words = ["pretrain", "moco_v2", "--data", run_and_images[1], "--backbone", "convolutions", "--size", "16"]
    words += ["--batch-size", "16", "--epochs", "3", "--precision", "32-true"]
    words += ["--set", "hardware.accelerator=cpu", "--quiet", "--out"]
    _output_lines(COMMAND, *words, str(tmp_path / "one"), cache=tmp_path / "cache")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{server.getsockname()[1]}"
    torchrun = ["-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d"]
    start = (*torchrun, "--rdzv-endpoint", address, *COMMAND)
    wide = [*words, str(tmp_path / "two"), "--nodes", "2"]
    with ThreadPoolExecutor(2) as machines:
        lines = list(
            machines.map(lambda number: _output_lines(start, *wide, cache=tmp_path / f"cache-{number}"), range(2))
        )
    assert sum(map(len, lines)) <= 1, "process 0 alone prints"
    one, two = (
        [json.loads(line)["loss"] for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("one", "two")
    )
    assert len(one) == 3 and two == pytest.approx(one, rel=1e-5)


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
    _output_lines(
        start, *words, "--set", "data.num_workers=1", "--out", str(tmp_path / "new"), cache=tmp_path / "cache"
    )
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


@pytest.mark.slow
def test_torchrun_trains_a_detector(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Two processes share the images of its steps and those it is judged on, with the losses of one."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    saved_run(tmp_path / "run", replace(tiny_run(), encoders=Shared(Encoder(ResNet(18), LinearHead(8)))))
    train, test = small_coco(tmp_path), small_coco(tmp_path, "val", 4, seed=1)
    sizes = "sizes=Sizes((32,), 32, 48, (8, 16, 24, 32, 48), regions=8, proposals=8)"
    short = (sizes, "steps=2", "batch_size=2", "precise_batches=1", "learning_rate=0.001")
    words = ["evaluate", "keypoints", str(tmp_path / "run"), "--data", str(train), "--test", str(test)]
    words += ["--device", "cpu"]
    words += [word for setting in short for word in ("--set", setting)]
    assert main([*words, "--out", str(tmp_path / "one.json")]) == 0
    printed_lines = capsys.readouterr().out.splitlines()
    lines = _output_lines(TORCHRUN, *words, "--out", str(tmp_path / "two.json"), cache=tmp_path / "other")
    assert lines == printed_lines, "of the first process"
    files = (json.loads((tmp_path / f"{count}.json").read_text()) for count in ("one", "two"))
    one, two = (file["outcomes"]["moco_v2"] for file in files)
    assert len(one["details"]["losses"]) == 2
    assert two["details"]["losses"] == pytest.approx(one["details"]["losses"], rel=1e-5)
    assert two["measures"] == pytest.approx(one["measures"], abs=0.1)


_IN_PARTS = """
import sys
from dataclasses import replace
from functools import partial
from vantage.cli import main
from vantage.frozen import embedding_parts
embedding_parts.write_embedding_parts = partial(embedding_parts.write_embedding_parts, part_images=16)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_torchrun_embeds_into_a_folder(
    run_and_images: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Two processes write the parts that one would, each every other one, and keep a part that is there."""
    run, data = run_and_images
    one, two, program = tmp_path / "one", tmp_path / "two", tmp_path / "in_parts.py"
    program.write_text(_IN_PARTS)
    words = ("embed", run, "--data", data, "--device", "cpu", "--out")
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    with monkeypatch.context() as patch:
        patch.setattr(embedding_parts, "write_embedding_parts", partial(write_embedding_parts, part_images=16))
        assert main([*words, str(one)]) == 0
    names = sorted(path.name for path in one.iterdir())
    assert names == [f"part-{number:05d}-of-00004.parquet" for number in range(4)]
    two.mkdir()
    shutil.copy2(one / names[2], two)
    before = (two / names[2]).stat()
    lines = _output_lines((*TORCHRUN[:-2], str(program)), *words, str(two), cache=tmp_path / "cache")
    assert lines == [str(two)], "the first process says it once"
    assert sorted(path.name for path in two.iterdir()) == names
    assert all((one / name).read_bytes() == (two / name).read_bytes() for name in names)
    after = (two / names[2]).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
