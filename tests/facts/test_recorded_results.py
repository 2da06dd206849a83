"""Records of evaluations in a run's folder: what is read, and what is skipped."""

import json
from pathlib import Path
from typing import Any

import pytest

from vantage.facts.results import as_good, recorded_results


def record(**changes: Any) -> dict[str, Any]:
    outcome = {"measures": {"top-1": 61.5}, "test_images": 5}
    facts = {"protocol": "knn", "version": 1, "settings": {"k": 5}, "checkpoint": "step-00000002", "encoder": "d1935"}
    return {**facts, "outcomes": {"first": outcome, "raw pixels": outcome}, **changes}


def write(folder: Path, content: Any) -> None:
    path = folder / "evaluations" / "knn.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


def test_a_record_is_a_result_beside_its_baselines(tmp_path: Path) -> None:
    write(tmp_path, record())
    (result,) = recorded_results(tmp_path)
    assert (result.title, result.value, result.baselines) == ("knn, top-1", 61.5, {"raw pixels": 61.5})


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        record(version="1"),
        record(outcomes={"first": {"measures": {}, "test_images": 5}}),
        record(outcomes={"first": {"measures": {"top-1": "high"}, "test_images": 5}}),
        record(outcomes={"first": {"measures": {"top-1": 10**400}, "test_images": 5}}),
        record(outcomes={"first": {"measures": {"top-1": 61.5}}}),
    ],
    ids=["list", "empty", "version", "no measures", "words", "no float is as large", "no count"],
)
def test_other_files_are_skipped(content: Any, tmp_path: Path) -> None:
    write(tmp_path, content)
    assert recorded_results(tmp_path) == []


@pytest.mark.parametrize(
    ("images", "run", "baseline", "beaten"),
    [(5_000, 50.0, 50.0, True), (5_000, 50.0, 49.9, False), (60, 50.0, 53.0, False), (60, 20.0, 60.0, True)],
)
def test_a_baseline_is_as_good_if_the_test_images_can_show_it(
    images: int, run: float, baseline: float, beaten: bool, tmp_path: Path
) -> None:
    """Of 60 test images, nine may differ by chance."""
    values = {"first": run, "raw pixels": baseline}
    outcomes = {name: {"measures": {"top-1": value}, "test_images": images} for name, value in values.items()}
    write(tmp_path, record(outcomes=outcomes))
    words = f"knn, top-1 on {images:,} test images (the run {run:.1f}, raw pixels {baseline:.1f})"
    assert as_good(recorded_results(tmp_path), "step-00000002") == [words] * beaten
