"""What lies beside shards: a few images do not make their folder one of images, and a line says what is left out."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tar_shards import png, write_shards

from vantage.data import Folder, Parquet, Shards
from vantage.training.images import open_images
from vantage.training.run import Data


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))


def _with_images(folder: Path, count: int) -> Data:
    for number in range(count):
        (folder / f"preview-{number}.png").write_bytes(png(number))
    return Data(str(folder))


def test_previews_beside_shards_are_left_out(tmp_path: Path) -> None:
    source, line = open_images(_with_images(write_shards(tmp_path / "shards", (5, 4)), 2))
    assert isinstance(source, Shards) and len(source) == 9
    assert line.endswith("; 2 images beside the shards left out: put them into a folder of their own")


def test_a_tar_or_two_among_more_images_are_left_out(tmp_path: Path) -> None:
    source, line = open_images(_with_images(write_shards(tmp_path / "photos", (5, 4)), 3))
    assert isinstance(source, Folder) and len(source) == 3
    assert line.endswith(
        "; train-000000.tar and 1 more left out: among images or folders, a tar is read only if you name it"
    )


def test_a_tar_beside_folders_of_images_is_left_out(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / "set" / "train" / name).mkdir(parents=True)
        _with_images(tmp_path / "set" / "train" / name, 2)
    write_shards(tmp_path / "set" / "train", (5,))
    for path in ("set/train", "set#train"):
        source, line = open_images(Data(str(tmp_path / path)))
        assert isinstance(source, Folder) and len(source) == 4 and "; train-000000.tar left out: among" in line


def test_images_beside_parquet_files_are_left_out(tmp_path: Path) -> None:
    table = pa.table({"image": [{"bytes": png(number), "path": None} for number in range(4)], "label": np.arange(4)})
    pq.write_table(table, tmp_path / "train.parquet")
    source, line = open_images(_with_images(tmp_path, 1))
    assert isinstance(source, Parquet) and len(source) == 4 and "; 1 image beside the shards left out" in line
