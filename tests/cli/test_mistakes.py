"""Mistakes of a first hour with each verb: one line that says what to do, exit status 2, and nothing left behind."""

import sys
from pathlib import Path
from shutil import copytree, rmtree

import numpy as np
import pytest
from PIL import Image
from tiny import saved_run, tiny_run

from vantage import UserError
from vantage.cli import main
from vantage.storage.near import near_path

MISTAKES = [
    ("report nowhere --data photos", "nowhere holds no run: there is no such folder; name the folder given to --out"),
    ("report Frist --data photos", "Frist holds no run: there is no such folder"),
    ("report runs --data photos", "did you mean runs/first? (runs in it: first, second, unfinished)"),
    ("report runs/first/checkpoint --data photos", "did you mean runs/first?"),
    ("report runs/frist --data photos", "there is no such folder; did you mean runs/first?"),
    ("report words/a.txt --data photos", "words/a.txt holds no run: it is a file"),
    ("report runs/first --data nowhere --images 60000", "60,000 images for 1 run: give from 2 to 50,000 (--images)"),
    ("report runs/first runs/second --data nowhere --images 30000", "give from 2 to 25,000 (--images)"),
    ("report runs/first --data nowhere --images 1", "1 image for 1 run: give from 2"),
    ("report runs/first --data nowhere --network 3", "but the run trained 1: leave --network out"),
    ("report runs/first --data nowhere --num-workers 0", "--num-workers 0: give at least 1"),
    ("report runs/first --data nowhere --out page.pdf", "end the name with .html or .htm"),
    ("report runs/first --data photo", "photo does not exist; did you mean photos?"),
    ("report runs/first --data words", "no images in words: found 1 other file "),
    ("report runs/first --data one", "one holds 1 image, but at least 2 are needed"),
    ("report runs/first --date photos", "no option --date; did you mean --data?"),
    ("embed runs/first --data photos --out x.npy --devices -2", "--devices -2: give at least 1"),
    ("embed runs/first --data photos --out x.npy --batch-size 0", "batch_size is 0: give at least 1"),
    ("embed runs/first --data photos --out x.csv", "end the name with .parquet or .npy"),
    ("embed runs/unfinished --data photos --out x.npy", "runs/unfinished holds no checkpoint yet"),
    ("embed runs/first photos --out x.npy", "embed has no use for 'photos': did you mean --data photos?"),
    (
        "embed w.safetensors --data photos --out x.npy",
        "it is a file; if it holds weights, write torchvision:NAME=w.safetensors or timm:NAME=",
    ),
    ("embed torchvison:resnet18=x --data photos --out x.npy", "'torchvison'; did you mean torchvision?"),
    (
        "embed torchvision:resnet18=words/b.txt --data photos --out x.npy",
        "no file words/b.txt; did you mean words/a.txt?",
    ),
    ("find", "find needs a kind (duplicates, outliers, representatives, mistakes)"),
    ("find runs/first duplicates --data photos --out x.csv", "did you mean: vantage find duplicates runs/first …?"),
    ("find duplicates runs/first --data nowhere --out x.csv --limit nan", "--limit nan: give a number above 0"),
    ("find duplicates runs/first --data photos --out x.csv --test nowhere", "nowhere does not exist"),
    ("find representatives runs/first --data nowhere --out x.csv --count 0", "--count 0: give at least 1"),
    ("find outliers runs/first --data photos --out words/a.txt/x.csv", "words/a.txt is a file: choose another name"),
    ("find outliers runs/first --data photos --out x.csv --count 4", "no option --count (see vantage find outliers"),
    ("embed runs/first --data nowhere --out words/a.txt/x.npy", "words/a.txt is a file: choose another name"),
    ("embed runs/first --data nowhere --out words/a.txt/x", "words/a.txt is a file: name a folder"),
    ("find mistakes runs/first --data photos --out x.csv", "put each class in a folder of its own"),
    ("export runs/first torchvision", "did you mean --to torchvision?"),
    ("export runs/first --format onnx", "no option --format; did you mean --to?"),
    ("export runs/first --to timm", "timm has no network for"),
    ("export runs/first --to safetensors --out words/a.txt/x.safetensors", "words/a.txt is a file: choose another"),
    ("export runs/first --to onnx --out x.pt2", "end the name x.pt2 with .onnx"),
    ("export runs/first --to safetensors --out words/a.txt", "end the name a.txt with .safetensors"),
    ("benefit runs/first --data nowhere --others runs/third", "runs/third holds no run"),
    ("benefit runs/first --data nowhere --others runs/first", "runs/first is named twice"),
    ("benefit runs/first --data nowhere --out words", "words is not empty and holds no comparison with pretraining"),
    ("benefit runs/moco_v2 --data photos", "given to --out (runs in runs: first, second, unfinished)"),
    ("benefit runs/first --data photos --test photo", "photo does not exist; did you mean photos?"),
    (
        "benefit runs/first --data nowhere --learning-rates 0",
        "learning_rates to choose from: 0; give at least one number, all different",
    ),
    ("benefit runs/first --data nowhere --batch-size 1", "batch_size is 1: give at least 2"),
    ("benefit runs/first --data nowhere --seeds 3", "an interval needs at least two different ones, such as 0 1"),
    ("benefit runs/first --data photos", "none of the 4 images has one"),
    ("evaluate knn runs/first --data photos --test photo", "photo does not exist; did you mean photos?"),
    ("evaluate retrieval runs/first --data photos --test photos --k 1", "test images are the training images"),
    ("evaluate retrieval runs/first --data photos --test photo", "photo does not exist; did you mean photos?"),
    ("pretrain simclr --data nowhere --out x --set accumulate=2", "one group of the joint batch, which 2"),
    (
        "pretrain --size 32 --data nowhere --out x --set accumulate=2",
        "one group of the joint batch, which 2 accumulated",
    ),
    ("pretrain moco_v2 --data nowhere --out x --batch-size 16 --set accumulate=2", "one group of the joint batch"),
    (
        "pretrain moco_v2 --data nowhere --out x --set accumulate=16",
        "8 groups of the joint batch, which 16",
    ),
    (
        "analyse views crop.szie=16,32 --data nowhere --out x",
        "crop.szie cannot be 16: moco_v2 has no field",
    ),
    ("analyse views branches.-1.weight=1,2 --data nowhere --out x", "no field 'branches.-1.weight'; did you mean"),
    ("analyse views crop.size=16,b --data nowhere --out x", "crop.size: expected a whole number, found b"),
    ("analyse views temperature=0.1,-1 --data nowhere --out x", "temperature cannot be -1: temperature -1.0 must be"),
    ("analyse views jitter --values 0.1 3 --data nowhere --out x", "jitter cannot be 3: give strengths from 0 to 2.5"),
    ("analyse views jitter --seeds 0 0 --data nowhere --out x", "the seeds of the sweep are (0, 0)"),
    ("analyse views jitter --epochs 0 --data nowhere --out x", "--epochs 0: give at least 1"),
    ("analyse views jitter --set information.negatves=3 --data nowhere --out x", "information has no field 'negatves'"),
    ("analyse views accumulate=2,16 --size 32 --data nowhere --out x", "8 groups of the joint batch, which 16"),
]

IMAGES_DECIDE = [
    "pretrain moco_v2 --out x --set accumulate=2",
    "pretrain --out x --set accumulate=2",
    "pretrain simclr --out x --set accumulate=2 --set normalization=SplitBatchNorm(2)",
    "pretrain cmc --size 32 --out x --set accumulate=2 --set encoders.0.normalization=SplitBatchNorm(2)"
    " --set encoders.1.normalization=SplitBatchNorm(2)",
    "analyse views normalization=SplitBatchNorm(2),SplitBatchNorm(4) --out x --recipe simclr --set accumulate=2",
    "analyse views strength.value=1,2 --out x --set estimator=JCL()",
    "analyse views clusters=2,3000 --out x --recipe interclr",
    "analyse views length=4,60000 --out x",
    "analyse views batch_size=8,100000 --out x",
]
"""Commands that some images allow, so that only the images are missing."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, one without a checkpoint, some images without classes, a folder of words and one of a single image."""
    folder = tmp_path_factory.mktemp("place")
    saved_run(folder / "runs" / "first", tiny_run())
    copytree(folder / "runs" / "first", folder / "runs" / "second")
    copytree(folder / "runs" / "first", folder / "runs" / "unfinished")
    rmtree(folder / "runs" / "unfinished" / "checkpoint")
    for name in ("photos", "one", "words"):
        (folder / name).mkdir()
    (folder / "words" / "a.txt").write_text("a word\n")
    (folder / "w.safetensors").write_bytes(b"")
    for number in range(4):
        picture = Image.fromarray(np.full((8, 8, 3), 50 * number, np.uint8))
        picture.save(folder / "photos" / f"{number}.png")
    picture.save(folder / "one" / "1.png")
    return folder


@pytest.mark.parametrize(("words", "answer"), MISTAKES)
def test_a_mistake_is_one_line_and_leaves_nothing(
    words: str, answer: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(home)
    before = sorted(home.rglob("*"))
    assert main(["--import", "tiny", "--quiet", *words.split()]) == 2
    output = capsys.readouterr()
    assert answer in output.err and output.err.startswith("vantage: ") and output.err.count("\n") == 1
    assert output.out == "" and sorted(home.rglob("*")) == before


@pytest.mark.parametrize("words", IMAGES_DECIDE)
def test_what_some_images_allow_is_not_refused_before_they_are_read(
    words: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(home)
    assert main(["--quiet", *words.split(), "--data", "nowhere"]) == 2
    assert capsys.readouterr().err.startswith("vantage: nowhere does not exist")


def test_a_list_follows_only_where_nothing_is_near(capsys: pytest.CaptureFixture[str]) -> None:
    for verb, answer in (("reprot", "'reprot'; did you mean report?\n"), ("zzz", "'zzz' (verbs: recipes, pretrain, ")):
        assert main([verb]) == 2
        assert f"there is no verb {answer}" in capsys.readouterr().err


def test_what_lies_beside_a_path_is_found_in_its_folder_only(tmp_path: Path) -> None:
    (tmp_path / "Photos").mkdir()
    (tmp_path / "Photos" / "run.json").touch()
    assert near_path(tmp_path / "photos") == f"; did you mean {tmp_path / 'Photos'}?"
    assert near_path(tmp_path / "Photo", "run.json") == f"; did you mean {tmp_path / 'Photos'}?"
    assert near_path(tmp_path / "Photo", "other.json") == "" == near_path(tmp_path / "nothing")
    assert near_path(tmp_path / "gone" / "Photos") == "" and near_path(tmp_path / "Photos") == ": it is a folder"


def test_work_needs_a_thread() -> None:
    from vantage.encoding import Work

    with pytest.raises(UserError, match="num_workers is 0: give at least 1"):
        Work(num_workers=0)


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
    ("word", "hint"),
    [
        ("near_rule.py", "write it without .py: --import near_rule"),
        (".near_rule", "did you mean near_rule?"),
        ("nearrule", "did you mean near_rule?"),
    ],
)
def test_a_mistyped_module_is_suggested(
    word: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("near_rule.py").write_text("")
    assert main(["recipes", "--import", word]) == 2
    assert capsys.readouterr().err.endswith(f"in this folder or installed; {hint}\n")


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
