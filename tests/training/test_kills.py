"""Processes are killed, four of them or while an epoch is kept, and the run continues bit for bit.

More than two add up gradients in an order that depends on how torch lays them out, which changed after the first step.
"""

from pathlib import Path

import kills
import pytest
import small_runs
from kill_moments import KEEPING


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The images and the uninterrupted run, which the moments share."""
    return tmp_path_factory.mktemp("kills")


ON_FOUR = ("hcl", "interclr", "cmc", "local_aggregation", "everything", f"ring_ir_neighbors{kills.SHARDED}")
"""Recipes with each kind of memory, of networks and of optimizer, and most kinds of positives."""


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ON_FOUR)
def test_four_processes_resume_bit_equal(recipe: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(folder / "cache"))
    images = small_runs.write_images(folder / "images.npz")
    outcomes = kills.chain(recipe, 4, images, folder)
    for outcome in outcomes:
        assert outcome["killed"] and outcome["equal"] and outcome["steps"] == kills.STEPS, outcome
    assert len(outcomes) == len(kills.moments_of(recipe)) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("moment", KEEPING)
def test_a_kept_epoch_is_whole_or_absent(
    moment: str, processes: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while the second epoch is kept. Then, and when the run has gone on, each epoch that is there is whole."""
    monkeypatch.setenv("VANTAGE_CACHE", str(folder / "cache"))
    images = small_runs.write_images(folder / "images.npz")
    outcome = kills.cell("moco_v2", moment, processes, images, folder)
    assert outcome["killed"] and outcome["equal"], outcome
