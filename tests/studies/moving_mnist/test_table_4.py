import csv
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vantage.cli import main
from vantage.data.sources.arrays import Arrays
from vantage.studies.moving_mnist import (
    COMBINATIONS,
    PUBLISHED,
    ClipEncoder,
    ClipTraining,
    FrameEncoder,
    InfoMinTable4,
    LinearHeads,
    Scene,
    reproduce,
)

SMALL = (
    *("--set", "course.epochs=1", "--set", "course.batch_size=8"),
    *("--set", "heads.course.epochs=1", "--set", "heads.course.batch_size=8"),
    *("--set", "scene.seen=2", "--set", "scene.last=3", "--digit-classes", "2", "--background-classes", "2"),
    *("--information-clips", "8"),
)


def pixels(images: int, *shape: int, seed: int = 0) -> "np.ndarray":
    return np.random.default_rng(seed).integers(0, 256, (images, *shape), dtype=np.uint8)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Tiny labeled sets on disk, by the names of their flags."""
    folder = tmp_path_factory.mktemp("sets")
    for name, *shape in (("digits", 28, 28), ("backgrounds", 64, 64, 3)):
        train, test = (pixels(16, *shape, seed=seed) for seed in (0, 1))
        label = np.arange(16) % 2
        np.savez(folder / f"{name}.npz", x_train=train, y_train=label, x_test=test, y_test=label)
    return {
        flag: f"{folder}/{flag.removeprefix('test_')}.npz#{'test' if 'test' in flag else 'train'}"
        for flag in ("digits", "test_digits", "backgrounds", "test_backgrounds")
    }


def words(paths: Mapping[str, str], out: Path) -> list[str]:
    flags = [word for name, path in paths.items() for word in (f"--{name.replace('_', '-')}", path)]
    return ["reproduce", "infomin-table-4", *flags, *SMALL, "--out", str(out)]


def test_one_command_prints_the_table_and_a_second_one_resumes(
    paths: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "made"
    assert main(words(paths, out)) == 0
    output = capsys.readouterr().out
    assert "background, digit, location: " in output and "paper 0.93" in output
    document = (out / "infomin-table-4.md").read_text()
    lines = [" ".join(line.split()) for line in document.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 7 + 3 and "| 16.8 |" in lines[2] and "| 3.95 |" in lines[4]
    with (out / "infomin-table-4.csv").open() as file:
        table = list(csv.DictReader(file))
    record = json.loads((out / "infomin-table-4.json").read_text())
    assert [row["views share"] for row in table] == [row["views share"] for row in record["rows"]]
    assert [row["views share"] for row in table][:7] == [shared.name for shared in COMBINATIONS]
    assert table[-1]["views share"] == "chance" and float(table[0]["location error (pixels), paper"]) == 13.6
    with Image.open(out / "infomin-table-4.png") as image:
        assert image.height > 7 * 2 * 64
    stored_rows = json.loads((out / "rows.json").read_text())
    assert len(stored_rows["rows"]) == 9
    # One row is lost: only that is made again, and it comes out the same.
    lost_row = stored_rows["rows"].pop(3)
    for number, row in enumerate(stored_rows["rows"]):
        row["seconds"] = 1000.0 + number  # by which a row that is made again would show
    (out / "rows.json").write_text(json.dumps(stored_rows))
    assert main([*words(paths, out), "--repetitions", "1"]) == 0
    *others, again = json.loads((out / "rows.json").read_text())["rows"]
    assert (again["key"], again["measures"]) == (lost_row["key"], lost_row["measures"]) and others == stored_rows[
        "rows"
    ]
    assert (out / "infomin-table-4.md").read_text() == document
    # Other settings are refused: their rows would not belong together.
    assert main([*words(paths, out), "--temperature", "0.2"]) == 2
    assert "temperature is 0.1 there, 0.2 was asked for" in capsys.readouterr().err


@pytest.mark.slow
def test_more_seeds_can_be_added_later(paths: dict[str, str], tmp_path: Path) -> None:
    arrays = {name: Arrays.read(Path(path.split("#")[0]), path.split("#")[1]) for name, path in paths.items()}
    entry = InfoMinTable4(
        scene=Scene(seen=1, last=2),
        encoder=ClipEncoder(FrameEncoder((4,)), 4, 4),
        digit_classes=2,
        background_classes=2,
        course=ClipTraining(epochs=1, batch_size=8, clips=8),
        heads=LinearHeads(ClipTraining(epochs=1, batch_size=8)),
    )
    first, _ = reproduce(entry, arrays, tmp_path)
    both, _ = reproduce(replace(entry, repetitions=2), arrays, tmp_path)
    assert "±" not in first.rows[0][1] and "±" in both.rows[0][1] and "seeds 2 " in both.notes[0]
    assert len(json.loads((tmp_path / "rows.json").read_text())["rows"]) == 18


def test_the_list_and_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce"]) == 0
    assert "infomin-table-4: Table 4: Colorful Moving MNIST" in capsys.readouterr().out
    assert main(["reproduce", "--help"]) == 0
    assert "infomin-table-4" in capsys.readouterr().out
    assert main(["reproduce", "infomin-table-4", "--help"]) == 0
    output = capsys.readouterr().out
    for flag in ("--test-backgrounds", "--repetitions", "--set PATH=VALUE", "--temperature"):
        assert flag in output


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"digits": "BACKGROUNDS"}, "64 by 64 pixels: digits are 28 by 28"),
        ({"test_digits": "UNLABELED"}, "test digits have no labels"),
        ({"backgrounds": "nowhere.npz"}, "does not exist"),
        ({"--background-classes": "3"}, "of 2 classes, and 3 are needed"),
        ({"--digit-classes": "1"}, "fewer than 2 classes"),
        ({"--set": "course.epochs=0"}, "at least 1 epoch"),
        ({"--set": "course.batch_size=17"}, "batches of 17"),
        ({"--course.epochs": "3"}, "did you mean --set course.epochs=3?"),
        ({"--speed": "2"}, "no option --speed"),
        ({"--test-frames": "-1"}, "nothing below 0"),
    ],
)
def test_mistakes_are_reported_before_training(
    changes: dict[str, str],
    problem: str,
    paths: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    np.savez(tmp_path / "bare.npz", images=pixels(16, 28, 28))
    stand_ins = {"BACKGROUNDS": paths["backgrounds"], "UNLABELED": str(tmp_path / "bare.npz")}
    sets = {name: stand_ins.get(changes.get(name, path), changes.get(name, path)) for name, path in paths.items()}
    more = [word for flag, value in changes.items() if flag.startswith("--") for word in (flag, value)]
    usual, path = words(sets, tmp_path / "out"), changes.get("--set", "nothing").partition("=")[0]
    set_anew = {number for number, word in enumerate(usual) if word.startswith(f"{path}=")}
    usual = [word for number, word in enumerate(usual) if not {number, number + 1} & set_anew]
    assert main([*usual, *more]) == 2
    assert problem in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out" / "rows.json").exists()


def test_an_unknown_entry_suggests_a_similar_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "infomin-tabel-4"]) == 2
    assert "infomin-table-4" in capsys.readouterr().err
    assert main(["reproduce", "infomin-table-4", "--test-digits", "x", "--out", "x"]) == 2
    assert "needs --digits" in capsys.readouterr().err


def test_the_table_is_a_frozen_value_and_the_paper_has_each_of_its_rows() -> None:
    assert InfoMinTable4() == InfoMinTable4() and hash(InfoMinTable4()) == hash(InfoMinTable4())
    assert set(PUBLISHED) == {*(shared.name for shared in COMBINATIONS), "supervised"}
