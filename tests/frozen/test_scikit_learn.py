"""A run as a transformer: scikit-learn's own checks, pipelines, searches, every form of images."""

import contextlib
import math
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import Tags
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import check_is_fitted, validate_data
from tiny import images, saved_run, tiny_run

import vantage
from vantage import VantageEncoder
from vantage.encoders import Convolutions, Encoder, LinearHead, Shared
from vantage.errors import DataError, UserError
from vantage.frozen.encoder import load

SOURCE = images(24, seed=2)
PIXELS = np.stack([SOURCE.image(number).permute(1, 2, 0).numpy() for number in range(len(SOURCE))])
LABELS = [SOURCE.label(number) for number in range(len(SOURCE))]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    saved_run(folder, replace(tiny_run(), encoders=Shared(Encoder(Convolutions((4, 8)), LinearHead(8)))))
    return folder


class Tabular(VantageEncoder):
    """The same on the tables that scikit-learn's checks fit: a row of numbers becomes a square of gray pixels. Without
    tables scikit-learn would check nothing but that an estimator can be cloned."""

    def fit(self, X: Any, y: Any = None) -> "Tabular":
        super().fit(squares(validate_data(self, X)), y)
        return self

    def transform(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return super().transform(squares(validate_data(self, X, reset=False)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


def squares(table: np.ndarray) -> np.ndarray:
    side = math.ceil(math.sqrt(table.shape[1]))
    pixels = np.zeros((len(table), side * side), np.uint8)
    pixels[:, : table.shape[1]] = (128 + 20 * table.astype(np.float64)).clip(0, 255)
    return pixels.reshape(len(table), side, side)


@pytest.mark.slow
def test_scikit_learns_own_checks_pass_on_tables_shown_as_images(run: Path) -> None:
    checks = list(estimator_checks_generator(Tabular(run, device="cpu", num_workers=1)))
    assert len(checks) > 30
    for estimator, check in checks:
        with contextlib.suppress(SkipTest):  # it needs a library that is not installed
            check(estimator)


def test_features_are_those_of_embed_whatever_form_images_have(run: Path, tmp_path: Path) -> None:
    encoder = VantageEncoder(run, device="cpu").fit(PIXELS)
    expected = vantage.embed(load(run), SOURCE).vector.numpy()
    pictures = [Image.fromarray(pixels) for pixels in PIXELS]
    for number, picture in enumerate(pictures):
        picture.save(tmp_path / f"{number:02d}.png")
    files = sorted(tmp_path.glob("*.png"))
    forms: list[Any] = [PIXELS, list(PIXELS), pictures, files, list(map(str, files)), np.array(files), SOURCE]
    for form in (*forms, [files[0], pictures[1], *PIXELS[2:]]):
        np.testing.assert_array_equal(encoder.transform(form), expected)
    gray = encoder.transform(PIXELS[..., 0])
    np.testing.assert_array_equal(gray, encoder.transform([pixels[..., 0] for pixels in PIXELS]))
    assert gray.shape == expected.shape and not np.array_equal(gray, expected)
    assert encoder.transform([PIXELS[0], PIXELS[1][:20, :30]]).shape == (2, 8)


def test_a_pipeline_classifies_and_a_search_clones_it(run: Path) -> None:
    pipeline = make_pipeline(VantageEncoder(run, device="cpu"), LogisticRegression())
    assert pipeline.fit(PIXELS, LABELS).score(PIXELS, LABELS) > 0.5
    search = GridSearchCV(pipeline, {"vantageencoder__batch_size": [4, 64], "logisticregression__C": [1.0]}, cv=2)
    assert search.fit(PIXELS, LABELS).best_score_ > 0.4
    names = pipeline[:1].get_feature_names_out()
    assert list(names) == [f"vantageencoder{number}" for number in range(8)]


def test_it_is_cloned_without_what_it_fitted(run: Path) -> None:
    encoder = VantageEncoder(str(run), batch_size=3)
    again = clone(encoder.fit(PIXELS))
    assert again.get_params() == encoder.get_params() and again.get_params()["batch_size"] == 3
    with pytest.raises(NotFittedError):
        again.transform(PIXELS)
    np.testing.assert_array_equal(again.fit_transform(PIXELS), encoder.transform(PIXELS))


def test_features_may_be_a_table_of_pandas(run: Path) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    table = VantageEncoder(run).set_output(transform="pandas").fit_transform(PIXELS)
    assert list(table.columns)[:2] == ["vantageencoder0", "vantageencoder1"] and table.shape == (24, 8)


def test_without_a_run_fit_trains_what_is_planned(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = replace(tiny_run(), encoders=Shared(Encoder(Convolutions((4,)), LinearHead(4))), epochs=1, batch_size=8)
    small = replace(small.fit(24), hardware=vantage.Hardware("cpu", precision="32-true"))
    asked_minutes: list[float] = []

    def plan_stub(source: vantage.Source, minutes: float, *, changes: dict) -> vantage.Run:
        asked_minutes.append(minutes)
        assert len(source) == 24 and changes == {"data.hold_out": 0.0}
        return small

    monkeypatch.setattr("vantage.frozen.scikit_learn.plan", plan_stub)
    encoder = VantageEncoder(minutes=2.0, folder=tmp_path / "kept").fit(PIXELS)
    assert asked_minutes == [2.0] and encoder.transform(PIXELS[:2]).shape == (2, 4)
    np.testing.assert_array_equal(VantageEncoder(tmp_path / "kept").fit_transform(PIXELS), encoder.transform(PIXELS))


def test_mistakes_are_one_sentence(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="give run= or minutes="):
        VantageEncoder().fit(PIXELS)
    with pytest.raises(UserError, match="give run= or minutes="):
        VantageEncoder(run, minutes=3.0).fit(PIXELS)
    for wrong, words in (
        (PIXELS.astype(float), "float64 values: images must be uint8"),
        (np.zeros((4, 7), np.uint8), r"shape \(4, 7\)"),
        ([], "there are no images"),
        ([3], "image 0 is int"),
        ([PIXELS[0], np.zeros((2, 2, 4), np.uint8)], r"image 1 is uint8 of shape \(2, 2, 4\)"),
        ("photos", "'photos' is one path: give a list of paths"),
        ([tmp_path / "gone.png"], "gone.png"),
    ):
        with pytest.raises(UserError, match=words):
            VantageEncoder(run).fit(PIXELS).transform(wrong)
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"run": 3}, "run is 3: give the folder of a run"),
        ({"minutes": "ten"}, "minutes is 'ten': give a number above 0"),
        ({"minutes": 0}, "a plan for 0.0 minutes was asked for: give a finite number of minutes above 0"),
        ({"minutes": 1, "folder": 5}, "folder is 5: give a path"),
        ({"network": "first"}, "network is 'first': give the number of a network"),
        ({"network": 4}, "network 4 was asked for, but the run trained 1"),
        ({"device": None}, "there is no device 'None'"),
        ({"device": "banana"}, "there is no device 'banana'"),
        ({"minutes": 60, "device": "banana"}, "there is no device 'banana'"),
        ({"batch_size": "big"}, "batch_size is 'big': give a whole number"),
        ({"batch_size": None}, "batch_size is None: give a whole number"),
        ({"num_workers": 0}, "num_workers is 0: give at least 1"),
        ({"minutes": 1, "run": "x"}, "but found both"),
        ({"run": None}, "but found neither"),
    ],
)
def test_a_wrong_setting_is_refused_by_fit_in_one_sentence(run: Path, settings: dict[str, Any], words: str) -> None:
    settings_of_encoder = {"run": None if "minutes" in settings else run, **settings}
    with pytest.raises(UserError) as problem:
        VantageEncoder(**settings_of_encoder).fit(PIXELS)
    assert words in str(problem.value)


def test_a_folder_is_opened_first(run: Path, tmp_path: Path) -> None:
    for path in (tmp_path, str(tmp_path)):
        with pytest.raises(DataError, match="is one path: give a list of paths, or vantage.open_source"):
            VantageEncoder(run).fit(path)
