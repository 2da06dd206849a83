"""A row of InfoMin's Table 4 as a cell of the lab."""

from dataclasses import replace
from pathlib import Path

import pytest
from stocks import bars, source, tints

from vantage.encoding import Work
from vantage.schedules import CosineByStep
from vantage.studies.lab.experiments.moving_digits import CHANCE, MovingDigits
from vantage.studies.lab.sets import Split
from vantage.studies.moving_mnist import ClipTraining, InfoMinTable4, LinearHeads, Scene
from vantage.studies.moving_mnist.rows import INFORMATION, RowMeasures, stored_measures
from vantage.training.optimizers import AdamW

SMALL = MovingDigits("digit", steps=2, frames=128, test_frames=64, information_clips=64, epochs=1)


@pytest.mark.slow
def test_a_cell_has_the_numbers_of_the_table(tmp_path: Path) -> None:
    work = Work("cpu", cache=tmp_path)
    digits, backgrounds = source(bars(160)), source(tints(40))
    course = ClipTraining(1, 64, 128, AdamW(weight_decay=0.0), CosineByStep(0.001))
    heads = LinearHeads(ClipTraining(1), 128)
    table = InfoMinTable4(
        Scene(seen=2, last=3), course=course, heads=heads, test_frames=64, information_clips=64, repetitions=2
    )
    sources = {"digits": digits, "test_digits": digits, "backgrounds": backgrounds, "test_backgrounds": backgrounds}
    splits = (Split(digits, digits, digits), Split(backgrounds, backgrounds, backgrounds))
    results, numbers_of_row = stored_measures(tmp_path / "table", {"entry": table.name}), {}
    for row in table.rows:
        name = "untrained" if "random" in row.name else row.name
        numbers_of_row[row.name] = numbers = replace(SMALL, row=name).measure_on(1, splits, work)
        assert set(numbers) >= {"digit", "background", "pixels"}
        measures = {other: 0.0 for other in ("digit", "background", "location", INFORMATION)}
        results.add(f"{row.name}, seed 0", RowMeasures(row.name, 0, measures, 0.0))  # so that it is not trained
    table(sources, results, work)
    for name, numbers in numbers_of_row.items():
        measures = results[f"{name}, seed 1"].measures
        assert list(numbers.values()) == pytest.approx(list(measures.values()), abs=1e-4), name
    assert set(replace(SMALL, row=CHANCE).measure_on(0, splits, work)) == {"digit", "background", "pixels"}


@pytest.mark.parametrize(("steps", "epochs"), [(400, 1), (1_600, 2), (937, 1), (938, 2), (4_000, 5)])
def test_steps_beyond_one_pass_over_the_digits_are_trained(steps: int, epochs: int) -> None:
    """An epoch has a clip for each digit; more steps than that were silently left out."""
    course = MovingDigits("digit", steps=steps).course(60_000)
    assert course.epochs == epochs and course.steps(60_000) == steps
