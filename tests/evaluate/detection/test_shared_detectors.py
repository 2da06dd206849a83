"""Several processes share the images of a detector's steps, and the test images, with the results of one."""

from pathlib import Path

import pytest
import ranks
import shared_detectors
import torch
from torch.testing import assert_close


@pytest.mark.slow
def test_two_processes_train_a_detector_as_one_does(tmp_path: Path) -> None:
    """Losses, gradients and statistics in float64, but for torchvision's float32 labels; a whole protocol as far as
    float32 goes."""
    torch.set_num_threads(1)
    one, two = shared_detectors.results_of(tmp_path / "alone"), ranks.spawn(shared_detectors.shared, tmp_path)
    for mine in two:
        for protocol in shared_detectors.PROTOCOLS:
            expected, ours = one[protocol.name], mine[protocol.name]
            assert len(ours["boxes"]) == len(expected["boxes"]) and any(len(box) for box, *_ in ours["boxes"])
            for part in ("losses", "gradients", "statistics"):
                assert_close(ours[part], expected[part], rtol=1e-7, atol=1e-7)
            for (box, label, score, masks, points), its in zip(ours["boxes"], expected["boxes"], strict=True):
                assert_close(box, its[0], rtol=0, atol=1e-4)
                assert torch.equal(label, its[1])
                assert_close(score, its[2], rtol=0, atol=1e-5)
                assert masks == its[3]
                assert_close(points, its[4], rtol=0, atol=1e-3)
        assert_close(mine["whole"], one["whole"], rtol=1e-5, atol=1e-5)
