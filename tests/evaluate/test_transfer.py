"""Transfer: one table of many sets, statistics of each, recorded rows, and sets that are not available."""

import csv
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tiny import cpu_work, images, saved_run, tiny_run

from vantage.cli import main
from vantage.encoders.backbones.resnet import ResNet
from vantage.encoders.encoder import Encoder
from vantage.encoders.heads import LinearHead
from vantage.encoders.roles import Shared
from vantage.errors import DataError, UserError
from vantage.evaluate import KNN, SVM, LinearCached
from vantage.evaluate.transfer.sets import META_DATASET, TransferSet, available_sets
from vantage.evaluate.transfer.table import TransferRow, TransferTable
from vantage.evaluate.transfer.transfer import transfer
from vantage.frozen.encoder import load
from vantage.views.colors.statistics import Statistics


def write_set(file: Path, count: int, seed: int, classes: int = 3) -> str:
    """Colored squares in an array file; returns its path."""
    source = images(count, seed, classes)
    pixels = torch.stack([source.image(number) for number in range(count)]).permute(0, 2, 3, 1).numpy()
    np.savez(file, images=pixels, labels=np.arange(count) % classes)
    return str(file)


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    saved_run(tmp_path / "run", tiny_run())
    return tmp_path / "run"


def two_sets(tmp_path: Path) -> tuple[TransferSet, TransferSet]:
    first = TransferSet("squares", write_set(tmp_path / "a.npz", 60, 0), write_set(tmp_path / "b.npz", 30, 1))
    return first, TransferSet("more", write_set(tmp_path / "c.npz", 50, 2))


def test_one_table_of_many_sets(run_folder: Path, tmp_path: Path) -> None:
    sets, work = two_sets(tmp_path), cpu_work(tmp_path)
    table = transfer(run_folder, sets, KNN(5), baselines=True, work=work)
    cells = table.cells()
    assert cells[0] == ["set", "moco_v2", "raw pixels", "random encoder", "measure", "training images", "test images"]
    assert [line[0] for line in cells[1:]] == ["squares", "more", "mean"]
    assert cells[1][-2:] == ["60", "30"] and cells[2][-2:] == ["41", "9"] and cells[1][4] == "top-1"
    assert float(cells[3][1]) == pytest.approx((table.rows[0].value + table.rows[3].value) / 2, abs=0.01)
    lines = table.markdown().splitlines()
    assert re.fullmatch(r"\| -+ \|( -+: \|){6}", lines[1]) and '"k": 5' in lines[6]
    assert len({len(line) for line in lines[:5]}) == 1, "columns are aligned"
    assert list(csv.reader(table.comma_separated().splitlines())) == cells


def test_each_set_is_normalized_by_its_own_statistics(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the mean and deviation over all pixels of its training images."""
    sets = two_sets(tmp_path)
    statistics: list[Statistics] = []

    def record(self: KNN, encoder: Any, *rest: Any) -> Any:
        statistics.append(encoder.view.statistics)
        return judge(self, encoder, *rest)

    judge = KNN.__call__
    monkeypatch.setattr(KNN, "__call__", record)
    with_statistics = replace(sets[1], statistics=Statistics((0.1, 0.2, 0.3), (0.4, 0.5, 0.6)))
    table = transfer(run_folder, (sets[0], with_statistics), KNN(5), work=cpu_work(tmp_path))
    said = "Normalized by given mean (0.1, 0.2, 0.3), standard deviation (0.4, 0.5, 0.6): more."
    assert said in table.markdown().splitlines() and table.markdown().count("Normalized") == 1
    pixels = np.load(tmp_path / "a.npz")["images"].astype(np.float64) / 255
    assert statistics[0].mean == pytest.approx(pixels.mean((0, 1, 2)), abs=1e-6)
    assert statistics[0].std == pytest.approx(pixels.std((0, 1, 2)), abs=1e-6)
    assert statistics[1] == with_statistics.statistics
    # The value is that of the protocol on this view.
    encoder = load(run_folder)
    assert encoder.view.statistics not in statistics


def test_finished_results_are_not_computed_again(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets, work = two_sets(tmp_path), cpu_work(tmp_path)
    calls: list[int] = []
    judge = KNN.__call__

    def count_calls(self: KNN, *rest: Any) -> Any:
        calls.append(1)
        return judge(self, *rest)

    monkeypatch.setattr(KNN, "__call__", count_calls)
    first = transfer(run_folder, sets[:1], KNN(5), work=work)
    both = transfer(run_folder, sets, KNN(5), work=work)
    assert len(calls) == 2 and both.rows[0] == first.rows[0]
    assert transfer(run_folder, sets, KNN(5), work=work) == both and len(calls) == 2
    transfer(run_folder, sets, KNN(6), work=work)
    assert len(calls) == 4  # another protocol
    write_set(tmp_path / "a.npz", 60, 5)
    transfer(run_folder, sets, KNN(5), work=work)
    assert len(calls) == 5  # other images
    shutil.rmtree(run_folder / "evaluations")
    transfer(run_folder, sets, KNN(5), work=work)
    assert len(calls) == 7


def test_a_set_that_cannot_be_evaluated_is_named(run_folder: Path, tmp_path: Path) -> None:
    sets = two_sets(tmp_path)
    table = transfer(run_folder, sets, KNN(45), work=cpu_work(tmp_path))
    assert [row.name for row in table.rows] == ["squares"] and "more" in table.left_out
    assert "Not evaluated: more (" in table.markdown()
    with pytest.raises(UserError, match="no set could be evaluated: squares"):
        transfer(run_folder, sets[:1], KNN(500), work=cpu_work(tmp_path))


def test_mistakes_are_reported_first(run_folder: Path, tmp_path: Path) -> None:
    sets, work = two_sets(tmp_path), cpu_work(tmp_path)
    with pytest.raises(DataError, match="nowhere does not exist"):
        transfer(run_folder, (*sets, TransferSet("x", str(tmp_path / "nowhere"))), KNN(5), work=work)
    with pytest.raises(UserError, match="sets with different names"):
        transfer(run_folder, (sets[0], sets[0]), KNN(5), work=work)
    one_class = TransferSet("one", write_set(tmp_path / "one.npz", 9, 0, classes=1))
    with pytest.raises(DataError, match="all labeled images .* have the same class"):
        transfer(run_folder, (one_class,), KNN(5), work=work)
    with pytest.raises(UserError, match="test images are the training images"):
        transfer(run_folder, (replace(sets[0], test=sets[0].train),), KNN(5), work=work)
    assert not (run_folder / "evaluations").exists()


def write_folder(root: Path, count: int, classes: int = 2) -> None:
    """Colored squares as files, a folder for each class."""
    source = images(count, 0, classes)
    for number in range(count):
        file = root / f"class {number % classes}" / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(source.image(number).permute(1, 2, 0).numpy()).save(file)


def test_a_bad_set_of_a_suite_is_named_and_left_out(run_folder: Path, tmp_path: Path) -> None:
    """A set named by itself is an error instead."""
    root, work = tmp_path / "root", cpu_work(tmp_path)
    write_folder(root / "Fungi", 20)
    (root / "CUB").mkdir()
    available, _ = available_sets(META_DATASET, root, download=False)
    available.append(TransferSet("one", write_set(tmp_path / "one.npz", 9, 0, classes=1)))
    table = transfer(run_folder, (), KNN(3), suite=available, work=work)
    assert [row.name for row in table.rows] == ["Fungi"] and set(table.left_out) == {"CUB", "one"}
    assert table.left_out["CUB"].startswith(f"no images in {root / 'CUB'}: ")
    assert "have the same class" in table.left_out["one"] and "Not evaluated: CUB (" in table.markdown()
    with pytest.raises(DataError, match="CUB: no images in"):
        transfer(run_folder, [one for one in available if one.name == "CUB"], KNN(3), work=work)
    with pytest.raises(UserError, match="no set could be evaluated: CUB: "):
        transfer(run_folder, (), KNN(3), suite=[available[0]], work=work)


def test_images_that_show_several_classes(run_folder: Path, tmp_path: Path) -> None:
    """Some protocols evaluate them; others leave them out, with a hint."""
    write_folder(tmp_path, 24)
    names = sorted(path.relative_to(tmp_path) for path in tmp_path.glob("class*/*.png"))
    lines = [f"{name},{name.parts[0]},{'odd' if number % 2 else 'even'}" for number, name in enumerate(names)]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    sets, work = (two_sets(tmp_path)[0], TransferSet("marked", str(tmp_path / "table.csv"))), cpu_work(tmp_path)
    table = transfer(run_folder, sets, SVM(costs=(1.0,)), work=work)
    assert [(row.name, row.train_images, row.test_images) for row in table.rows][1] == ("marked", 19, 5)
    assert not table.left_out
    table = transfer(run_folder, sets, KNN(3), work=work)
    assert [row.name for row in table.rows] == ["squares"] and "judge them by svm" in table.left_out["marked"]


def test_unreadable_images_are_left_out_or_refused(run_folder: Path, tmp_path: Path) -> None:
    write_folder(tmp_path / "set", 100)
    (tmp_path / "set" / "class 1" / "7.png").write_bytes(b"no image")
    one, work = TransferSet("set", str(tmp_path / "set")), cpu_work(tmp_path)
    (row,) = transfer(run_folder, [one], KNN(3), work=work).rows
    assert row.train_images + row.test_images == 99
    with pytest.raises(DataError, match="set: 1 of 100 images"):
        transfer(run_folder, [one], KNN(3), on_bad_image="stop", work=work)


def test_other_library_versions_evaluate_again(run_folder: Path, tmp_path: Path) -> None:
    sets, work = two_sets(tmp_path)[:1], cpu_work(tmp_path)
    table = transfer(run_folder, sets, KNN(5), work=work)
    (file,) = (run_folder / "evaluations" / "transfer").iterdir()
    record = json.loads(file.read_text())
    record["outcomes"]["moco_v2"]["measures"]["top-1"] = 1.0
    file.write_text(json.dumps(record))
    assert transfer(run_folder, sets, KNN(5), work=work).rows[0].value == 1.0, "read"
    file.write_text(json.dumps(record | {"libraries": record["libraries"] | {"torch": "1.0"}}))
    assert transfer(run_folder, sets, KNN(5), work=work) == table, "made anew"
    assert f"checkpoint: {record['checkpoint']}; device: cpu; libraries: python " in table.markdown()
    assert f"torch {record['libraries']['torch']}" in table.markdown()


def test_a_suite_uses_what_is_there_and_names_the_rest(tmp_path: Path) -> None:
    for name in ("CUB/train/a", "CUB/val/a", "Fungi/a", "Fungi/b", "COCO/annotations", "MNIST/train", "MNIST/test"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "COCO" / "annotations" / "instances_train2017.json").touch()
    (tmp_path / "COCO" / "annotations" / "instances_val2017.json").touch()
    available, absent = available_sets(META_DATASET, tmp_path, download=False)
    paths_of = {one.name: (one.train, one.test) for one in available}
    assert set(paths_of) == {"CUB", "Fungi", "MNIST", "COCO"}
    assert paths_of["CUB"] == (str(tmp_path / "CUB" / "train"), str(tmp_path / "CUB" / "val"))
    assert paths_of["Fungi"] == (str(tmp_path / "Fungi"), "")
    assert paths_of["COCO"][0].startswith("crops:") and paths_of["COCO"][1].endswith("instances_val2017.json")
    assert [line.partition(":")[0] for line in absent] == [
        "Aircraft", "DTD", "FashionMNIST", "GTSRB", "Flowers", "Places205"
    ]  # fmt: skip
    assert "--download" in absent[0] and "--download" not in absent[-1]
    available, absent = available_sets(META_DATASET, None, download=True)
    assert {one.name for one in available} == {"Aircraft", "DTD", "MNIST", "FashionMNIST", "GTSRB", "Flowers"}
    assert [line.partition(":")[0] for line in absent] == ["CUB", "Fungi", "COCO", "Places205"]


def test_a_mean_needs_every_set() -> None:
    rows = (
        TransferRow("a", "x", "top-1", 50.0, 3, 4),
        TransferRow("a", "y", "top-1", 25.0, 3, 4),
        TransferRow("b", "x", "top-1", 70.0, 3, 4),
    )
    assert TransferTable("knn", 1, {}, rows, {}).cells()[1:] == [
        ["a", "50.00", "25.00", "top-1", "3", "4"],
        ["b", "70.00", "", "top-1", "3", "4"],
        ["mean", "60.00", "", "", "", ""],
    ]


@pytest.mark.slow
def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved_run(tmp_path / "run", replace(tiny_run(), encoders=Shared(Encoder(ResNet(18, small=True), LinearHead(8)))))
    train, test = write_set(tmp_path / "a.npz", 24, 0), write_set(tmp_path / "b.npz", 12, 1)
    start = ["evaluate", "transfer", str(tmp_path / "run")]
    words = [*start, "--sets", f"one={train},{test}", f"two={test}", "--by", "knn", "--set", "k=3", "--quiet"]
    assert main(words) == 0, capsys.readouterr().err
    output = capsys.readouterr()
    assert "| one  | " in output.out and "| mean | " in output.out
    assert (tmp_path / "run" / "evaluations" / "transfer.md").read_text().startswith("| set  | moco_v2 |")
    assert (tmp_path / "run" / "evaluations" / "transfer.csv").read_text().startswith("set,moco_v2,measure")
    folder = tmp_path / "one, two"
    folder.mkdir()
    shutil.copy(train, folder / "a.npz")
    assert main([*start, "--sets", f"one={folder / 'a.npz'}", "--by", "knn", "--set", "k=3", "--quiet"]) == 0
    assert "| one | " in capsys.readouterr().out, "the comma belongs to the path of the training images"
    (tmp_path / "root" / "MNIST").mkdir(parents=True)
    shutil.copy(train, tmp_path / "root" / "MNIST" / "x.npz")
    mistakes = {
        ("--by", "knnn", "--sets", f"one={train}"): "there is no protocol 'knnn'; did you mean knn?",
        ("--sets", train): "write NAME=PATH",
        (): "there is no set: name some",
        ("--suite", "meta-dataset"): "Aircraft: no folder Aircraft",
        ("--sets", f"one={train}", "--mean", "0.5", "0.5"): "give both, three numbers each",
        (
            "--mean",
            "123.7",
            "116.3",
            "103.5",
            "--std",
            "58.4",
            "57.1",
            "57.4",
        ): "divide those of colors up to 255 by 255",
        (
            "--mean",
            "nan",
            "0.5",
            "0.5",
            "--std",
            "0.2",
            "0.2",
            "0.2",
        ): "--mean (nan, 0.5, 0.5): give numbers from 0 to 1",
        ("--sets", f"one={train}", "--out", str(tmp_path / "x.txt")): "end the name with .md or .csv",
        ("--sets", f"one={train}", "--kk", "3"): "no option --kk",
    }
    for wrong, sentence in mistakes.items():
        assert main([*start, *wrong]) == 2
        assert sentence in capsys.readouterr().err.replace("\n", " "), wrong


def test_any_protocol_can_evaluate(run_folder: Path, tmp_path: Path) -> None:
    table = transfer(run_folder, two_sets(tmp_path)[:1], LinearCached((1e-3,)), work=cpu_work(tmp_path))
    assert table.protocol == "linear-cached" and table.rows[0].value > 50
