"""Shards are read as `tarfile` reads them, or refused in a line; their order is a function of seed and epoch."""

import os
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tar_shards import COUNTS, Files, png, samples, write_shard, write_shards

from vantage.data import Folder, Shards, Source, decode, labels_of, open_source
from vantage.data.sources.shards import shards
from vantage.data.sources.shards.index import Index, cached_index, state_of
from vantage.data.sources.shards.members import Content, members
from vantage.errors import DataError, UnreadableImage
from vantage.training.images import open_images
from vantage.training.run import Data


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_shards(tmp_path / "shards", COUNTS)


def open_set(path: Path | str) -> Source:
    root = Path(str(path).partition("{")[0])
    return open_source(path, cache=(root if root.is_dir() else root.parent).parent / "cache")


NAMES = st.lists(
    st.text(st.sampled_from("abc./ _é"), min_size=1, max_size=150).filter(
        lambda name: not name.startswith("/") and ".." not in name and not name.endswith("/")
    ),
    max_size=6,
)


@settings(max_examples=15)
@given(names=NAMES, sizes=st.lists(st.integers(0, 1100), min_size=6, max_size=6), kind=st.integers(0, 2))
def test_members_are_those_of_tarfile(
    names: list[str], sizes: list[int], kind: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("members") / "a.tar"
    formats = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
    files = [(name, bytes(size)) for name, size in zip(names, sizes, strict=False)]
    try:
        write_shard(path, files, formats[kind])
    except ValueError:
        return  # too long for ustar
    with tarfile.open(path) as tar:
        expected = [(one.name.removeprefix("./"), one.offset_data, one.size) for one in tar]
    with path.open("rb") as file:
        contents = list(members(Content(file.fileno()), path.stat().st_size))
    assert [tuple(one) for one in contents] == expected


def test_a_folder_a_part_and_a_pattern_hold_the_same_images(folder: Path) -> None:
    write_shard(folder / "test-000000.tar", samples(100, 2))
    pattern = f"{folder}/train-{{000000..000004}}.tar"
    for source in (open_set(f"{folder}#train"), open_set(pattern)):
        assert isinstance(source, Shards) and len(source) == 22 and source.classes == ("0", "1", "2")
        for number in (0, 4, 5, 13, 14, 21):
            assert torch.equal(source.image(number), decode(png(number), ""))
            assert source.label(number) == number % 3
        assert source.name(14) == "train-000003.tar/0014.png"
    assert (
        open_set(pattern).fingerprint() == open_set(f"{folder}#train").fingerprint() != open_set(folder).fingerprint()
    )


def test_a_folder_with_images_or_folders_beside_a_tar_is_a_folder(folder: Path) -> None:
    (folder / "a").mkdir()
    (folder / "a" / "1.png").write_bytes(png(1))
    (folder / "a" / "2.png").write_bytes(png(2))
    assert isinstance(open_set(folder), Folder)


def test_a_part_may_be_a_folder_of_shards(folder: Path) -> None:
    whole = open_set(folder)
    for part in ("#shards", "/#shards"):
        source = open_set(f"{folder.parent}{part}")
        assert isinstance(source, Shards) and source.fingerprint() == whole.fingerprint()
    with pytest.raises(DataError, match="no images in .*, or one that holds the shards itself$"):
        open_set(folder.parent)


def test_compressed_tars_beside_shards_are_mentioned(folder: Path) -> None:
    def line() -> str:
        return open_images(Data(), source=open_set(f"{folder}#train"))[1]

    assert line() == "all 22 images can be read"
    (folder / "train-000005.tar.gz").write_bytes(b"")
    (folder / "test-000000.tar.gz").write_bytes(b"")
    assert line().endswith(
        "; train-000005.tar.gz left out: shards are read in place, so decompress what belongs to them"
    )


def test_labels_of_a_shard_that_is_named_itself_are_mentioned(folder: Path) -> None:
    source = open_set(folder / "train-000002.tar")
    assert source.classes == () and open_images(Data(), source=source)[1] == (
        "all 9 images can be read; 9 labels (.cls) left out: to read them, name the folder of this shard"
    )


def test_tables_beside_each_shard_are_no_images(folder: Path) -> None:
    (folder / "train-000000.parquet").write_bytes(b"what img2dataset leaves beside a shard")
    assert len(open_set(folder)) == 22


def test_labels_are_words_or_come_from_json(tmp_path: Path) -> None:
    files = [("a/1.jpg", png(1)), ("a/1.cls", b"owl\n"), ("a/2.jpeg", png(2)), ("a/2.json", b'{"caption": "?"}')]
    write_shard(tmp_path / "s" / "0.tar", files)
    files = [("3.seg.png", png(3)), ("3.png", png(4)), ("3.json", b'{"label": "cat"}'), ("4.txt", b"no image")]
    write_shard(tmp_path / "s" / "1.tar", [*files, ("dir.x/5.v2.PNG", png(5)), ("dir.x/5.json", b'{"cls": "owl"}')])
    source = open_set(tmp_path / "s")
    assert source.classes == ("cat", "owl") and labels_of(source).tolist() == [1, -1, 0, 1]
    assert source.name(2) == "1.tar/3.png" and torch.equal(source.image(2), decode(png(4), ""))
    assert source.name(3) == "1.tar/dir.x/5.v2.PNG"


def test_labels_are_found_under_the_ending_of_their_image_and_may_be_written_with_a_point(tmp_path: Path) -> None:
    files = [("1.v2.jpg", png(1)), ("1.v2.cls", b"2"), ("2.v2.cls", b"0"), ("2.png", png(2))]
    files += [("3.png", png(3)), ("3.json", b'{"label": 1.0}'), ("4.png", png(4)), ("4.json", b'{"label": NaN}')]
    write_shard(tmp_path / "s" / "0.tar", files)
    assert labels_of(open_set(tmp_path / "s")).tolist() == [2, -1, 1, -1]


def test_photographs_that_are_not_read_are_mentioned(tmp_path: Path) -> None:
    write_shard(tmp_path / "s" / "0.tar", [*samples(0, 3), ("8.HEIC", b""), ("8.cls", b"1"), ("._9.heic", b"")])
    for _ in range(2):  # the second time from the cache
        assert dict(open_set(tmp_path / "s").unread) == {".heic": 1}  # pyright: ignore[reportAttributeAccessIssue]
    for file in (tmp_path / "cache" / "shards").glob("set-*"):
        file.unlink()
    _, line = open_images(Data(), source=open_set(tmp_path / "s"))
    assert line.endswith("; 1 photograph (.heic) left out, as this format is not read: convert to JPEG")


@pytest.mark.parametrize("kind", [tarfile.LNKTYPE, tarfile.SYMTYPE])
def test_images_that_are_links_are_refused(kind: bytes, tmp_path: Path) -> None:
    path = write_shard(tmp_path / "s" / "0.tar", samples(0, 3))
    with tarfile.open(path, "a") as tar:
        link = tarfile.TarInfo("0009.png")
        link.type, link.linkname = kind, "0000.png"
        tar.addfile(link)
    with pytest.raises(DataError, match="'0009.png' is a link .*`tar --dereference --hard-dereference`"):
        open_set(tmp_path / "s")


def truncate_file(path: Path, at: int) -> None:
    os.truncate(path, path.stat().st_size + at if at < 0 else at)


def patch(path: Path, at: int, content: bytes, mend: bool = True) -> None:
    """Write into a header, and mend its checksum."""
    data = bytearray(path.read_bytes())
    data[at : at + len(content)] = content
    if mend:
        block = at // 512 * 512
        data[block + 148 : block + 156] = b" " * 8
        data[block + 148 : block + 156] = b"%06o\0 " % sum(data[block : block + 512])
    path.write_bytes(data)


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda path: path.write_bytes(b""), "it is empty"),
    "not a tar": (lambda path: path.write_bytes(b"x" * 5000), "there is no header at byte 0"),
    "cut in a member": (lambda path: truncate_file(path, 600), "claims .* bytes, but the file ends at byte 600"),
    "cut in a header": (lambda path: truncate_file(path, 1024 + 100), "cut short in the header|claims"),
    "bit flipped": (lambda path: patch(path, 3, b"\x07", mend=False), "no header at byte 0"),
    "lying size": (lambda path: patch(path, 124, b"77777777777\0"), "claims 8,589,934,591 bytes"),
    "negative size": (lambda path: patch(path, 124, b"-0000000001\0"), "no header at byte 0"),
    "binary size": (lambda path: patch(path, 124, b"\x80" + b"\xff" * 11), "claims .* bytes"),
    "long name": (lambda path: write_shard(path, [("a" * 100_000 + ".png", b"")]), "no name is that long"),
    "sparse": (lambda path: patch(path, 156, b"S"), "sparse"),
    "traversal": (lambda path: patch(path, 0, b"../../a.png\0"), "leads out of the tar"),
    "absolute": (lambda path: patch(path, 0, b"/etc/passwd.png\0"), "leads out of the tar"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_shards(name: str, folder: Path) -> None:
    damage, message = DAMAGE[name]
    damage(folder / "train-000002.tar")
    with pytest.raises(DataError, match=f"train-000002.tar cannot be used: .*({message})") as error:
        open_set(folder)
    assert "\n" not in str(error.value)


BAD_SAMPLES: dict[str, tuple[Files, str]] = {
    "a key that comes back": ([("1.png", b""), ("2.png", b""), ("1.cls", b"0")], "the key '1' comes twice"),
    "a file that comes twice": ([("1.png", b""), ("1.png", b"")], "'1.png' comes twice"),
    "two images": ([("p.2020.01.jpg", b""), ("p.2020.02.jpg", b"")], "several images"),
    "a label that is binary": ([("1.png", b""), ("1.cls", b"\xff\x00")], "the label in '1.cls' cannot be read"),
    "a label with a line break": ([("1.png", b""), ("1.cls", b"a\nb")], "neither a number nor a word"),
    "a large label": ([("1.png", b""), ("1.cls", b"9" * 500)], "number the classes from 0"),
    "a negative label": ([("1.png", b""), ("1.json", b'{"cls": -1}')], "number the classes from 0"),
    "a negative label in a file of its own": ([("1.png", b""), ("1.cls", b"-1")], "number the classes from 0"),
    "bad json": ([("1.png", b""), ("1.json", b"[" * 100_000)], "the label in '1.json' cannot be read"),
}


@pytest.mark.parametrize("name", BAD_SAMPLES)
def test_bad_samples(name: str, tmp_path: Path) -> None:
    files, message = BAD_SAMPLES[name]
    write_shard(tmp_path / "s" / "0.tar", files)
    with pytest.raises(DataError, match=message):
        open_set(tmp_path / "s")


def test_sets_that_cannot_be_opened(folder: Path, tmp_path: Path) -> None:
    def assert_refused(path: object, message: str) -> None:
        with pytest.raises(DataError, match=message) as error:
            open_source(str(path), cache=tmp_path / "cache")
        assert "\n" not in str(error.value)

    assert_refused(
        f"{folder}/train-{{000000..000009}}.tar", "5 of the 10 files .* do not exist, the first is .*000005.tar"
    )
    (folder / "a.tar.gz").write_bytes(b"")
    assert_refused(f"{folder}/{{train-000000.tar,a.tar.gz}}", "a.tar.gz is not a .tar: shards are read in place")
    assert_refused(f"{folder}#val", "names no shard: the folder holds train-000000.tar")
    assert_refused(f"{folder}/{{train-000001.tar,train-000001.tar}}", "no images in 2 shards")
    write_shard(folder / "train-000005.tar", [("1.png", png(1)), ("1.cls", b"dog")])
    assert_refused(folder, "words in .*train-000005.tar and numbers in .*train-000000.tar")


def test_an_index_is_kept_and_follows_each_shard(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_set(folder)
    from vantage.data.sources.shards import index

    indexed: list[str] = []
    monkeypatch.setattr(
        index, "make_index", lambda path, state, make=index.make_index: indexed.append(path) or make(path, state)
    )
    assert len(open_set(folder)) == 22 and not indexed
    write_shard(folder / "train-000003.tar", samples(50, 4))
    assert len(open_set(folder)) == 25 and [Path(path).name for path in indexed] == ["train-000003.tar"]
    for file in (tmp_path / "cache" / "shards").iterdir():
        file.write_bytes(b"damaged")
    assert len(open_set(folder)) == 25 and len(indexed) == 1 + 5


def test_one_file_holds_what_opening_a_set_needs(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second opening reads no shard's index; a shard that changed is read by itself, and the file follows it."""
    first, paths_read = open_set(folder), list[str]()

    def read_index(path: str, *rest: object) -> Index:
        paths_read.append(Path(path).name)
        return cached_index(path, *rest)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(shards, "cached_index", read_index)
    again = open_set(folder)
    assert paths_read == [] and len(again) == len(first) and again.fingerprint() == first.fingerprint()
    paths_read.clear()
    write_shard(folder / "train-000002.tar", samples(40, 3))
    open_set(folder)
    with_changed_shard = open_set(folder)
    assert paths_read == ["train-000002.tar"] and len(with_changed_shard) == sum(COUNTS) - 9 + 3
    paths_read.clear()
    (file,) = (tmp_path / "cache" / "shards").glob("set-*.json")
    whole = file.read_text()
    for content in (whole[:-9], "[]", "{}", whole.replace("]]", "]],0"), whole.replace('"words":[[]]', '"words":[]')):
        file.write_text(content)
        last = open_set(folder)
        assert len(paths_read) == len(COUNTS) and last.fingerprint() == with_changed_shard.fingerprint()
        paths_read.clear()
    assert file.read_text() == whole


def test_a_cache_that_cannot_be_written_costs_time_only(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"a file in the way")
    source = open_set(folder)
    copy = pickle.loads(pickle.dumps(source))  # between our own processes, never from a file
    assert torch.equal(copy.image(21), decode(png(21), "")) and copy.name(21) == source.name(21)


def test_a_shard_that_changes_while_it_is_read_is_named(folder: Path) -> None:
    source = open_set(folder)
    write_shard(folder / "train-000002.tar", samples(50, 9))
    with pytest.raises(DataError, match="train-000002.tar changed while it was in use"):
        source.image(7)
    (folder / "train-000004.tar").unlink()
    with pytest.raises(UnreadableImage, match="train-000004.tar/0020.png: No such file"):
        source.image(20)
    source.image(0)
    state = os.stat(folder / "train-000000.tar")
    with open(folder / "train-000000.tar", "r+b") as file:  # other images in the open file itself, at the same places
        file.write(write_shard(folder / "other.tar", samples(60, 5)).read_bytes())
    with pytest.raises(DataError, match="train-000000.tar changed while it was in use"):
        source.image(0)
    os.utime(folder / "train-000000.tar", ns=(state.st_atime_ns, state.st_mtime_ns))
    os.truncate(folder / "train-000000.tar", 700)  # the open file itself, after it was checked
    with pytest.raises(UnreadableImage, match="has been cut short"):
        source.image(3)


def test_a_pattern_is_kept_as_an_absolute_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vantage.cli.reading.images import absolute

    monkeypatch.chdir(folder.parent)
    assert absolute("shards/train-{000000..000004}.tar") == f"{folder}/train-{{000000..000004}}.tar"
    assert absolute("nowhere/{0..1}.tar") == "nowhere/{0..1}.tar"
    assert state_of(str(folder / "train-000000.tar"))[0] > 0
