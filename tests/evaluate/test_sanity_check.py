"""The check at the end of a run: what it says with labels, with few, and without."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tiny import cpu_work, images, saved_run, tiny_run

from vantage.data import Arrays
from vantage.errors import UserError
from vantage.evaluate import Accuracy
from vantage.evaluate.result import Outcome, Result
from vantage.evaluate.sanity_check import sanity_check
from vantage.training.images import held_out_part, training_part
from vantage.training.run import Data


def test_with_labels_the_held_out_images_are_looked_up_beside_both_baselines(tmp_path: Path) -> None:
    run, source = replace(tiny_run(), data=Data(hold_out=0.25)), images(120, 0)
    saved_run(tmp_path, run)
    result = sanity_check(tmp_path, source, cpu_work(tmp_path))
    assert result.beats_baselines is not None
    assert result.lines[0].startswith("kNN on 30 held-out training images: moco_v2 ")
    assert "raw pixels" in result.lines[0] and "random encoder" in result.lines[0]
    assert len(list((tmp_path / "evaluations").glob("knn-v1-*.json"))) == 1
    saved_run(tmp_path, replace(run, data=Data()))
    assert "kNN on 12 of the images that were trained on" in sanity_check(tmp_path, source, cpu_work(tmp_path)).lines[0]


def test_what_is_held_out_and_what_is_trained_on_are_all_images() -> None:
    for source in (images(60, 0), Arrays(np.zeros((60, 8, 8, 3), np.uint8), None, "without labels")):
        data = Data(hold_out=0.2)
        out, rest = held_out_part(source, data), training_part(source, data)
        names = [part.name(number) for part in (out, rest) for number in range(len(part))]
        assert len(out) == 12 and sorted(names) == sorted(source.name(number) for number in range(60))


def test_without_labels_there_are_ranks_and_a_picture(tmp_path: Path) -> None:
    saved_run(tmp_path, tiny_run())
    source = Arrays(np.stack([images(30, 0).image(n).permute(1, 2, 0).numpy() for n in range(30)]), None, "plain")
    result = sanity_check(tmp_path, source, cpu_work(tmp_path))
    assert result.beats_baselines is None and "of 12 dimensions (effective rank; random encoder " in result.lines[0]
    with Image.open(tmp_path / "evaluations" / "neighbors.png") as picture:
        assert picture.width > 500
    few = sanity_check(tmp_path, images(30, 0), cpu_work(tmp_path))
    assert few.beats_baselines is None  # thirty labels are too few to tell
    assert result.lines[0].startswith("without labels: the features of 30 images fill ")
    assert few.lines[0].startswith("too few labels to measure accuracy: the features of 30 images fill ")


def test_a_picture_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    saved_run(tmp_path, tiny_run())
    (tmp_path / "evaluations").write_text("a file is where its folder should be")
    source = Arrays(np.zeros((30, 8, 8, 3), np.uint8), None, "plain")
    with pytest.raises(UserError, match="the picture could not be written to"):
        sanity_check(tmp_path, source, cpu_work(tmp_path))


def test_classes_of_one_image_are_no_labels_to_measure_by(tmp_path: Path) -> None:
    """As in a folder of products, each with its picture in a folder of its own."""
    saved_run(tmp_path, tiny_run())
    pixels = np.stack([images(120, 0).image(n).permute(1, 2, 0).numpy() for n in range(120)])
    result = sanity_check(tmp_path, Arrays(pixels, np.arange(120), "products"), cpu_work(tmp_path))
    assert result.beats_baselines is None and result.lines[0].startswith("too few labels")


@pytest.mark.parametrize(
    ("pixels", "random", "better", "words"),
    [
        (50.0, 50.0, True, "training helped"),
        (50.0, 78.0, False, "not clearly above both"),
        (90.0, 50.0, False, "did NOT help"),
    ],
)
def test_a_win_is_beyond_chance(
    pixels: float, random: float, better: bool, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On 400 held-out images, with accuracies that are set."""

    def outcome(share: float) -> Outcome:
        return Outcome(Accuracy(share, None).measures(), 1_000, 400, {})

    outcomes = {"simclr": outcome(80.0), "raw pixels": outcome(pixels), "random encoder": outcome(random)}
    empty = dict.fromkeys(("test_split", "view", "checkpoint", "encoder", "train", "test", "device"), "")
    result = Result("knn", 1, {}, outcomes, **empty, resident_bytes=0, libraries={})  # pyright: ignore
    monkeypatch.setattr("vantage.evaluate.sanity_check.judge", lambda *_: result)
    saved_run(tmp_path, replace(tiny_run(), data=Data(hold_out=0.25)))
    check = sanity_check(tmp_path, images(1_600, 0, size=4), cpu_work(tmp_path))
    assert check.beats_baselines is better and words in check.lines[1]
    accuracies = f"simclr 80.0 %, raw pixels {pixels} %, random encoder {random} %"
    assert check.lines[0] == f"kNN on 400 held-out training images: {accuracies}"
