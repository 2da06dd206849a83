"""Damaged files of every kind end in a `UserError` of one line, in bounded time and memory; those that once did not."""

import json
import re
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fuzz_targets import Target
from fuzzing import memory_folder, targets, try_one
from fuzzing_sets import open_images, targets_of_sets

from vantage.data import Arrays, open_source
from vantage.errors import DataError, UnreadableImage, UserError
from vantage.evaluate.protocols.detection import open_annotated
from vantage.storage.rows_file import open_rows

KINDS = (
    *("npz", "npy", "parquet", "tar", "shards", "list", "table", "coco", "voc", "voc list", "masks", "outside weights"),
    *("learned views", "cached features", "set", "embeddings", "embedding drafts", "coco instances", "voc instances"),
    *("run's settings.json", "run's metrics.jsonl", "run's provenance.json", "checkpoint facts", "checkpoint tensors"),
    *("result", "shots", "pickled weights", "old pickled weights", "view learning", "names", "kept state"),
    *("cached results", "sweep's rows", "cached listings json", "cached scans json", "cached tars json"),
    *("cached shards json", "cached shards set json", "cached shards npy", "cached decoded npy"),
    *("lab's cell", "lab's mark", "lab's numbers", "benefit's results", "table's rows", "learning's facts"),
    *("learning's tensors", "kept epoch's settings", "kept epoch's metrics", "kept epoch's provenance"),
    *("kept epoch's facts", "kept epoch's tensors", "kept state of AdamW"),
)
MADE_AGAIN = (
    *("cached", "kept state", "embedding drafts", "run's metrics.jsonl", "kept epoch's metrics", "lab's cell"),
    "lab's mark",
)
"""What is never refused: what is damaged of it is made again, or left out."""

COUNT = 1_000
"""Damaged files of each kind."""


@pytest.fixture(scope="session")
def every() -> Iterator[tuple[Path, dict[str, Target]]]:
    """Every target, and the folder of their files. Each process makes its own, so the kinds share the processes."""
    with tempfile.TemporaryDirectory(dir=memory_folder()) as name:
        yield Path(name), targets(Path(name))


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_not_damaged_is_read(kind: str, every: tuple[Path, dict[str, Target]]) -> None:
    folder, of_kind = every
    assert set(of_kind) == set(KINDS)
    target = of_kind[kind]
    (folder / target.file).write_bytes(target.content)
    target.read(folder / target.file, folder / "cache")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_read_or_refused(kind: str, every: tuple[Path, dict[str, Target]]) -> None:
    folder, of_kind = every
    outcomes = {seed: try_one(kind, of_kind[kind], seed, folder, folder / "cache") for seed in range(COUNT)}
    (folder / of_kind[kind].file).write_bytes(of_kind[kind].content)
    assert {seed: words for seed, words in outcomes.items() if words not in ("read", "refused")} == {}
    assert kind.startswith(MADE_AGAIN) or "refused" in outcomes.values()


def test_a_reader_that_never_ends_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even one that takes every exception for damage."""

    def read(file: Path, cache: Path) -> None:
        try:
            while True:
                pass
        except Exception:  # noqa: BLE001
            raise UserError("refused") from None

    monkeypatch.setattr("fuzzing.SECONDS", 0.1)
    target = Target("file", b"1", lambda content, _: content, read)
    assert try_one("endless", target, 0, tmp_path, tmp_path).startswith("TooLong")


@pytest.mark.parametrize("kind", ["npy", "cached features", "cached shards npy", "cached decoded npy"])
def test_numpy_warns_nobody_of_a_header_like_those_of_python_2(
    kind: str, every: tuple[Path, dict[str, Target]]
) -> None:
    folder, of_kind = every
    target = of_kind[kind]
    content = re.sub(rb"'shape': \((\d+)(.*?) \n", rb"'shape': (\1L\2\n", target.content, count=1)
    assert content != target.content and len(content) == len(target.content)
    (folder / target.file).write_bytes(content)
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        target.read(folder / target.file, folder / "cache")
    assert not messages
    (folder / target.file).write_bytes(target.content)


def npy(header: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


@pytest.mark.parametrize(
    "header", [b"{'descr': (", b"{'descr': '''", b"{'descr': '|u1', 'shape': (10,", b"\xff\xfe", b""]
)
def test_an_array_whose_header_is_unfinished(header: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(npy(header))
    with pytest.raises(DataError, match="cannot read .*a.npy as a NumPy file"):
        Arrays.read(tmp_path / "a.npy")
    assert open_rows(tmp_path / "a.npy", 1) is None


def test_an_array_that_claims_more_than_the_memory(tmp_path: Path) -> None:
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000, 100, 100, 3)}\n"
    (tmp_path / "a.npy").write_bytes(npy(header))
    with pytest.raises(DataError, match="cannot read"):
        Arrays.read(tmp_path / "a.npy")
    with (tmp_path / "a.npz").open("wb") as file:
        np.savez(file, labels=np.zeros(3))
    with zipfile.ZipFile(tmp_path / "a.npz", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("images.npy", npy(header))
    with pytest.raises(DataError, match="cannot read"):
        Arrays.read(tmp_path / "a.npz")


COCO = {
    "an image without a number": ("images", {"file_name": "1.png"}),
    "an image that is a word": ("images", "1.png"),
    "a category that is a list": ("categories", {"id": [], "name": "x"}),
    "an annotation that is true": ("annotations", True),
    "a box that is not finite": ("annotations", {"image_id": 1, "bbox": [float("nan")] * 4, "category_id": 7}),
    "a box that is infinite": ("annotations", {"image_id": 1, "bbox": [float("inf")] * 4, "category_id": 7}),
    "a name that no file can have": ("images", {"id": 5, "file_name": "\ud800.png"}),
}


@pytest.mark.parametrize("name", COCO)
def test_a_coco_file_with_a_malformed_entry(name: str, tmp_path: Path) -> None:
    target = targets_of_sets(tmp_path)["coco"]
    content = json.loads(target.content)
    where, entry = COCO[name]
    content[where].append(entry)
    (tmp_path / target.file).write_text(json.dumps(content))
    with pytest.raises(DataError, match="an entry of it is malformed"):
        target.read(tmp_path / target.file, tmp_path / "cache")


INSTANCES = {
    "ids of two kinds": ("images", {"id": "5", "file_name": "1.png", "width": 40, "height": 40}),
    "an image that is a number": ("images", 5),
    "a size that is a list": ("images", {"id": 5, "file_name": "1.png", "width": [], "height": 40}),
    "a size that is endless": ("images", {"id": 5, "file_name": "1.png", "width": float("inf"), "height": 40}),
    "a box that is a number": ("annotations", {"bbox": 5}),
    "a box of lists": ("annotations", {"bbox": [[]] * 4}),
    "a box beyond floats": ("annotations", {"bbox": [10**400, 0, 1, 1]}),
    "an area that is text": ("annotations", {"area": "../x"}),
    "keypoints that are a number": ("annotations", {"keypoints": 5}),
    "a polygon of text": ("annotations", {"segmentation": [["1"] * 6]}),
    "runs of text": ("annotations", {"segmentation": {"size": [40, 40], "counts": ["800", "800"]}}),
    "a category that is a dictionary": ("annotations", {"category_id": {}}),
}


@pytest.mark.parametrize("name", INSTANCES)
def test_a_coco_file_with_a_malformed_instance(name: str, tmp_path: Path) -> None:
    target = targets_of_sets(tmp_path)["coco instances"]
    content = json.loads(target.content)
    where, entry = INSTANCES[name]
    content[where].append({**content[where][0], **entry} if where == "annotations" else entry)
    (tmp_path / target.file).write_text(json.dumps(content))
    with pytest.raises(DataError, match="an entry of it is malformed"):
        target.read(tmp_path / target.file, tmp_path / "cache")


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ([[0, 0, 1e12, 0, 1e12, 9]], "its mask lies far outside its image"),
        ([[0, 0, float("nan"), 0, 5, 9]], "its mask lies far outside its image"),
        ({"size": [40, 40], "counts": [1700, -100]}, "the runs of its mask cover 1600 pixels of 1600"),
        ({"size": [40, 40], "counts": "`Z1"}, "the runs of its mask cover 1360 pixels"),
        ({"size": [40, 40], "counts": "PPPPPPPPPP"}, "malformed"),
        ({"size": [40, 40], "counts": "\ud800"}, "malformed"),
    ],
)
def test_a_mask_that_a_library_would_trip_over(mask: object, message: str, tmp_path: Path) -> None:
    target = targets_of_sets(tmp_path)["coco instances"]
    content = json.loads(target.content)
    content["annotations"][0]["segmentation"] = mask
    (tmp_path / target.file).write_text(json.dumps(content))
    with pytest.raises(DataError, match=message):
        target.read(tmp_path / target.file, tmp_path / "cache")


def test_files_that_name_longer_files_than_there_can_be(tmp_path: Path) -> None:
    target = targets_of_sets(tmp_path)["coco"]
    (tmp_path / target.file).write_bytes(target.content.replace(b"1.png", b"1" * 3_000))
    with pytest.raises(DataError, match="which does not exist"):
        target.read(tmp_path / target.file, tmp_path / "cache")
    with pytest.raises(DataError, match="1 of the 2 images of .* are not in"):
        open_annotated(f"{tmp_path / target.file}#{tmp_path / 'images'}")


def test_a_coco_file_that_is_too_deep(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[" * 100_000)
    with pytest.raises(DataError, match="cannot read"):
        open_images(f"crops:{tmp_path / 'a.json'}", tmp_path / "cache")


def test_lists_with_names_that_no_file_can_have(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_bytes(b"a\0.png \xe1\nb.png dog\n")
    source = open_source(tmp_path / "list.txt", cache=tmp_path / "cache")
    with pytest.raises(UnreadableImage, match="embedded null byte"):
        source.image(0)
    assert len(source.fingerprint()) == 32


@pytest.mark.parametrize("rows", [-1, -(2**70), 2**70, "2", None, 1.5, [], True])
def test_a_draft_whose_note_counts_rows_that_cannot_be(rows: object, tmp_path: Path) -> None:
    target = targets_of_sets(tmp_path)["embedding drafts"]
    (tmp_path / target.file).write_text(json.dumps({**json.loads(target.content), "rows": rows}))
    target.read(tmp_path / target.file, tmp_path / "cache")


def test_a_table_with_a_class_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a.png,dog\xe0\nb.png,cat\n")
    assert len(open_source(tmp_path / "a.csv", cache=tmp_path / "cache").fingerprint()) == 32


@pytest.mark.parametrize("content", [b'<?xml version="1.0" encoding="none"?><a/>', b"\xff<a/>", b"<a>&b;</a>"])
def test_annotations_in_an_encoding_of_none(content: bytes, tmp_path: Path) -> None:
    every = targets_of_sets(tmp_path)
    for kind, message in (("voc", "cannot read the classes of an image"), ("voc instances", "cannot read the boxes")):
        (tmp_path / every[kind].file).write_bytes(content)
        with pytest.raises(DataError, match=message):
            every[kind].read(tmp_path / every[kind].file, tmp_path / "cache")


def test_a_mistake_is_one_line_whatever_it_quotes() -> None:
    assert str(UserError("one\n\ttwo\r\n")) == "one two"
    assert str(UnreadableImage("a\nb.png", "cut\nshort")) == "cannot read the image a b.png: cut short"
    assert UnreadableImage("a\nb.png", "").name == "a\nb.png"
