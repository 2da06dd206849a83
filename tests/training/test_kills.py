"""Four processes are killed, and the run continues bit for bit.

More than two add up gradients in an order that depends on how torch lays them out, which changed after the first step.
"""

from pathlib import Path

import kills
import pytest
import small_runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The images and the uninterrupted run, which the moments share."""
    return tmp_path_factory.mktemp("kills")


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["mid-epoch", "during clustering", "during a checkpoint's write"])
def test_four_processes_resume_bit_equal(moment: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(folder / "cache"))
    images = small_runs.write_images(folder / "images.npz")
    outcome = kills.cell("interclr", moment, 4, images, folder)
    assert outcome["killed"] and outcome["equal"], outcome
