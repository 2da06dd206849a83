"""Images that a system hides or leaves behind are no images of the user's: left out, counted and mentioned."""

import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kept_images import IMAGES, as_png
from small_runs import small_run
from tar_shards import png, samples, write_shard

from vantage.data import Parquet, Shards, Tar, open_source
from vantage.data.sources import listing
from vantage.data.sources.hidden import hidden_part, hidden_words, is_hidden
from vantage.data.sources.listing import list_images
from vantage.data.sources.masked import open_masked
from vantage.errors import DataError, UserError
from vantage.training.images import open_images
from vantage.training.loop import resume, train
from vantage.training.run import Data

VISIBLE = ("a/1.png", "a/2.png", "b/3.png")
HIDDEN = (
    *(".thumbnails/1.png", ".thumbnails/large/2.png", ".thumbnails/.deeper/3.png", "a/.cover.png", "b/@eaDir/3.png"),
    *("__MACOSX/a/1.png", "__MACOSX/a/._1.png", ".Trash-1000/files/old.png", "a/._1.png", ".git/config"),
)
COUNTS = {".thumbnails": 3, ".cover.png": 1, "@eaDir": 1, "__MACOSX": 1, ".Trash-1000": 1}


def write(root: Path, names: tuple[str, ...]) -> Path:
    for number, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(as_png(IMAGES[number % len(IMAGES)]))
    return root


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    return write(write(tmp_path / "photos", VISIBLE), HIDDEN)


def test_names_that_are_hidden() -> None:
    assert all(map(is_hidden, (".git", ".Trash-1000", "__MACOSX", "@eaDir", "@EADIR", "lost+found", "$RECYCLE.BIN")))
    assert not any(map(is_hidden, ("", ".", "..", "a", "a.git", "_MACOSX", "eaDir", "found")))
    assert hidden_part("a/.b/.c/1.jpg") == ".b" and hidden_part("a/.1.jpg") == ".1.jpg"
    assert hidden_part("./a/1.jpg") == hidden_part("lost+found") == hidden_part("a.b/1.jpg") == ""
    assert hidden_words({}) == "" and hidden_words({".a": 1}) == "1 hidden image (.a)"
    assert hidden_words({"d": 1, "c": 1, "b": 2, "a": 1000}) == "1,004 hidden images (a, b, c, …)"


def test_hidden_images_are_left_out_and_counted(photos: Path, tmp_path: Path) -> None:
    for folder, _, _ in os.walk(photos):
        os.utime(folder, (1_000_000_000, 1_000_000_000))
    first, second = (list_images(photos, tmp_path / "cache") for _ in range(2))
    assert first.names == second.names == VISIBLE and first.hidden == second.hidden == COUNTS
    assert first.reads > 0 == second.reads


def test_they_are_no_classes_and_are_mentioned(photos: Path, tmp_path: Path) -> None:
    source, line = open_images(Data(str(photos)))
    assert source.classes == ("a", "b") and [source.name(number) for number in range(3)] == list(VISIBLE)
    assert line == ("all 3 images can be read; 7 hidden images (.thumbnails, .Trash-1000, .cover.png, …) left out")
    assert source.fingerprint() == open_source(write(tmp_path / "tidy", VISIBLE)).fingerprint()


def test_pictures_of_runs_are_no_images(photos: Path, tmp_path: Path) -> None:
    """Whoever trains in the folder of the images has the run's contact sheets among them."""
    picture = "runs/first/evaluations/neighbors.png"
    write(photos, ("runs/first/settings.json", "runs/first/settings.py.txt", picture, "c/settings.json", "c/1.png"))
    for _ in range(2):
        result = list_images(photos, tmp_path / "cache")
        assert result.names == (*VISIBLE, "c/1.png") and result.hidden == {**COUNTS, "the run first": 1}
    assert list_images(photos / "runs" / "first", tmp_path / "cache").names == ("evaluations/neighbors.png",)


def test_a_hidden_folder_that_is_named_is_used(photos: Path) -> None:
    assert len(open_source(photos / ".thumbnails")) == 2  # below it, .deeper is hidden
    assert len(open_source(f"{photos}#.thumbnails")) == 2
    moved = photos.rename(photos.parent / ".private")
    assert len(open_source(moved)) == 3 and len(open_source(moved / "a")) == 2


def test_all_images_are_hidden(tmp_path: Path) -> None:
    write(tmp_path / "photos", (".a/1.png", ".a/2.png", ".b/1.png"))
    with pytest.raises(
        DataError, match=r"no images in .*photos, except 3 hidden images \(.a, .b\), which are left out"
    ):
        open_source(tmp_path / "photos")


def test_links_out_of_hidden_folders_are_not_followed(photos: Path, tmp_path: Path) -> None:
    (photos / ".thumbnails" / "everything").symlink_to(tmp_path)
    (photos / ".a").symlink_to(photos / "a")
    write(tmp_path / "far", ("1.png",))
    assert list_images(photos, tmp_path / "cache").hidden == COUNTS
    (photos / "shown").symlink_to(photos / ".thumbnails" / "large")  # as some tools keep files
    after = list_images(photos, tmp_path / "cache")
    assert after.names == (*VISIBLE, "shown/2.png") and after.hidden[".thumbnails"] == 2


def test_a_hidden_folder_that_may_not_be_read(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As lost+found at the top of a disk, which only the administrator may read."""
    (photos / "lost+found").mkdir()

    def refuse(path: str | int) -> object:
        if str(path).endswith("lost+found"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    scandir = os.scandir
    monkeypatch.setattr(listing.os, "scandir", refuse)
    assert list_images(photos, tmp_path / "cache").names == VISIBLE


def test_hidden_images_and_masks(photos: Path) -> None:
    masks = write(photos.parent / "masks", (*VISIBLE, ".thumbnails/9.png"))
    assert len(open_masked(f"{photos}#{masks}", classes=("x", "y"))) == 3


def test_hidden_members_of_a_tar(photos: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(photos, "photos")
    source, line = open_images(Data(str(tmp_path / "a.tar")))
    assert isinstance(source, Tar) and source.classes == ("a", "b") and len(source) == 3
    assert line.endswith("; 7 hidden images (.thumbnails, .Trash-1000, .cover.png, …) left out")
    assert len(open_source(f"{tmp_path}/a.tar#photos/.thumbnails")) == 2
    with tarfile.open(tmp_path / "b.tar", "w") as tar:
        tar.add(photos / "a", ".cache/a")
    with pytest.raises(DataError, match=r"no images in .*b.tar, except 3 hidden images \(.cache\), .* folder after #"):
        open_source(tmp_path / "b.tar")


def test_hidden_members_of_shards(tmp_path: Path) -> None:
    hidden = [(".thumbs/1.png", png(1)), (".thumbs/1.cls", b"9"), ("._0001.png", b""), ("a/._2.png", b"")]
    write_shard(tmp_path / "s" / "0.tar", [*samples(0, 3), *hidden])
    write_shard(tmp_path / "s" / "1.tar", [("__MACOSX/1.png", png(2)), *samples(3, 2)])
    (tmp_path / "s" / "._0.tar").write_bytes(b"what macOS knows of a file")
    for _ in range(2):  # as indexed, and from the cache
        source = open_source(tmp_path / "s", cache=tmp_path / "cache")
        assert isinstance(source, Shards) and len(source) == 5 and source.classes == ("0", "1", "2")
        assert source.hidden == {".thumbs": 1, "__MACOSX": 1}
    write_shard(tmp_path / "t" / "0.tar", [(".thumbs/1.png", png(1))])
    with pytest.raises(DataError, match=r"no images in 1 shard, .*, except 1 hidden image \(.thumbs\), which are left"):
        open_source(tmp_path / "t", cache=tmp_path / "cache")


def test_hidden_tables_are_no_shards(tmp_path: Path) -> None:
    table = pa.table({"image": pa.array([as_png(image) for image in IMAGES[:3]], pa.binary())})
    pq.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "._a.parquet").write_bytes(b"what macOS knows of a file")
    source = open_source(tmp_path, cache=tmp_path / "cache")
    assert isinstance(source, Parquet) and len(source) == 3


def test_a_run_that_began_on_hidden_images_is_not_continued_on_others(photos: Path, tmp_path: Path) -> None:
    write(photos, tuple(f"{name}/{number}.png" for name in "abc" for number in range(16)))
    run = replace(small_run("simclr", str(photos), epochs=1), data=Data(str(photos)))
    train(run, tmp_path / "run")
    (photos / "c").rename(photos / ".c")
    with pytest.raises(UserError, match=r"began on 48 images, but the 32 .* without 23 hidden images .*--init"):
        resume(tmp_path / "run")


def test_a_run_that_began_on_links_to_its_images_is_not_continued_without_them(photos: Path, tmp_path: Path) -> None:
    write(photos, tuple(f"{name}/{number}.png" for name in "abc" for number in range(16)))
    run = replace(small_run("simclr", str(photos), epochs=1), data=Data(str(photos)))
    train(run, tmp_path / "run")
    for number in range(16):
        (photos / f"c/{number}.png").unlink()
        (photos / f"c/{number}.png").symlink_to(photos / f"a/{number}.png")
    with pytest.raises(UserError, match=r"the 32 .* \(\.thumb.*\) and the second names of 16 files, on which .*--init"):
        resume(tmp_path / "run")
