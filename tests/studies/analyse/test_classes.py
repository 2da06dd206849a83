"""Where augmentations lie: its numbers against loops over pairs, and the analysis of a trained run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from runs import run_of, work
from synthetic import vectors
from torch import Tensor

from vantage.cli import main
from vantage.data import Source, labels_of
from vantage.data.sources.arrays import Arrays
from vantage.errors import UserError
from vantage.frozen.networks import trained_networks
from vantage.storage.figures import picture
from vantage.studies.analyse.classes import (
    AugmentationMap,
    AugmentationMaps,
    Classes,
    class_structure,
    outliers,
    similarities,
)


def augmentations(images: int, copies: int) -> Tensor:
    return vectors(images * copies, 5, 1).unflatten(0, (images, copies))


def test_similarities_by_a_slow_loop() -> None:
    vector, label = augmentations(6, 3), torch.tensor([0, 1, 0, 2, 1, 0])
    kinds: dict[str, list[float]] = {"image": [], "class": [], "other": []}
    for i, one in enumerate(vector):
        for j, two in enumerate(vector):
            kind = "image" if i == j else "class" if label[i] == label[j] else "other"
            kinds[kind] += [float(a @ b) for m, a in enumerate(one) for n, b in enumerate(two) if i != j or m != n]
    assert similarities(vector, label) == pytest.approx(tuple(np.mean(each) for each in kinds.values()))
    with pytest.raises(UserError, match="no class occurs twice"):
        similarities(vector, torch.arange(6))


def test_outliers_by_a_slow_loop() -> None:
    vector, label = augmentations(6, 3), torch.tensor([0, 1, 0, 2, 1, 0])
    wrong = 0
    for image, copies in enumerate(vector):
        for one in copies:
            others = [(float(one @ two), int(label[j])) for j, each in enumerate(vector) for two in each if j != image]
            wrong += max(others)[1] != int(label[image])
    assert outliers(vector, label) == pytest.approx(wrong / 18)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source]:
    return run_of("moco_v2", tmp_path_factory.mktemp("moco"), epochs=1)


@pytest.mark.slow
def test_the_same_images_of_some_classes_are_shown_for_every_run(run: tuple[Path, Source]) -> None:
    one, source = trained_networks(run[0]), run[1]
    kind = Classes(classes=2, images=3, augmentations=4, random_encoder=True)
    found = kind([one, replace(one, name="again")], source, work())
    assert [each.name for each in found.maps] == [one.name, "again", "random encoder"]
    first, again, random = found.maps
    assert first.place.shape == (6, 4, 2) and torch.equal(first.place, again.place)
    assert not torch.equal(first.place, random.place)
    assert sorted(first.label.unique(return_counts=True)[1].tolist()) == [3, 3] and len(found.classes) == 2
    assert bool((first.place >= 0).all()) and bool((first.place <= 1).all())
    assert found.table()[0]["outliers"] == first.numbers["outliers"]
    assert picture(found.figure(), "png").startswith(b"\x89PNG")
    assert len(found.lines()) == 3 + 1 + 2


def test_an_image_apart_from_all_others_is_no_outlier_of_its_class() -> None:
    """Augmentations that coincide: within images 1; classes on opposite sides: between −1, no outliers."""
    side = torch.tensor([1.0, 1.0, -1.0, -1.0])[:, None, None].expand(4, 2, 3)
    numbers = class_structure(side / 3**0.5, torch.tensor([0, 0, 1, 1]))
    assert numbers["similarity within images"] == pytest.approx(1) == numbers["similarity within classes"]
    assert numbers["similarity between classes"] == pytest.approx(-1)
    assert numbers["outliers"] == 0 and numbers["silhouette"] == pytest.approx(1)


def test_what_cannot_be_shown_is_refused(run: tuple[Path, Source]) -> None:
    one = trained_networks(run[0])
    with pytest.raises(UserError, match="classes is 1: give at least 2"):
        Classes(classes=1)

    alone = Arrays(np.zeros((4, 8, 8, 3), np.uint8), np.arange(4), "each of its own class")
    with pytest.raises(UserError, match="no class has two images or more: two such classes are needed"):
        Classes()([one], alone, work())


def test_equal_vectors_are_refused_and_names_are_shown_as_they_are(run: tuple[Path, Source]) -> None:
    """t-SNE ends the process if all vectors are equal; names come from folders, and are no formulas."""
    one = trained_networks(run[0])
    blank = Arrays(np.zeros((8, 20, 20, 3), np.uint8), np.arange(8) % 2, "blank")
    with pytest.raises(UserError, match="all augmentations have the same vector"):
        Classes(augmentations=2)([one], blank, work())
    found = Classes(classes=2, images=2, augmentations=3)([replace(one, name="$a_{$x")], run[1], work())
    figure = replace(found, classes=(r"$\foo$", "_hidden")).figure()
    assert picture(figure, "png").startswith(b"\x89PNG")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [r"$\foo$", " _hidden"]


def test_the_command_writes_a_table_and_a_picture(run: tuple[Path, Source], tmp_path: Path, capsys) -> None:
    images = str(run[0].parent / "images.npz")
    words = ["analyse", "classes", str(run[0]), "--data", images, "--classes", "2", "--images", "2", "--device", "cpu"]
    assert main([*words, "--augmentations", "3", "--out", str(tmp_path)]) == 0
    assert "nearness of a class" in capsys.readouterr().out
    assert (tmp_path / "classes.png").exists() and (tmp_path / "classes.json").exists()
    assert len(labels_of(run[1]).unique()) >= 2


def test_two_augmentations_meet_halfway() -> None:
    """The lower of the two numbers was taken for the middle, along each axis, so lines met at a corner."""
    place = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]])
    figure = AugmentationMaps((AugmentationMap("run", torch.tensor([0]), place, {}),), ("one",)).figure()
    (lines,) = figure.axes[0].collections[:1]
    assert [segment[1].tolist() for segment in lines.get_segments()] == [[0.5, 0.5], [0.5, 0.5]]  # pyright: ignore
