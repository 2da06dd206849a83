"""A test set of files that are training images too is refused or said, since its accuracy means little."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tar_shards import png

from vantage.data import open_source
from vantage.data.sources.arrays import Arrays
from vantage.data.sources.source import files_of
from vantage.data.sources.subset import SourceSubset
from vantage.data.splits import train_and_test
from vantage.errors import UserError


@pytest.fixture(autouse=True)
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders train and test, each with two images of a cat and two of a dog."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    for part in ("train", "test"):
        for number, kind in enumerate(("cat", "cat", "dog", "dog")):
            file = tmp_path / "photos" / part / kind / f"{number}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(png(number + 4 * (part == "test")))
    return tmp_path / "photos"


def test_a_folder_of_the_training_images_is_no_test_set(photos: Path) -> None:
    train, test = open_source(str(photos)), open_source(str(photos / "test"))
    with pytest.raises(UserError, match=r"^all 4 test images are training images too, such as cat/0\.png: give sets"):
        train_and_test(train, test)
    assert train_and_test(test, open_source(str(photos / "train")))[2] == "a set of its own"
    assert train_and_test(test, train)[2] == (
        "a set of its own, but 4 of its 8 images are training images too, such as test/cat/0.png"
    )


def test_shared_files_are_found_in_lists_tables_links_and_subsets(photos: Path) -> None:
    folder = open_source(str(photos / "test"))
    (photos / "again").symlink_to(photos / "test", target_is_directory=True)
    (photos / "list.txt").write_text("train/cat/0.png cat\nagain/dog/3.png dog\n")
    (photos / "table.csv").write_text(f"train/cat/0.png,cat\n{photos / 'test/dog/3.png'},dog\n")
    words = ", but 1 of its 2 images is a training image too, such as "
    assert train_and_test(folder, open_source(str(photos / "list.txt")))[2].endswith(f"{words}again/dog/3.png")
    assert train_and_test(folder, open_source(str(photos / "table.csv")))[2].endswith("/test/dog/3.png")
    halves = [SourceSubset(folder, torch.tensor(rows)) for rows in ([0, 2], [3, 1], [3, 0])]
    assert train_and_test(halves[0], halves[1])[2] == "a set of its own"
    assert train_and_test(halves[0], halves[2])[2].endswith(f"{words}cat/0.png")


def test_images_without_a_label_and_without_files_are_not_shared(photos: Path) -> None:
    (photos / "some.txt").write_text("train/cat/0.png cat\ntest/dog/2.png\ntrain/dog/3.png dog\n")
    assert train_and_test(open_source(str(photos / "some.txt")), open_source(str(photos / "test")))[2] == (
        "a set of its own"
    )
    rows = Arrays(np.zeros((2, 4, 4), np.uint8), np.array([0, 1]), "rows")
    assert not [*files_of(rows), *files_of(SourceSubset(rows, [1, 0]))]
