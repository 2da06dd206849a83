"""Smaller copies keep names, proportions and classes; an interrupted copy continues where it stopped."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vantage.data import open_source, resize_short_side
from vantage.errors import DataError


def test_a_copy(tmp_path: Path) -> None:
    for name, size in (
        ("cat/wide.jpg", (80, 40)),
        ("cat/high.png", (30, 60)),
        ("dog/small.jpg", (10, 8)),
        ("dog/bad.jpg", None),
    ):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if size is None:
            path.write_bytes(b"")
        else:
            Image.new("RGB", size, (200, 30, 40)).save(path)
    source = open_source(tmp_path / "in", cache=tmp_path / "c")
    report = resize_short_side(source, tmp_path / "out", side=20)
    assert report.written == 3 and report.present == 0 and [b.name for b in report.bad] == ["dog/bad.jpg"]
    copy = open_source(tmp_path / "out", cache=tmp_path / "c")
    sizes = {copy.name(n): tuple(copy.image(n).shape[1:]) for n in range(len(copy))}
    assert sizes == {"cat/high.jpg": (40, 20), "cat/wide.jpg": (20, 40), "dog/small.jpg": (8, 10)}
    assert copy.classes == ("cat", "dog")
    assert abs(int(copy.image(0)[0].float().mean()) - 200) < 4
    again = resize_short_side(source, tmp_path / "out", side=20)
    assert again.written == 0 and again.present == 3


def test_rows_get_names(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.zeros((3, 8, 8), np.uint8), labels=np.array(["a/b", "c", "c"]))
    resize_short_side(open_source(tmp_path / "a.npz", cache=tmp_path), tmp_path / "out", side=4)
    files = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.jpg"))
    assert files == ["a_b/00000000.jpg", "c/00000001.jpg", "c/00000002.jpg"]


def test_two_names_that_would_be_one(tmp_path: Path) -> None:
    for name in ("1.jpg", "1.png"):
        Image.new("RGB", (4, 4)).save(tmp_path / name)
    with pytest.raises(DataError, match="two images would be written as 1.jpg"):
        resize_short_side(open_source(tmp_path, cache=tmp_path / "c"), tmp_path / "out")
    with pytest.raises(DataError, match="quality 0"):
        resize_short_side(open_source(tmp_path, cache=tmp_path / "c"), tmp_path / "out", quality=0)
