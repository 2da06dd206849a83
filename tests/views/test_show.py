"""Pictures of views, and the command that makes them."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from small_runs import write_images
from torch.testing import assert_close

import vantage
from vantage.cli import main
from vantage.errors import UserError
from vantage.recipes import simclr
from vantage.training.folder import settings
from vantage.views import IMAGENET, EvaluationView, Patches, Views, cmc_views, frequency_views, pirl_views
from vantage.views.show import panels, picture


def images(count: int = 3, height: int = 40, width: int = 50) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randint(0, 256, (3, height, width), dtype=torch.uint8, generator=generator) for _ in range(count)]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def views_of(maker, seed: int = 1) -> list[torch.Tensor]:
    crops = [maker.crop(image, generator(seed)) for image in images()]
    return maker.finish(tuple(torch.stack(part) for part in zip(*crops, strict=True)), generator(seed))


@pytest.mark.parametrize("recipe", vantage.RECIPES, ids=lambda recipe: recipe.__name__)
def test_every_recipe_can_be_shown(recipe):
    """An image and every view of it, as colors."""
    views = recipe(32).views
    image = panels(views, views_of(views))
    assert len(image) >= views.count and len({column.heading for column in image}) == len(image)
    for column in image:
        assert column.images.shape[:2] == (3, 3) and 0 <= column.images.min() <= column.images.max() <= 1
    whole = picture(views, images(), side=64)
    assert whole.size == (4 + 68 * (1 + len(image)) + 10, 18 + 4 + 68 * 3)


def test_normalization_is_undone():
    """What is shown is the crop itself where nothing else is done to it."""
    views = Patches(8, 4)
    crops = tuple(torch.stack(part) for part in zip(*(views.crop(i, generator(1)) for i in images()), strict=True))
    for column, crop in zip(panels(views, views.finish(crops, generator(1))), crops, strict=True):
        assert_close(column.images, crop / 255, rtol=0, atol=1e-6)


def test_frequencies_jigsaws_and_channels_have_pictures_of_their_own():
    low, high = panels(frequency_views(32), views_of(frequency_views(32)))
    assert (low.heading, high.heading) == ("low", "high") and abs(float(high.images.mean()) - 0.5) < 0.02
    *_, jigsaw = panels(pirl_views(32), views_of(pirl_views(32)))
    assert jigsaw.heading == "jigsaw" and jigsaw.images.shape[-1] == 3 * 10  # nine patches of nine pixels, and lines
    patches = views_of(pirl_views(32))[-1]
    mean, std = (torch.tensor(v)[:, None, None] for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    assert_close(jigsaw.images[:, :, 10:19, 20:29], (patches[:, 5] * std + mean).clamp(0, 1), rtol=0, atol=1e-6)
    gray = panels(cmc_views(32), views_of(cmc_views(32)))
    assert [column.heading for column in gray] == ["view 0: channel 0", "view 1: channel 1", "view 1: channel 2"]
    assert all(torch.equal(column.images[:, 0], column.images[:, 2]) for column in gray)


@dataclass(frozen=True)
class Own:
    """A user's own view maker."""

    count: int = 1

    def crop(self, image, generator):
        return (image[:, :8, :8],)

    def finish(self, crops, generator):
        return [crops[0].float() - 1000]

    def batch(self, images, generator):
        return self.finish((images[:, :, :8, :8],), generator)

    def evaluation(self, view: int | None = None):
        return EvaluationView(8, 8, IMAGENET)


@dataclass(frozen=True)
class HalfBlack:
    """A user's own operation, which says nothing about sizes."""

    share: float = 0.5
    """Share of the rows that are hidden."""

    def draw(self, count: int, generator: torch.Generator) -> torch.Tensor:
        return torch.zeros(count, 0)

    def apply(self, images: torch.Tensor, parameters: torch.Tensor) -> torch.Tensor:
        images = images.clone()
        images[:, :, : round(images.shape[2] * self.share)] = 0
        return images


def test_custom_views_are_stretched():
    (column,) = panels(Own(), views_of(Own()))
    assert column.images.min() == 0 and column.images.max() == 1


def test_nothing_to_show_is_refused():
    for count, times in ((0, 1), (2, 0)):
        with pytest.raises(UserError, match="nothing to show"):
            picture(Own(), images(count), times)


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as file:
        return np.asarray(file)


def test_the_command_writes_the_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path, out = write_images(tmp_path / "images.npz"), tmp_path / "views.png"
    words = ["views", "show", "moco_v2", "--data", path, "--out", str(out), "--images", "2", "--size", "16"]
    assert main([*words, "--times", "1"]) == 0 and str(out) in capsys.readouterr().out
    plain = pixels(out)
    assert plain.shape == (22 + 132 * 2, 4 + 132 * 3 + 10, 3)
    whole = ["--set", "views.views.0.crop.scale=1,1", "--set", "views.views.0.crop.ratio=1,1"]
    assert main([*words, "--times", "1", *whole]) == 0
    assert not np.array_equal(pixels(out), plain), "a field of the views shows"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("views", "needs show, learn or statistics"),
        ("views shw moco_v2", "did you mean views show"),
        ("views show", "needs RECIPE"),
        ("views show moco_v9 --data X", "did you mean moco_v2"),
        ("views show moco_v2 --data X --out v.jpg", r"\.png"),
        ("views show moco_v2 --data X --out /dev/null/v.png", "cannot be created, since /dev/null is a file"),
        ("views show moco_v2", "--data"),
        (
            "views show moco_v2 --data X --views.views.0.crop.scale 1 1",
            r"did you mean --set views.views.0.crop.scale=1,1",
        ),
        ("views show moco_v2 --data X --size 32 --set epochs=3", "no field 'epochs'"),
        ("views show moco_v2 --data X --imags 3", "did you mean --images"),
    ],
)
def test_mistakes_are_reported(words: str, message: str, capsys: pytest.CaptureFixture[str]):
    assert main(words.split()) == 2
    assert re.search(message, capsys.readouterr().err)


@pytest.fixture
def own_run(tmp_path: Path) -> Path:
    """The folder of a run whose views of 16 pixels hide half of each image, by an operation of a user's own."""
    run = simclr(16)
    assert isinstance(run.views, Views)
    views = tuple(replace(view, operations=(*view.operations, HalfBlack())) for view in run.views.views)
    settings.write(replace(run, views=Views(views)), tmp_path / "own")
    return tmp_path / "own"


def test_a_run_is_shown_with_its_own_views_and_size(own_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    data, out = write_images(tmp_path / "images.npz"), tmp_path / "views.png"
    words = ["views", "show", str(own_run), "--data", data, "--out", str(out), "--images", "1", "--times", "1"]
    assert main(words) == 2 and "is not part of Vantage" in capsys.readouterr().err
    words += ["--import", __name__]
    assert main(words) == 0
    assert "px wide" not in capsys.readouterr().err  # its views have a size, which does not follow the images
    view = pixels(out)[22 : 22 + 128, 4 + 132 + 10 :][:, :128]
    blocks = view.reshape(16, 8, 16, 8, 3)
    assert (blocks == blocks[:, :1, :, :1]).all(), "each of 16 x 16 pixels is enlarged"
    assert len(np.unique(view[:64].reshape(-1, 3), axis=0)) == 1 < len(np.unique(view[64:].reshape(-1, 3), axis=0))
    assert main([*words, "--set", "operations.4.share=0"]) == 0
    assert len(np.unique(pixels(out)[22 : 22 + 64, 146 : 146 + 128].reshape(-1, 3), axis=0)) > 1


def test_the_views_of_a_run_are_made_smaller_where_they_mean_the_same(
    own_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    data, out = write_images(tmp_path / "images.npz"), tmp_path / "views.png"
    settings.write(simclr(16), tmp_path / "plain")
    words = ["--data", data, "--out", str(out), "--images", "1", "--import", __name__, "--size"]
    assert main(["views", "show", str(tmp_path / "plain"), *words, "8"]) == 0
    for run, size in ((tmp_path / "plain", "64"), (tmp_path / "plain", "0"), (own_run, "8")):
        assert main(["views", "show", str(run), *words, size]) == 2
        assert f"16 px wide, and cannot be made {size} px wide" in capsys.readouterr().err
    assert main(["views", "show", str(tmp_path / "plian"), *words[:-1]]) == 2
    assert f"did you mean {tmp_path / 'plain'}?" in capsys.readouterr().err


def test_help_names_the_fields(capsys: pytest.CaptureFixture[str]):
    assert main(["views", "show", "simclr", "--help"]) == 0
    output = capsys.readouterr().out
    assert "--set PATH=VALUE" in output and "--times" in output and "--optimizer" not in output
    assert main(["views", "--help"]) == 0 and "views show RECIPE" in " ".join(capsys.readouterr().out.split())
