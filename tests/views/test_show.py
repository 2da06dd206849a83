"""Pictures of views, and the command that makes them."""

import re
from dataclasses import dataclass
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
from vantage.views import IMAGENET, EvaluationView, Patches, cmc_views, frequency_views, pirl_views
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


def test_help_names_the_fields(capsys: pytest.CaptureFixture[str]):
    assert main(["views", "show", "simclr", "--help"]) == 0
    output = capsys.readouterr().out
    assert "--set PATH=VALUE" in output and "--times" in output and "--optimizer" not in output
    assert main(["views", "--help"]) == 0 and "views show RECIPE" in " ".join(capsys.readouterr().out.split())
