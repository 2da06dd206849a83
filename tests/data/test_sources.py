"""The same images kept in every way are the same source; what cannot be opened says what to do."""

import io
import os
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from kept_images import CLASSES, IMAGES, LABELS, as_png

from vantage.data import Arrays, Folder, Source, SourceSubset, Tar, labels_of, open_source
from vantage.data.sources.source import read_some, stamp_of
from vantage.errors import DataError, UnreadableImage
from vantage.training.images import open_images
from vantage.training.run import Data


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """train/ and val/ with the same class folders, a text file, and hidden rubbish."""
    root = tmp_path / "photos"
    for part, numbers in (("train", range(9)), ("val", (0, 3, 6))):
        for number in numbers:
            folder = root / part / CLASSES[LABELS[number]]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number:02d}.png").write_bytes(as_png(IMAGES[number]))
    (root / "train" / "README.txt").write_text("not an image")
    (root / "train" / "cat" / "._00.png").write_bytes(b"what some systems leave behind")
    return root


@pytest.fixture
def paths(tree: Path, tmp_path: Path) -> dict[str, str]:
    """The training images, kept in every way."""
    for name, mode in (("a.tar", "w"), ("a.tar.gz", "w:gz"), ("a.tar.bz2", "w:bz2"), ("a.tar.xz", "w:xz")):
        with tarfile.open(tmp_path / name, mode) as tar:  # type: ignore[call-overload]
            tar.add(tree, "photos")
    np.savez(tmp_path / "a.npz", x_train=IMAGES, y_train=LABELS, x_test=IMAGES[:3], y_test=LABELS[:3])
    np.savez(tmp_path / "words.npz", images=IMAGES.transpose(0, 3, 1, 2), labels=np.array([CLASSES[i] for i in LABELS]))
    np.save(tmp_path / "a.npy", IMAGES)
    cells = [{"bytes": as_png(image), "path": f"{n}.png"} for n, image in enumerate(IMAGES)]
    features = b'{"info": {"features": {"label": {"names": ["cat", "dog", "owl"], "_type": "ClassLabel"}}}}'
    table = pa.table({"image": cells, "label": LABELS}).replace_schema_metadata({b"huggingface": features})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    (tmp_path / "shards").mkdir()
    pq.write_table(table.slice(0, 4), tmp_path / "shards" / "train-0-of-2.parquet", row_group_size=3)
    pq.write_table(table.slice(4), tmp_path / "shards" / "train-1-of-2.parquet")
    pq.write_table(table.slice(0, 3), tmp_path / "shards" / "test-0-of-1.parquet")
    lines = [f"photos/train/{CLASSES[k]}/{n:02d}.png {CLASSES[k]}" for n, k in enumerate(LABELS)]
    (tmp_path / "list.txt").write_text("# a comment\n\n" + "\n".join(lines))
    names = {
        "a.tar": "#train",
        "a.tar.gz": "#train",
        "a.tar.bz2": "#photos/train",
        "a.tar.xz": "#train",
        "a.npz": "#train",
    }
    names |= {"words.npz": "", "a.npy": "", "a.parquet": "", "shards": "#train", "list.txt": ""}
    return {name: str(tmp_path / name) + part for name, part in names.items()} | {"folder": f"{tree}#train"}


KINDS = [
    "folder",
    "list.txt",
    "a.tar",
    "a.tar.gz",
    "a.tar.bz2",
    "a.tar.xz",
    "a.npz",
    "words.npz",
    "a.npy",
    "a.parquet",
    "shards",
]


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_hold_the_same_images(kind: str, paths: dict[str, str], tmp_path: Path) -> None:
    source = open_source(paths[kind], cache=tmp_path / "cache")
    assert isinstance(source, Source) and len(source) == 9
    assert source.classes == {"a.npz": ("0", "1", "2"), "a.npy": ()}.get(kind, CLASSES)
    for number in range(9):
        assert torch.equal(source.image(number), torch.from_numpy(IMAGES[number]).permute(2, 0, 1))
        assert source.label(number) == (None if kind == "a.npy" else LABELS[number])
    assert len({source.name(number) for number in range(9)}) == 9
    again = open_source(paths[kind], cache=tmp_path / "cache")
    assert source.fingerprint() == again.fingerprint() == open_source(paths[kind], cache=tmp_path / "new").fingerprint()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_goes_to_another_process(kind: str, paths: dict[str, str], tmp_path: Path) -> None:
    source = open_source(paths[kind], cache=tmp_path / "cache")
    source.image(0)  # so that files are open
    copy = pickle.loads(pickle.dumps(source))  # between our own processes, never from a file
    assert torch.equal(copy.image(8), source.image(8)) and copy.fingerprint() == source.fingerprint()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_stays_where_it_was_opened(
    kind: str, paths: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notebook may change its folder, also to one that holds other images under the same names."""
    for number, image in enumerate(IMAGES):
        other = tmp_path / "elsewhere" / "photos" / "train" / CLASSES[LABELS[number]] / f"{number:02d}.png"
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_bytes(as_png(255 - image))
    monkeypatch.chdir(tmp_path)
    source = open_source(os.path.relpath(paths[kind], tmp_path), cache=tmp_path / "cache")
    facts = source.fingerprint(), stamp_of(source)
    monkeypatch.chdir(tmp_path / "elsewhere")
    for number in range(9):
        assert torch.equal(source.image(number), torch.from_numpy(IMAGES[number]).permute(2, 0, 1))
    assert (source.fingerprint(), stamp_of(source)) == facts


def test_names(paths: dict[str, str], tmp_path: Path) -> None:
    def open_kind(kind: str) -> Source:
        return open_source(paths[kind], cache=tmp_path / "cache")

    assert open_kind("folder").name(4) == "dog/04.png"
    assert open_kind("list.txt").name(4) == "photos/train/dog/04.png"
    assert open_kind("a.tar.gz").name(4) == "photos/train/dog/04.png"
    assert open_kind("a.parquet").name(4) == open_kind("a.npz").name(4) == "row 4"


def test_a_fingerprint_reads_32_images_evenly_spaced_and_notes_the_unreadable() -> None:
    def read_number(number: int) -> bytes:
        if number == 0:
            raise UnreadableImage("0.png", "cut off")
        return bytes([number])

    evenly = [bytes([step * 99 // 31]) for step in range(1, 32)]
    assert list(read_some(100, read_number)) == [b"unreadable", *evenly]
    assert list(read_some(3, read_number)) == [b"unreadable", b"\1", b"\2"]


def test_fingerprints_follow_contents_not_times_or_places(tree: Path, tmp_path: Path) -> None:
    def print_of(root: Path) -> str:
        return open_source(root, cache=tmp_path / "cache").fingerprint()

    first = print_of(tree)
    new_folder = tree.rename(tmp_path / "elsewhere")
    os.utime(new_folder / "train" / "cat" / "00.png", (1, 1))
    assert print_of(new_folder) == first
    (new_folder / "train" / "cat" / "00.png").write_bytes(as_png(IMAGES[5]))
    second = print_of(new_folder)
    (new_folder / "train" / "cat" / "new.png").write_bytes(as_png(IMAGES[5]))
    assert len({first, second, print_of(new_folder)}) == 3


def test_a_part_of_a_tar_lies_nearest_to_the_top(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        for name in ("set/train/a/1.png", "set/train/a/train/2.png", "set/val/a/train/3.png", "set/val/b/train/3.png"):
            member = tarfile.TarInfo(name)
            member.size = len(as_png(IMAGES[0]))
            tar.addfile(member, io.BytesIO(as_png(IMAGES[0])))
    assert len(open_source(f"{tmp_path}/t.tar#train", cache=tmp_path / "cache")) == 2
    with pytest.raises(DataError, match="its folders are set, set/train, set/val"):
        open_source(f"{tmp_path}/t.tar#test", cache=tmp_path / "cache")
    with tarfile.open(tmp_path / "two.tar", "w") as tar:
        for name in ("old/train/1.png", "new/train/1.png"):
            tar.addfile(tarfile.TarInfo(name))
    with pytest.raises(DataError, match="could be new/train or old/train"):
        open_source(f"{tmp_path}/two.tar#train", cache=tmp_path / "cache")
    with pytest.raises(DataError, match="does not name one folder of images"):
        open_source(f"{tmp_path}/t.tar#b/a", cache=tmp_path / "cache")


def test_a_tar_leaves_its_links_and_other_files_and_survives_a_second_look(tree: Path, tmp_path: Path) -> None:
    (tree / "val" / "link.png").symlink_to(tree / "val" / "cat" / "00.png")
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        tar.add(tree, "photos")
    for _ in range(2):
        tar_source = open_source(tmp_path / "t.tar", cache=tmp_path / "cache")
        assert isinstance(tar_source, Tar) and len(tar_source) == 12 and tar_source.other_files == 3


def test_a_tar_holds_what_unpacking_it_would_give(tmp_path: Path) -> None:
    """The later of two members of one name; images that are further names of earlier ones; no word about HEIC lost."""
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        for name, number in (("./a/1.png", 0), ("a/2.png", 1), ("a/3.heic", 2), ("a/1.png", 3)):
            member = tarfile.TarInfo(name)
            member.size = len(as_png(IMAGES[number]))
            tar.addfile(member, io.BytesIO(as_png(IMAGES[number])))
        link = tarfile.TarInfo("b/4.png")
        link.type, link.linkname = tarfile.LNKTYPE, "a/2.png"
        tar.addfile(link)
    for _ in range(2):
        source = open_source(tmp_path / "t.tar", cache=tmp_path / "cache")
        assert isinstance(source, Tar) and source.classes == ("a", "b")
        assert [source.name(number) for number in range(len(source))] == ["a/1.png", "a/2.png", "b/4.png"]
        for number, image in enumerate((3, 1, 1)):
            assert source.file_bytes(number) == as_png(IMAGES[image])
        assert source.unread == {".heic": 1}


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.npz", "a.npy", "a.parquet"])
@pytest.mark.parametrize("damage", ["cut", "empty", "text"])
def test_damaged_containers(name: str, damage: str, paths: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / name
    whole = path.read_bytes()
    path.write_bytes(
        {"cut": whole[: len(whole) * 6 // 10], "empty": b"", "text": b"these are not the bytes you want\n" * 40}[damage]
    )
    with pytest.raises(DataError, match=f"{name}|no images"):
        source = open_source(paths[name], cache=tmp_path / "cache")
        source.image(8)


def test_pickled_arrays_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "bad.npz", images=np.array([{"a": 1}, {"b": 2}], dtype=object))
    np.save(tmp_path / "bad.npy", np.array([{"a": 1}, {"b": 2}], dtype=object))
    for name in ("bad.npz", "bad.npy"):
        with pytest.raises(DataError, match="pickle"):
            open_source(tmp_path / name, cache=tmp_path)


def test_photographs_in_formats_that_are_not_read_are_mentioned(tree: Path, tmp_path: Path) -> None:
    (tree / "train" / "IMG 1.HEIC").write_bytes(b"")
    _, line = open_images(Data(str(tree)))
    assert line.endswith(
        "images can be read; 1 photograph (.heic) left out, as this format is not read: convert to JPEG"
    )
    (tmp_path / "phone").mkdir()
    (tmp_path / "phone" / "2.heic").write_bytes(b"")
    with pytest.raises(DataError, match=r"1 photograph \(.heic\) among them can be converted to JPEG, which is read$"):
        open_source(tmp_path / "phone")


@pytest.mark.parametrize(
    ("folder", "warns"), [("unlabeled", True), ("Un-Labelled", True), ("unsup", True), ("c", False)]
)
def test_a_folder_of_images_without_labels_is_mentioned_as_the_class_it_becomes(
    folder: str, warns: bool, tmp_path: Path
) -> None:
    for name in ("a", "b", folder):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(as_png(IMAGES[0]))
    _, line = open_images(Data(str(tmp_path)))
    mention = f"; {folder!r} counts as a class: put images without one directly into the top folder"
    assert line.endswith(mention) == warns == ("class" in line)


def test_list_files(tree: Path, tmp_path: Path) -> None:
    for animal in ("cat", "dog", "fox", "owl"):
        (tree / f"my {animal}.png").write_bytes(as_png(IMAGES[0]))
    lines = ["my cat.png", "my dog.png 10", "my fox.png\t9", f"{tree}/my owl.png 9", "gone.png 9"]
    (tree / "list.txt").write_text("\n".join(lines))
    source = open_source(tree / "list.txt", cache=tmp_path)
    assert isinstance(source, Folder) and source.classes == ("9", "10")
    assert labels_of(source).tolist() == [-1, 1, 0, 0, 0]
    assert all(source.image(number).shape == (3, 10, 12) for number in range(4))
    with pytest.raises(UnreadableImage, match="gone.png: No such file"):
        source.image(4)
    (tree / "list.txt").write_text("a.png 1\nwhat is this\n\na.pdf\n")
    with pytest.raises(DataError, match="2 bad lines: line 2: 'what is this'; line 4: 'a.pdf'"):
        open_source(tree / "list.txt", cache=tmp_path)


def test_names_in_lists_may_hold_what_ends_a_line_elsewhere(tree: Path, tmp_path: Path) -> None:
    """Editors on Windows begin a file with a mark; find writes any name that a disk holds."""
    odd = ["next\x85line.png", "separated\u2028.png", "form\x0cfeed.png"]
    for name in (*odd, "plain.png", "broken\nline.png"):
        (tree / name).write_bytes(as_png(IMAGES[0]))
    (tree / "list.txt").write_bytes(
        "\r\n".join(["plain.png cat", *(f"{name}\t\tdog" for name in odd)]).encode("utf-8-sig")
    )
    source = open_source(tree / "list.txt", cache=tmp_path)
    assert [source.name(number) for number in range(len(source))] == ["plain.png", *odd]
    assert source.classes == ("cat", "dog") and all(source.image(number).shape == (3, 10, 12) for number in range(4))
    (tree / "table.csv").write_text(f'"broken\nline.png",cat\n{odd[0]},dog\n')
    table = open_source(tree / "table.csv", cache=tmp_path)
    assert [table.name(number) for number in range(len(table))] == ["broken\nline.png", odd[0]]


def test_lists_whose_last_word_is_no_class_are_refused(tree: Path, tmp_path: Path) -> None:
    (tree / "list.tsv").write_text("a.png\tcat\t0.91\nb.png\tcat\t0.87\nc.png\tcat\n")
    with pytest.raises(DataError, match=r"2 bad lines: line 1: 'a.png\\tcat\\t0.91'"):
        open_source(tree / "list.tsv", cache=tmp_path)
    (tree / "list.tsv").write_text("a.png 0\nb.png -1\nc.png 1\n")
    with pytest.raises(DataError, match="1 bad line: line 2: 'b.png -1'.* if it has one, its label"):
        open_source(tree / "list.tsv", cache=tmp_path)


def test_numbers_beyond_those_of_labels_are_no_class_and_no_crash(tree: Path, tmp_path: Path) -> None:
    """As 32 bits, -2**32 is 0; Python reads no number of more than 4,300 digits."""
    label = np.array([-(2**32), 1, -(2**62), -7])
    assert [Arrays(IMAGES[:4], label, "array").label(number) for number in range(4)] == [None, 1, None, None]
    (tree / "list.txt").write_text(f"a.png 1\nb.png {'9' * 5_000}\n")
    assert len(open_source(tree / "list.txt", cache=tmp_path).classes) == 2


def test_a_name_may_hold_the_sign_of_a_part(tmp_path: Path) -> None:
    (tmp_path / "a#b").mkdir()
    for number in range(2):
        (tmp_path / "a#b" / f"{number}.png").write_bytes(as_png(IMAGES[number]))
    assert len(open_source(tmp_path / "a#b", cache=tmp_path / "cache")) == 2


def test_subsets(paths: dict[str, str], tmp_path: Path) -> None:
    source = open_source(paths["folder"], cache=tmp_path / "cache")
    some = SourceSubset(source, [7, 0, 4])
    assert isinstance(some, Source) and len(some) == 3 and some.classes == CLASSES
    assert some.name(0) == "owl/07.png" and some.label(2) == 1 and torch.equal(some.image(1), source.image(0))
    assert (
        len({some.fingerprint(), source.fingerprint(), SourceSubset(source, torch.tensor([0, 4, 7])).fingerprint()})
        == 3
    )
    with pytest.raises(DataError, match="from 0 to 8"):
        SourceSubset(source, [9])
    with pytest.raises(DataError, match="of type torch.bool: give the whole numbers of images, for a mask"):
        SourceSubset(source, [True] * 9)
