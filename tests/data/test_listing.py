"""A listing is deterministic, lists again what changed and nothing else, and is not led astray by links."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vantage.data.sources.listing import Listing, list_images, unread_words
from vantage.data.sources.names import Names, classes_from
from vantage.errors import DataError

LONG_AGO = 1_000_000_000


def make_old(root: Path) -> None:
    """Give every folder a change that lies long ago, so that the listing trusts it."""
    for folder, _, _ in os.walk(root):
        os.utime(folder, (LONG_AGO, LONG_AGO))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for name in ("b/2.jpg", "b/10.jpg", "a/x/1.PNG", "a/1.jpeg", "top.webp", "a/notes.txt", "b/Thumbs.db"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"never read")
    make_old(root)
    return root


def test_order_and_what_is_left_out(tree: Path, tmp_path: Path) -> None:
    listing = list_images(tree, tmp_path / "cache")
    assert listing == Listing(("top.webp", "a/1.jpeg", "a/x/1.PNG", "b/10.jpg", "b/2.jpg"), other_files=2, reads=4)


def test_photographs_in_formats_that_are_not_read_are_counted(tree: Path, tmp_path: Path) -> None:
    for name in ("b/IMG 1.HEIC", "a/x/2.heic", "a/3.NEF", "a/._3.NEF"):
        (tree / name).write_bytes(b"")
    make_old(tree)
    for reads in (4, 0):
        listing = list_images(tree, tmp_path / "cache")
        assert listing.unread == {".heic": 2, ".nef": 1} and listing.other_files == 6 and listing.reads == reads
    assert unread_words(listing.unread) == "3 photographs (.heic, .nef)" and unread_words({}) == ""


def test_what_did_not_change_is_not_read_again(tree: Path, tmp_path: Path) -> None:
    first = list_images(tree, tmp_path / "cache")
    second = list_images(tree, tmp_path / "cache")
    assert second.names == first.names and second.other_files == 2 and second.reads == 0


def test_changes_are_seen(tree: Path, tmp_path: Path) -> None:
    list_images(tree, tmp_path / "cache")
    (tree / "b" / "new.jpg").write_bytes(b"")
    after = list_images(tree, tmp_path / "cache")
    assert "b/new.jpg" in after.names and after.reads == 1
    (tree / "b" / "new.jpg").rename(tree / "b" / "3.jpg")
    assert "b/3.jpg" in list_images(tree, tmp_path / "cache").names
    (tree / "a" / "x" / "deep").mkdir()
    (tree / "a" / "x" / "deep" / "1.gif").write_bytes(b"")
    assert "a/x/deep/1.gif" in list_images(tree, tmp_path / "cache").names
    shutil.rmtree(tree / "a")
    assert list_images(tree, tmp_path / "cache").names == ("top.webp", "b/10.jpg", "b/2.jpg", "b/3.jpg")


def test_a_folder_that_changed_just_now_is_read_again(tree: Path, tmp_path: Path) -> None:
    (tree / "b" / "new.jpg").write_bytes(b"")
    state = (tree / "b").stat()
    list_images(tree, tmp_path / "cache")
    (tree / "b" / "newer.jpg").write_bytes(b"")
    os.utime(tree / "b", ns=(state.st_atime_ns, state.st_mtime_ns))  # as a coarse clock would show it
    assert "b/newer.jpg" in list_images(tree, tmp_path / "cache").names


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 0}'])
def test_a_damaged_cache_is_made_again(content: bytes, tree: Path, tmp_path: Path) -> None:
    first = list_images(tree, tmp_path / "cache")
    for file in (tmp_path / "cache").rglob("*.json"):
        file.write_bytes(content)
    assert list_images(tree, tmp_path / "cache") == first


def test_a_cache_that_cannot_be_written_is_no_failure(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert len(list_images(tree, tmp_path / "file").names) == 5


def test_loops_of_links_end(tree: Path, tmp_path: Path) -> None:
    (tree / "a" / "up").symlink_to(tree)
    (tree / "b" / "self").symlink_to(tree / "b")
    (tree / "b" / "gone.jpg").symlink_to(tmp_path / "nowhere.jpg")
    assert set(list_images(tree, tmp_path / "cache").names) == {
        "top.webp", "a/1.jpeg", "a/x/1.PNG", "b/10.jpg", "b/2.jpg", "b/gone.jpg",
    }  # fmt: skip


def test_a_linked_folder_outside_is_entered(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "far.png").write_bytes(b"")
    (tree / "c").symlink_to(tmp_path / "outside")
    assert list_images(tree, tmp_path / "cache").names[-1] == "c/far.png"


def test_a_pipe_named_like_an_image_is_not_waited_for(tree: Path, tmp_path: Path) -> None:
    os.mkfifo(tree / "b" / "pipe.jpg")
    assert "b/pipe.jpg" not in list_images(tree, tmp_path / "cache").names


def test_deep_trees(tmp_path: Path) -> None:
    folder = tmp_path / "root"
    for _ in range(60):
        folder = folder / "d"
    folder.mkdir(parents=True)
    (folder / "1.jpg").write_bytes(b"")
    assert len(list_images(tmp_path / "root", tmp_path / "cache").names) == 1


def test_a_root_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot list the folder"):
        list_images(tmp_path / "gone", tmp_path / "cache")


@given(st.lists(st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), min_size=1)))
def test_names_are_kept(names: list[str]) -> None:
    stored_names = Names(names)
    assert len(stored_names) == len(names) and [stored_names[number] for number in range(len(stored_names))] == names
    with pytest.raises(IndexError):
        stored_names[len(names)]


def test_names_that_are_no_unicode() -> None:
    name = os.fsdecode(b"caf\xe9.jpg")
    assert Names([name])[0] == name


@pytest.mark.parametrize(
    "names, classes, labels",
    [
        (["a/1.jpg", "b/1.jpg", "a/2.jpg"], ("a", "b"), [0, 1, 0]),
        (["top/b/1.jpg", "top/a/1.jpg"], ("a", "b"), [1, 0]),
        (["1.jpg", "2.jpg"], (), [-1, -1]),
        (["top/1.jpg", "top/2.jpg"], (), [-1, -1]),
        (["a/1.jpg"], (), [-1]),
        (["loose.jpg", "a/1.jpg", "b/1.jpg"], ("a", "b"), [-1, 0, 1]),
        (["train/cat/1.jpg", "train/dog/1.jpg", "test/cat/2.jpg"], ("cat", "dog"), [0, 1, 0]),
    ],
)
def test_classes_from_folders(names: list[str], classes: tuple[str, ...], labels: list[int]) -> None:
    actual, numbers = classes_from(names)
    assert actual == classes and numbers.tolist() == labels
