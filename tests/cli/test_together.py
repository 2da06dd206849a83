"""Verbs on several processes."""

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from annotated import small_coco
from shared_detectors import NARROW
from started import COMMAND, TORCHRUN, output_lines, write_run_and_images
from tiny import saved_run, tiny_run

from vantage.cli import main
from vantage.encoders import Encoder, LinearHead, Shared
from vantage.frozen import embedding_parts
from vantage.frozen.embedding_parts import write_embedding_parts

_MAIN = "from vantage.cli import main\nsys.exit(main(sys.argv[1:]))"


@pytest.fixture
def run_and_images(tmp_path: Path) -> tuple[str, str]:
    """The folder of a run, and a file of labeled images."""
    return write_run_and_images(tmp_path)


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
    ours = output_lines(COMMAND, *knn, "--devices", "2", "--out", str(tmp_path / "two.json"), cache=tmp_path / "other")
    assert ours == lines[:1], "one line, of the first process"
    assert (tmp_path / "two.json").read_bytes() == (tmp_path / "one.json").read_bytes()
    assert output_lines(TORCHRUN, *rows, str(tmp_path / "two.npy"), cache=tmp_path / "other") == [
        str(tmp_path / "two.npy")
    ]
    for name in ("{}.npy", "{}.npy.rows.jsonl"):
        assert (tmp_path / name.format("two")).read_bytes() == (tmp_path / name.format("one")).read_bytes()


@pytest.mark.slow
def test_processes_with_other_images_are_refused(run_and_images: tuple[str, str], tmp_path: Path) -> None:
    """Machines with copies that differ: the rows of some would be those of other images."""
    run, data = run_and_images
    for rank, step in (("0", 1), ("1", -1)):
        (tmp_path / rank).mkdir()
        with np.load(data) as arrays:
            np.savez(tmp_path / rank / "images.npz", images=arrays["images"][::step])
    program = tmp_path / "elsewhere.py"
    program.write_text(f"import os, sys\nos.chdir({str(tmp_path)!r} + '/' + os.environ['RANK'])\n{_MAIN}")
    words = ["embed", run, "--data", "images.npz", "--device", "cpu", "--out", str(tmp_path / "rows.npy")]
    with pytest.raises(AssertionError, match="the processes do not have the same images"):
        output_lines((*TORCHRUN[:-2], str(program)), *words, cache=tmp_path / "cache")
    assert not (tmp_path / "rows.npy").exists()


@pytest.mark.slow
def test_torchrun_trains_a_detector(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Two processes share the images of its steps and those it is judged on, with the losses of one."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    saved_run(tmp_path / "run", replace(tiny_run(), encoders=Shared(Encoder(NARROW, LinearHead(8)))))
    train, test = small_coco(tmp_path), small_coco(tmp_path, "val", 4, seed=1)
    sizes = "sizes=Sizes((32,), 32, 48, (8, 16, 24, 32, 48), regions=8, proposals=8)"
    short = (sizes, "steps=2", "batch_size=2", "precise_batches=1", "learning_rate=0.001")
    words = ["evaluate", "keypoints", str(tmp_path / "run"), "--data", str(train), "--test", str(test)]
    words += ["--device", "cpu"]
    words += [word for setting in short for word in ("--set", setting)]
    assert main([*words, "--out", str(tmp_path / "one.json")]) == 0
    printed_lines = capsys.readouterr().out.splitlines()
    lines = output_lines(TORCHRUN, *words, "--out", str(tmp_path / "two.json"), cache=tmp_path / "other")
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
    lines = output_lines((*TORCHRUN[:-2], str(program)), *words, str(two), cache=tmp_path / "cache")
    assert lines == [str(two)], "the first process says it once"
    assert sorted(path.name for path in two.iterdir()) == names
    assert all((one / name).read_bytes() == (two / name).read_bytes() for name in names)
    after = (two / names[2]).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
