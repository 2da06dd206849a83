"""Files and folders that are no sets of images, or hold less than they should: the answer says what to do."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from kept_images import IMAGES, LABELS, as_png

from vantage.data import Folder, Parquet, labels_of, open_source
from vantage.data.sources.masked import open_masked
from vantage.errors import DataError, UnreadableImage, UserError
from vantage.evaluate.protocols.detection import open_annotated


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({"images": np.zeros((2, 4, 4), np.float32)}, "must be uint8"),
        ({"images": np.zeros((2, 4, 4, 7), np.uint8)}, r"shape \(2, 4, 4, 7\)"),
        ({"images": np.zeros((0, 4, 4), np.uint8)}, "n at least 1"),
        ({"images": np.zeros((2, 4, 4), np.uint8), "labels": np.zeros(3, int)}, "there are 2 images"),
        ({"images": np.zeros((2, 4, 4), np.uint8), "labels": np.zeros(2)}, "one integer"),
        ({"images": np.zeros((2, 4, 4), np.uint8), "labels": np.array([0, 10**9])}, "Number the classes from 0"),
        ({"pictures": np.zeros((2, 4, 4), np.uint8)}, "its arrays are pictures"),
        ({"x_train": np.zeros((2, 4, 4), np.uint8)}, "Name a part: a.npz#train"),
    ],
)
def test_arrays_that_are_no_images(arrays: dict[str, np.ndarray], message: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=message):
        open_source(tmp_path / "a.npz", cache=tmp_path)


def test_parquet_files_whose_labels_do_not_agree(tmp_path: Path) -> None:
    """The number 1 in one file may mean another class than in the next."""

    def write(number: int, labels: list[int] | list[str], *names: str) -> None:
        images = pa.array([as_png(image) for image in IMAGES[: len(labels)]], pa.binary())
        about = json.dumps({"info": {"features": {"label": {"names": names}}}})
        table = pa.table({"image": images, "label": labels})
        pq.write_table(table.replace_schema_metadata({"huggingface": about}), tmp_path / f"{number}.parquet")

    write(0, [0, 1], "cat", "dog")
    write(1, [0, 1], "cat", "dog")
    assert open_source(tmp_path).classes == ("cat", "dog")
    write(1, [0, 1], "dog", "cat")
    with pytest.raises(DataError, match=r"1.parquet has .*label of dog, cat, but .*0.parquet has .* of cat, dog: "):
        open_source(tmp_path)
    write(0, [5, -7])
    write(1, ["cat", "dog"])
    with pytest.raises(DataError, match=r"labels in .*0.parquet and beside it are words in some files, numbers in oth"):
        open_source(tmp_path)
    write(1, [2, 0])
    assert labels_of(open_source(tmp_path)).tolist() == [5, -1, 2, 0]


def test_gray_arrays_and_missing_labels(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=IMAGES[..., 0], y=np.where(LABELS == 1, -1, LABELS))
    source = open_source(tmp_path / "a.npz", cache=tmp_path)
    assert torch.equal(source.image(2), torch.from_numpy(IMAGES[2, ..., 0]).expand(3, -1, -1))
    assert labels_of(source).tolist() == [0, 0, 0, -1, -1, -1, 2, 2, 2] and source.label(4) is None


def test_parquet_without_images_and_with_empty_cells(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["a", "b"]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"found text \(string\)"):
        open_source(tmp_path / "t.parquet", cache=tmp_path)
    cells = [as_png(IMAGES[0]), None, b"rubbish"]
    pq.write_table(pa.table({"image": pa.array(cells, pa.binary()), "label": ["b", None, "a"]}), tmp_path / "c.parquet")
    source = open_source(tmp_path / "c.parquet", cache=tmp_path)
    assert isinstance(source, Parquet) and source.classes == ("a", "b") and labels_of(source).tolist() == [1, -1, 0]
    assert source.image(0).shape == (3, 10, 12)
    for number, reason in ((1, "holds no bytes"), (2, "not a JPEG")):
        with pytest.raises(UnreadableImage, match=f"row {number}: .*{reason}"):
            source.image(number)


def test_a_table_of_features_among_images_is_no_shard(tmp_path: Path) -> None:
    """As `vantage embed` writes it in the folder of the images."""
    (tmp_path / "photos" / "a").mkdir(parents=True)
    for name in ("1.png", "a/2.png"):
        (tmp_path / "photos" / name).write_bytes(as_png(IMAGES[0]))
    pq.write_table(pa.table({"name": ["1.png"], "embedding": [[0.5]]}), tmp_path / "photos" / "features.parquet")
    assert isinstance(open_source(tmp_path / "photos", cache=tmp_path), Folder)
    assert len(open_source(f"{tmp_path}/photos#a", cache=tmp_path, at_least=1)) == 1
    cells = pa.array([as_png(image) for image in IMAGES[:3]], pa.binary())
    pq.write_table(pa.table({"image": cells}), tmp_path / "photos" / "images.parquet")
    source = open_source(tmp_path / "photos", cache=tmp_path)
    assert isinstance(source, Parquet) and len(source) == 3
    (tmp_path / "photos" / "images.parquet").write_bytes(b"damaged")
    with pytest.raises(DataError, match=r"cannot read .*images.parquet as a Parquet file"):
        open_source(tmp_path / "photos", cache=tmp_path)


def test_places_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "1.png").write_bytes(as_png(IMAGES[0]))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.doc").write_bytes(b"")
    (tmp_path / "photos.ZIP").write_bytes(b"PK")
    (tmp_path / "void.txt").write_text("")
    (tmp_path / "noise.npz").write_bytes(bytes(range(200)))
    cases = {
        "empty": "no images in .*empty: it holds no files",
        "other": "found 1 other file ",
        "gone/deeper": f"does not exist .the part of it that exists is {tmp_path}\\)",
        "one": "holds 1 image, but at least 2",
        "one/1.png": "single image",
        "other/a.doc": "in none of the formats that can be read",
        "photos.ZIP": "photos.ZIP is an archive .*: unpack it, and name the folder$",
        "one#train": "one#train does not exist: leave out #train",
        "noise.npz": "noise.npz as a NumPy file: it is not a NumPy file of plain numbers, or it is damaged$",
        "void.txt": "names no images",
    }
    for path, message in cases.items():
        with pytest.raises(DataError, match=message) as error:
            open_source(tmp_path / path, cache=tmp_path / "cache")
        assert isinstance(error.value, UserError)
    assert len(open_source(tmp_path / "one", cache=tmp_path / "cache", at_least=1)) == 1


@pytest.mark.parametrize("open_path", [open_source, open_annotated, open_masked])
@pytest.mark.parametrize("path", ["~no-such-user/x", "~no-such-user/x#y", "~no-such-user/{0..1}.tar"])
def test_the_home_of_an_unknown_user_is_no_crash(open_path: Callable[[str], object], path: str) -> None:
    with pytest.raises(DataError, match=r"~no-such-user/.*(do(es)? not exist|name two folders|name a folder|cannot)"):
        open_path(path)


def test_an_empty_path_is_not_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="an empty path was given: name a folder"):
        open_source("")
