from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_lab_measures import subject_of

from vantage.data.sources.arrays import Arrays
from vantage.evaluate import LinearCached, LowShotChosen
from vantage.studies.lab.measures.transfer import FewShotAccuracy, TransferAccuracy
from vantage.studies.lab.sets import ImageSets, Split
from vantage.training.run import Data

LINEAR = LinearCached(l2=(1e-3,), iterations=5)


def colored_images(images: int) -> Arrays:
    """Four classes, each of its own shade."""
    label = np.arange(images) % 4
    shade = np.random.default_rng(0).integers(0, 40, (images, 8, 8, 3)) + 60 * label[:, None, None, None]
    return Arrays(shade.astype(np.uint8), label, "shades")


def test_transfer_is_the_mean_over_the_other_sets(tmp_path: Path) -> None:
    names_and_data: list[tuple[str, Data]] = []
    easy, subject = colored_images(40), subject_of(tmp_path)
    sets = {"mnist": Split(easy, easy, easy), "flowers5": subject.split}

    def other(name: str, data: Data) -> Split:
        names_and_data.append((name, data))
        return sets[name]

    measure = TransferAccuracy(("mnist", "flowers5"), LINEAR, most=40)
    numbers = measure(replace(subject, other=other))
    assert names_and_data == [("mnist", Data(max_images=40)), ("flowers5", Data(max_images=40))]
    assert numbers["transfer, mnist"] == 100 and numbers["transfer, flowers5"] == 25  # all of one color
    assert numbers["transfer"] == 62.5


def test_few_shots_names_the_fewest_and_the_most(tmp_path: Path) -> None:
    easy, subject = colored_images(40), subject_of(tmp_path)
    protocol = LowShotChosen(shots=(4, 1, 2), samples=2, negatives=2, costs=(1.0,))
    numbers = FewShotAccuracy(protocol)(replace(subject, split=Split(easy, easy, easy)))
    measures = protocol(subject.encoder, easy, easy, subject.work).measures
    assert numbers["few shots"] == pytest.approx(measures["mAP"])
    assert numbers["few shots, fewest"] == measures["k=1"] and numbers["few shots, most"] == measures["k=4"]


def test_a_set_without_parts_holds_a_fifth_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole: Any = colored_images(40)
    monkeypatch.setattr("vantage.studies.lab.sets.open_source", lambda path: whole)
    split = ImageSets({"flowers5": "flowers"}).split("flowers5", Data(max_images=20))
    assert len(split.train) == 20 and len(split.whole) == 32 and len(split.test) == 8
