"""`vantage find`, from the command line: what it writes, its rule, and mistakes."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from tiny import cpu_work, images, saved_run, tiny_run

from vantage.cli import main
from vantage.curation import find_duplicates, find_leaks, find_mistakes, find_outliers
from vantage.data import Arrays, open_source
from vantage.frozen.encoder import load


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, and labeled images: two equal ones with hostile names, and one with a wrong label."""
    folder = tmp_path_factory.mktemp("find")
    saved_run(folder / "run", tiny_run())
    source = images(30, 0, noise=12.0)
    for number in range(30):
        class_folder = folder / "photos" / f"class {source.label(number)}"
        class_folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(source.image(number).permute(1, 2, 0).numpy()).save(class_folder / f"{number:02d}.png")
    photo = folder / "photos" / "class 0" / "00.png"
    (photo.parent / 'a,"b".png').write_bytes(photo.read_bytes())
    (folder / "photos" / "class 1" / "wrong.png").write_bytes((photo.parent / "03.png").read_bytes())
    np.savez(folder / "test.npz", images=source.image(0).permute(1, 2, 0).numpy()[None].repeat(2, 0))
    return folder


def found_rows(folder: Path, words: str, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The rows of the table that a search writes."""
    monkeypatch.setenv("VANTAGE_CACHE", str(folder / "cache"))
    monkeypatch.chdir(folder)
    assert main(["find", *words.split(), "--out", "table.csv", "--device", "cpu", "--num-workers", "1"]) == 0
    with Image.open(folder / "table.png") as sheet:
        assert sheet.width >= 640
    with open(folder / "table.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_duplicates_are_grouped(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    rows = found_rows(folder, "duplicates run --data photos --limit 0.001", monkeypatch)
    groups = {row["group"]: sorted(other["image"] for other in rows if other["group"] == row["group"]) for row in rows}
    assert sorted(groups.values()) == [
        ["class 0/00.png", 'class 0/a,"b".png'],
        ["class 0/03.png", "class 1/wrong.png"],
    ]
    assert [row["keep"] for row in rows] == ["True", "False"] * 2
    output = capsys.readouterr()
    assert "2 groups with 4 of 32 images; 30 are left" in output.out and "table.png" in output.out
    assert "at most 0.001 times" in output.err


def test_no_duplicates_are_no_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(folder / "plain.npz", images=np.random.default_rng(0).integers(0, 255, (3, 32, 32, 3), np.uint8))
    assert found_rows(folder, "duplicates run --data plain.npz", monkeypatch) == []


def test_leaks_of_a_test_set(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    rows = found_rows(folder, "duplicates run --data photos --test test.npz", monkeypatch)
    assert [row["test_image"] for row in rows] == ["row 0", "row 1"]
    assert {row["image"] for row in rows} <= {"class 0/00.png", 'class 0/a,"b".png'}
    assert "leaks: 2 of 2 test images (100.0%)" in capsys.readouterr().out


def test_outliers_mistakes_and_representatives(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = [float(row["score"]) for row in found_rows(folder, "outliers run --data photos", monkeypatch)]
    assert len(scores) == 32 and scores == sorted(scores, reverse=True)
    rows = found_rows(folder, "mistakes run --data photos", monkeypatch)
    assert len(rows) == 32 and {row["mistake"] for row in rows} <= {"True", "False"}
    assert all((float(row["score"]) >= 0.5) == (row["mistake"] == "True") for row in rows)
    for kind in ("clusters", "k-center"):
        rows = found_rows(folder, f"representatives run --data photos --count 5 --by {kind}", monkeypatch)
        assert len({row["image"] for row in rows}) == 5 and sum(int(row["covered"]) for row in rows) == 32


def test_contact_sheets_name_classes_and_what_stands_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(folder / "cache"))
    encoder, source, work = load(folder / "run"), open_source(str(folder / "photos")), cpu_work(folder)
    rows = find_duplicates(encoder, source, work, 0.001).tiles
    words = sorted(tuple(re.sub(r"0\.\d+", "gap", tile.words[0]) for tile in row) for row in rows)
    assert words == [("keep class 0", "gap class 0"), ("keep class 0", "gap class 1")]
    mistakes = find_mistakes(encoder, source, work)
    assert len(mistakes.tiles) == list(mistakes.columns["mistake"]).count(True) > 0
    for row, label, suggested in zip(
        mistakes.tiles, mistakes.columns["label"], mistakes.columns["suggested"], strict=False
    ):
        assert row[0].words[0] == f"{label}: {suggested}?" and [tile.framed for tile in row] == [True] + [False] * 7
    outliers = find_outliers(encoder, source, work)
    tiles = [tile for row in outliers.tiles for tile in row]
    assert [tile.framed for tile in tiles] == list(outliers.columns["outlier"])
    assert [tile.words[0].endswith(" outlier") for tile in tiles] == list(outliers.columns["outlier"])


def test_every_search_doubts_features_that_are_all_equal(folder: Path) -> None:
    encoder, work = load(folder / "run"), cpu_work(folder)
    pixels = np.full((30, 32, 32, 3), 90, np.uint8)
    equal = Arrays(pixels, np.arange(30) % 3, "equal")
    photos = open_source(str(folder / "photos"))
    for search in (find_duplicates, find_outliers, find_mistakes):
        assert search(encoder, equal, work).rule.endswith("or the features mean nothing")
        assert "mean nothing" not in search(encoder, photos, work).rule
    others = Arrays(pixels[:8], None, "others")
    assert find_leaks(encoder, equal, others, work).rule.endswith("or the features mean nothing")
    assert "mean nothing" not in find_leaks(encoder, photos, images(20, 1), work).rule


def test_parquet_holds_the_rule(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(folder / "cache"))
    monkeypatch.chdir(folder)
    words = ["find", "outliers", "run", "--data", "photos", "--out", "far.parquet", "--picture", "sheet.png", "--quiet"]
    assert main(words) == 0
    table = pq.read_table(folder / "far.parquet")
    assert table.column_names == ["image", "score", "outlier", "nearest", "label"] and table.num_rows == 32
    assert "three times" in json.loads(table.schema.metadata[b"vantage"])["rule"] and Path("sheet.png").is_file()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "find needs a kind .duplicates, outliers"),
        ("duplicate run --data photos", "did you mean duplicates"),
        ("duplicates run --data photos --out x.txt", "end the name with .csv or .parquet"),
        ("duplicates run --data photos --out x.csv --picture x.jpg", "--picture x.jpg: .* end the name with .png"),
        ("duplicates run --data photos --out x.csv --limit 0", "--limit 0: give a number above 0"),
        (
            "duplicates run --data photos --test photos --out x.csv",
            "are the training images: give another test set, or none to find duplicates among the images",
        ),
        ("outliers run --data photo --out x.csv", "photo does not exist"),
        ("representatives run --data photos --count 33 --out x.csv", "33 representatives of 32 images"),
        ("representatives run --data photos --by cluster --out x.csv", "did you mean clusters"),
        ("mistakes run --data test.npz --out x.csv", "labels of two classes or more"),
        ("outliers nowhere --data photos --out x.csv", "nowhere"),
    ],
)
def test_mistakes_are_a_line(
    words: str, sentence: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:

    monkeypatch.setenv("VANTAGE_CACHE", str(folder / "cache"))
    monkeypatch.chdir(folder)
    assert main(["find", *words.split(), "--quiet"]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and re.search(sentence, message), message
    assert not list(folder.glob("x.*"))
