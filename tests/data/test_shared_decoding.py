"""Several processes decode a small set together."""

from pathlib import Path

import numpy as np
import pytest
import ranks
import shared_scan
import torch
from PIL import Image


@pytest.mark.slow
def test_each_process_decodes_its_part_and_has_all_pixels(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    chance, pixels = np.random.default_rng(0), []
    for number in range(24):
        side = 8 + (number > 20)  # the last three are larger, and the second process has them
        pixels.append(chance.integers(0, 256, (side, side, 3), dtype=np.uint8))
        Image.fromarray(pixels[-1]).save(tmp_path / "images" / f"{number:02}.png")
    expected = torch.from_numpy(np.stack(pixels[:21])).permute(0, 3, 1, 2)
    both = ranks.spawn(shared_scan.decode_together, tmp_path)
    halves = [0, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17], [0, 4, 5, 6, 7, 12, 13, 14, 15, 18, 19, 20]
    for found, own in zip(both, halves, strict=True):
        assert torch.equal(found["pixels"], expected) and torch.equal(found["again"], expected)
        assert found["own"] == own, "halves of blocks of 8, and the first image, whose size is that of all"
        assert found["read"] == 1, "the second time, the pixels come from the cache"
    assert "20.png is 8 x 8" not in both[0]["message"] and "another process found an image" in both[0]["message"]
    assert "21.png is 9 x 9 pixels, but the first is 8 x 8" in both[1]["message"]
