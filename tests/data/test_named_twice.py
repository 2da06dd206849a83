"""A file that a set names twice counts once, and a line says so; annotated sets that are named twice are refused."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from annotated import write_voc
from tar_shards import png, write_shards

from vantage.data import open_source
from vantage.errors import DataError
from vantage.evaluate.protocols.detection import open_annotated
from vantage.training.images import open_images
from vantage.training.run import Data


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Shards of 5, 4 and 5 images, of which the last has the size and time of the first but is another file."""
    folder = write_shards(tmp_path / "shards", (5, 4, 5))
    shutil.copystat(folder / "train-000000.tar", folder / "train-000002.tar")
    return folder


@pytest.mark.parametrize(
    ("pattern", "images", "words"),
    [
        ("", 14, ""),
        ("/train-{000000,000001,000001}.tar", 9, "1 file that is named twice counts once: train-000001.tar"),
        (
            "/{.,../shards}/train-{000000..000002}.tar",
            14,
            "3 files that are named twice count once, such as train-000000.tar",
        ),
    ],
)
def test_a_shard_that_a_pattern_names_twice_counts_once(pattern: str, images: int, words: str, shards: Path) -> None:
    source, line = open_images(Data(f"{shards}{pattern}"))
    assert len(source) == images
    assert words in line and bool(words) == ("twice" in line)


def test_a_link_beside_its_shard_counts_once(shards: Path) -> None:
    (shards / "latest.tar").symlink_to("train-000001.tar")
    (shards.parent / "other").symlink_to(shards)
    source, line = open_images(Data(str(shards)))
    assert (
        len(source) == 14 and "1 file that is named twice counts once: latest.tar (again as train-000001.tar)" in line
    )
    source, _ = open_images(Data(f"{shards.parent}/{{shards,other}}/train-000000.tar"))
    assert len(source) == 5


def test_a_link_beside_its_parquet_file_counts_once(tmp_path: Path) -> None:
    table = pa.table({"image": [{"bytes": png(number), "path": None} for number in range(4)], "label": np.arange(4)})
    folder = tmp_path / "rows"
    folder.mkdir()
    pq.write_table(table, folder / "train.parquet")
    (folder / "latest.parquet").symlink_to("train.parquet")
    source, line = open_images(Data(str(folder)))
    assert len(source) == 4 and "latest.parquet (again as train.parquet)" in line


def test_annotated_sets_that_are_named_twice_are_refused(tmp_path: Path) -> None:
    write_voc(tmp_path / "VOC", {"1": [("dog", (1, 1, 9, 9), 0)]}, "train")
    (tmp_path / "link").symlink_to("VOC")
    for other in ("VOC", "link"):
        with pytest.raises(
            DataError, match=r"VOC#train is named (twice|again as .*link#train): its images would count"
        ):
            open_annotated(f"{tmp_path}/VOC#train,{tmp_path}/{other}#train")


def test_an_image_that_a_list_names_twice_counts_once(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.png").write_bytes(png(1))
    (tmp_path / "list.txt").write_text("a.png cat\nb.png dog\n./a.png cat\nc.png\nb.png dog\n")
    source, line = open_images(Data(str(tmp_path / "list.txt")))
    assert [source.name(number) for number in range(len(source))] == ["a.png", "b.png", "c.png"]
    assert [source.label(number) for number in range(3)] == [0, 1, None]
    assert "2 files that are named twice count once, such as a.png (again as ./a.png)" in line


def test_an_image_that_a_list_names_by_several_paths_counts_once(tmp_path: Path) -> None:
    """By its absolute path, through a linked folder, or once without its label, which the other line gives."""
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.png").write_bytes(png(1))
    (tmp_path / "here").symlink_to(tmp_path)
    lines = [f"{tmp_path}/a.png", "b.png dog", "a.png cat", f"{tmp_path}/here/b.png dog", "c.png", "d\0/a.png cat"]
    (tmp_path / "list.txt").write_text("\n".join(lines))
    for root in (tmp_path, tmp_path / "here"):
        source = open_source(str(root / "list.txt"))
        assert [source.name(number) for number in range(len(source))] == [lines[0], "b.png", "c.png", "d\0/a.png"]
        assert [source.label(number) for number in range(4)] == [0, 1, None, 0]


def test_a_link_that_a_list_names_beside_its_file_counts_once(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(1))
    (tmp_path / "far").mkdir()
    for link in ("b.png a.png", "c.png far/../b.png", "gone.png nowhere.png", "x.png x.png"):
        name, target = link.split()
        (tmp_path / name).symlink_to(target)
    (tmp_path / "list.txt").write_text("b.png\na.png cat\ngone.png dog\nx.png dog\nc.png cat\n")
    source, line = open_images(Data(str(tmp_path / "list.txt"), on_bad_image="skip"))
    assert "2 files that are named twice count once, such as b.png (again as a.png)" in line
    source = open_source(str(tmp_path / "list.txt"))
    assert [source.name(number) for number in range(len(source))] == ["b.png", "gone.png", "x.png"]
    assert [source.label(number) for number in range(3)] == [0, 1, 1]
    (tmp_path / "list.txt").write_text("a.png cat\nb.png dog\n")
    with pytest.raises(DataError, match=r"a\.png is 'cat' on line 1, but 'dog' on line 2 \(as b\.png\)"):
        open_source(str(tmp_path / "list.txt"))


def test_an_image_to_which_a_list_gives_two_labels_is_refused(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(f"# mine\na.png cat\nb.png dog\n{tmp_path}/a.png dog\n")
    with pytest.raises(DataError, match=r"a\.png is 'cat' on line 2, but 'dog' on line 4.*table \(\.csv\)"):
        open_source(str(tmp_path / "list.txt"))


def test_an_image_that_a_table_names_by_two_paths_is_refused(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(f"a.png,cat\n{tmp_path}/a.png,dog\n")
    with pytest.raises(DataError, match="names 1 image twice"):
        open_source(str(tmp_path / "table.csv"))


def test_an_image_that_a_folder_holds_again_through_a_link_counts_once(tmp_path: Path) -> None:
    """The file's own name counts, wherever it stands; of several links to a file elsewhere, the first."""
    photos = tmp_path / "photos"
    for folder in ("best", "photos/cats", "photos/dogs"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("photos/cats/1.png", "photos/dogs/2.png", "best/3.png"):
        (tmp_path / name).write_bytes(png(1))
    (photos / "cats" / "0.png").symlink_to("../loop/dogs/2.png")
    (photos / "cats" / "3.png").symlink_to(tmp_path / "best" / "3.png")
    (photos / "dogs" / "3.png").symlink_to("../cats/3.png")
    (photos / "loop").symlink_to(photos)
    for _ in ("read", "cached"):
        source, line = open_images(Data(str(photos)))
        names = [source.name(number) for number in range(len(source))]
        assert names == ["cats/1.png", "cats/3.png", "dogs/2.png"] and source.classes == ("cats", "dogs")
        assert "2 files that are named twice count once, such as dogs/2.png (again as cats/0.png)" in line


def test_links_to_images_without_a_class_give_them_theirs(tmp_path: Path) -> None:
    for name in ("1", "2", "3"):
        (tmp_path / f"{name}.png").write_bytes(png(1))
    for name, number in (("dogs", 1), ("cats", 2), ("dogs", 2)):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / f"{number}.png").symlink_to(f"../{number}.png")
    source, line = open_images(Data(str(tmp_path)))
    names = [source.name(number) for number in range(len(source))]
    assert names == ["3.png", "cats/2.png", "dogs/1.png"] and [*map(source.label, range(3))] == [None, 0, 1]
    assert "1 of the second names lies in another class (dogs), which does not count" in line


def test_classes_of_links_to_images_of_other_classes_are_said_to_be_lost(tmp_path: Path) -> None:
    for folder in ("photos/pool", "photos/cats", "photos/dogs"):
        (tmp_path / folder).mkdir(parents=True)
    for number in range(4):
        (tmp_path / "photos" / "pool" / f"{number}.png").write_bytes(png(1))
        (tmp_path / "photos" / ("cats", "dogs")[number % 2] / f"{number}.png").symlink_to(f"../pool/{number}.png")
    source, line = open_images(Data(str(tmp_path / "photos")))
    lost = "4 of the second names lie in other classes (cats, dogs), which do not count: for the classes of links, "
    assert len(source) == 4 and source.classes == () and lost + "keep their files outside this folder" in line
    (tmp_path / "photos" / "pool").rename(tmp_path / "pool")
    for number in range(4):
        link = tmp_path / "photos" / ("cats", "dogs")[number % 2] / f"{number}.png"
        link.unlink()
        link.symlink_to(f"../../pool/{number}.png")
    source, line = open_images(Data(str(tmp_path / "photos")))
    assert source.classes == ("cats", "dogs") and "twice" not in line
