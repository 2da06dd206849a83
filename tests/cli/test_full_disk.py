"""A disk that is full, at each kind of write of each verb: one sentence says so, and nothing is lost.

The disk is a real file system, without pages or without room for another file. Each verb runs as a process of its own.
"""

import io
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from annotated import small_coco
from full_disk import ENOUGH, CommandResult, Room, SmallDisk
from PIL import Image
from safetensors.torch import load
from small_runs import write_images
from tiny import saved_run, tiny_run

from vantage.encoders import Convolutions, Encoder, LinearHead, ResNet, Shared

pytestmark = pytest.mark.slow

QUICK = "--backbone Convolutions((4,8)) --batch-size 8 --epochs 1 --seeds 0 --values 0.5 --no-baselines --num-workers 1"
DETECTOR = (
    "--steps 2 --batch-size 2 --set precise_batches=1"
    " --set sizes=Sizes((32,),32,48,(8,16,24,32,48),regions=16,proposals=20)"
)
FLOAT = "--set accelerator=cpu --set precision=32-true --set information.negatives=5"
VERBS = {
    "knn": "evaluate knn run DATA --k 3",
    "a named result": "evaluate nearest-neighbor run DATA --out result.json",
    "linear": "evaluate linear-moco run DATA --epochs 1",
    "linear-cached": "evaluate linear-cached run DATA",
    "svm": "evaluate svm run DATA --costs 1",
    "lowshot": "evaluate lowshot run DATA --shots 1 --negatives 5 --costs 1",
    "finetune": "evaluate finetune run DATA --epochs 1",
    "segmentation": "evaluate segmentation run --data MASKED --epochs 1 --batch-size 4 --size 16 --width 4",
    "detection": f"evaluate detection large --data COCO --no-baselines --out detection.json {DETECTOR}",
    "transfer": "evaluate transfer run --sets a=IMAGES b=OTHERS --by knn --set k=3 --out table.md",
    "retrieval": "evaluate retrieval run DATA --k 3 --rows 2 --out picture.png",
    "compare": "compare run DATA --protocols nearest-neighbor --out table.tex",
    "benefit": "benefit run DATA --shares 100 --seeds 0 1 --epochs 1 --batch-size 16 --learning-rates 0.05",
    "shots": "shots lowshot.json --out picture.svg",
    "analyse": "analyse similarity run DATA --out found --augmentations 2",
    "sweep": f"analyse views jitter DATA --out sweep {QUICK} {FLOAT}",
    "embed .npy": "embed run DATA --out rows.npy --num-workers 1",
    "embed .parquet": "embed run DATA --out rows.parquet --num-workers 1",
    "embed in parts": "embed run DATA --out parts --num-workers 1",
    "find .csv": "find duplicates run DATA --out found.csv --num-workers 1",
    "find .parquet": "find outliers run DATA --out found.parquet --num-workers 1",
    "report": "report run DATA --out report.html --num-workers 1",
    "export": "export run --to safetensors",
    "export to timm": "export large --to timm --out timm.safetensors",
    "export to detectron2": "export large --to detectron2 --out detectron2",
    "export to torch": "export run --to torch",
    "export to onnx": "export run --to onnx",
    "convert": "convert weights.pth weights.safetensors",
    "views show": "views show simclr DATA --images 2 --size 16 --out picture.png",
    "views learn": "views learn unsupervised DATA --out learned --epochs 1 --size 8 --network convolutions"
    " --set batch_size=16",
    "demo": "--import short_demo demo --out show",
    "reproduce": "reproduce cnce-appendix-c --level smoke --seeds 0 --out lab --page claims.md",
}
"""What each kind of result is written by."""

MESSAGE = re.compile(r"vantage: \S.* could not be written( to \S+)?: No space left on device\. \S.*\n")
SLOW = ("benefit", "demo", "detection", "export to onnx", "export to torch", "sweep", "reproduce")
"""Verbs that run less often here."""


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images, runs and the cache, which are elsewhere."""
    folder = tmp_path_factory.mktemp("outside")
    shutil.copy(write_images(folder / "images.npz"), folder / "others.npz")
    saved_run(folder / "run", tiny_run(Shared(Encoder(Convolutions((4, 8)), LinearHead(8)))))
    saved_run(folder / "large", tiny_run(Shared(Encoder(ResNet(18), LinearHead(8)))))
    outcome = {"measures": {"mAP": 20.0}, "details": {"shots": {"1": [10.0, 30.0]}}}
    (folder / "lowshot.json").write_text(json.dumps({"protocol": "lowshot", "version": 1, "outcomes": {"a": outcome}}))
    torch.save({"conv1.weight": torch.zeros(300, 30)}, folder / "weights.pth")
    small_coco(folder / "coco", images=10)
    for name in ("images", "masks"):
        (folder / name).mkdir()
        for number in range(8):
            pixels = np.random.default_rng(number).integers(0, 2, (16, 16)).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def disk(outside: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisk]:
    small = SmallDisk(tmp_path_factory.mktemp("disk"), {"VANTAGE_CACHE": str(outside / "cache")})
    yield small
    small.close()


def begin(disk: SmallDisk, outside: Path) -> None:
    """Two runs and two files are on the disk."""
    disk.shell(f"rm -rf * && echo held > held && cp -r {outside}/run {outside}/lowshot.json {outside}/weights.pth .")


def command_words(words: str, outside: Path) -> str:
    words = words.replace("DATA", "--data IMAGES").replace("MASKED", f"{outside}/images#{outside}/masks")
    words = words.replace("OTHERS", f"{outside}/others.npz")
    words = words.replace("COCO", f"{outside}/coco/annotations/instances_train.json").replace(
        " large ", f" {outside}/large "
    )
    return words.replace("IMAGES", f"{outside}/images.npz") + " --quiet"


def disk_message(result: CommandResult) -> str:
    """The sentence that a command ends with on a full disk."""
    assert result.status == 2, (result.status, result.err)
    sentence = "".join(line for line in result.err.splitlines(keepends=True) if not line.startswith("warning: "))
    assert MESSAGE.fullmatch(sentence), sentence
    return sentence


def check_whole(name: str, content: bytes) -> None:
    """That a file can be read to its end."""
    match Path(name).suffix:
        case ".json":
            json.loads(content)
        case ".jsonl":
            assert content.endswith(b"\n") and all(json.loads(line) for line in content.splitlines())
        case ".npy":
            np.load(io.BytesIO(content))
        case ".png":
            Image.open(io.BytesIO(content)).load()
        case ".parquet":
            pq.read_table(io.BytesIO(content))
        case ".safetensors":
            load(content)
        case ".html" | ".svg":
            assert content.rstrip().endswith((b"</html>", b"</svg>"))
        case _:
            assert content or "/locks/" in name


def plainly(name: str) -> str:
    """A file's name without the time and the process that are in it."""
    return re.sub(r"tfevents\..*", "tfevents", name)


@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk_is_an_error_and_leaves_what_is_whole(verb: str, disk: SmallDisk, outside: Path) -> None:
    begin(disk, outside)
    words, before = command_words(VERBS[verb], outside), disk.files()
    first = disk.run(words)
    assert first.status == 0, first.err
    after = disk.files()
    new_names = {plainly(name) for name in after.keys() - before.keys()}
    assert new_names
    if verb not in SLOW:
        again = disk.run(words, Room(pages=0))
        assert again.status in (0, 2) and "Traceback" not in again.err
        assert disk.files() == after, "what is there from before stays as it is"

    half = Room(pages=(ENOUGH.pages - first.room.pages) // 2)
    result = first
    for room in [Room(files=1)] if verb in SLOW else [Room(pages=0), Room(files=0), Room(files=1), half]:
        if result.status == 0:
            begin(disk, outside)
        result = disk.run(words, room)
        if result.status or 0 in room:
            disk_message(result)
        files = disk.files()
        assert before.items() <= files.items()
        for name in files.keys() - before.keys():
            if ".draft" not in name:
                assert plainly(name) in new_names
                check_whole(name, disk.read(name))
    if result.status:
        result = disk.run(words)
    assert result.status == 0, result.err
    names = {plainly(name) for name in disk.files().keys() - before.keys()}
    assert names == new_names, "with room, the same command goes on"


def test_output_that_finds_no_room_is_an_error(disk: SmallDisk, outside: Path) -> None:
    begin(disk, outside)
    result = disk.run("recipes", Room(pages=0), out="said.txt")
    assert disk_message(result).startswith("vantage: the output could not be written: ")
    assert disk.run("recipes", out="said.txt").status == 0 and b"moco_v2" in disk.read("said.txt")


def test_a_full_cache_costs_nothing(disk: SmallDisk, outside: Path, tmp_path: Path) -> None:
    """Results elsewhere are as they are with a cache."""
    disk.shell("rm -rf * && echo held > held")
    shutil.copytree(outside / "run", tmp_path / "run")
    for verb in ("knn", "embed .npy", "lowshot", "views show", "detection"):
        words = (
            command_words(VERBS[verb], outside)
            .replace(" run ", f" {tmp_path}/run ")
            .replace("--out ", f"--out {tmp_path}/")
        )
        for room in (Room(pages=0), Room(pages=2), Room(files=0)):
            disk.shell("rm -rf cache")
            result = disk.run(words, room, cache="cache")
            assert (result.status, result.err) == (0, ""), (verb, room)
            (tmp_path / "rows.npy").unlink(missing_ok=True)
