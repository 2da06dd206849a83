"""Statistics of a user's images, against NumPy and scikit-image, and as a command."""

from pathlib import Path

import numpy as np
import pytest
import skimage.color
import torch
from torch import Tensor

from vantage.cli.program import main
from vantage.data import open_source
from vantage.errors import UserError
from vantage.views import HSV, RGB, XYZ, YIQ, YUV, Lab, YCbCr, YDbDr, measured_statistics


class Images:
    """Images in memory, of any sizes."""

    classes: tuple[str, ...] = ()

    def __init__(self, images: list[Tensor]) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def image(self, number: int) -> Tensor:
        return self.images[number]

    def label(self, number: int) -> int | None:
        return None

    def name(self, number: int) -> str:
        return f"row {number}"

    def fingerprint(self) -> str:
        return "these"


def pictures(*shapes: tuple[int, int]) -> Images:
    chance = torch.Generator().manual_seed(0)
    return Images([torch.randint(0, 256, (3, *shape), dtype=torch.uint8, generator=chance) for shape in shapes])


@pytest.mark.parametrize(
    ("space", "theirs"),
    [
        (RGB(), lambda image: image),
        (Lab(), skimage.color.rgb2lab),
        (YCbCr(), skimage.color.rgb2ycbcr),
        (YDbDr(), skimage.color.rgb2ydbdr),
        (YIQ(), skimage.color.rgb2yiq),
        (YUV(), skimage.color.rgb2yuv),
        (XYZ(), skimage.color.rgb2xyz),
        (HSV(), skimage.color.rgb2hsv),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_space_as_numpy_has_it(space, theirs) -> None:
    source = pictures((9, 7), (9, 7), (9, 7))
    pixels = np.concatenate([theirs(image.permute(1, 2, 0).numpy() / 255).reshape(-1, 3) for image in source.images])
    statistics = measured_statistics(source, space)
    span = np.abs(pixels).max()
    np.testing.assert_allclose(statistics.mean, pixels.mean(0), atol=2e-5 * span)
    np.testing.assert_allclose(statistics.std, pixels.std(0), atol=2e-5 * span)


def test_every_image_counts_equally_whatever_its_size() -> None:
    small, large = torch.zeros(3, 2, 2, dtype=torch.uint8), torch.full((3, 40, 30), 255, dtype=torch.uint8)
    statistics = measured_statistics(Images([small, large]))
    assert statistics.mean == pytest.approx((0.5,) * 3) and statistics.std == pytest.approx((0.5,) * 3)


def test_images_are_spread_over_the_set_and_counted() -> None:
    source, counts = pictures(*[(4, 4)] * 10), []
    some = measured_statistics(source, images=2, progress=counts.append)
    assert counts == [1, 2] and some == measured_statistics(Images([source.images[0], source.images[5]]))
    assert measured_statistics(source, images=0) == measured_statistics(source, images=99)


def test_constant_channels_are_refused() -> None:
    gray = Images([torch.arange(16, dtype=torch.uint8).view(1, 4, 4).expand(3, -1, -1)])
    with pytest.raises(UserError, match="channel 0 of HSV is .* in every pixel of 1 images"):
        measured_statistics(gray, HSV())
    with pytest.raises(UserError, match="a set of images"):
        measured_statistics(Images([]))


def test_normalizing_with_them_standardizes(tmp_path: Path) -> None:
    source = pictures((8, 8), (8, 8))
    normalize = measured_statistics(source, YDbDr()).normalize()
    images = YDbDr().convert(torch.stack(source.images) / 255)
    outputs = normalize.apply(images, normalize.draw(2, torch.Generator()))
    assert outputs.mean((0, 2, 3)).abs().max() < 1e-5 and (outputs.std((0, 2, 3), correction=0) - 1).abs().max() < 1e-5


def test_the_command_prints_the_options_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    path = str(tmp_path / "images.npz")
    np.savez(path, images=torch.stack([image.permute(1, 2, 0) for image in pictures(*[(8, 8)] * 6).images]).numpy())
    expected = measured_statistics(open_source(path), Lab())
    assert main(["views", "statistics", "cmc", "--data", path]) == 0
    output = capsys.readouterr().out
    words = " ".join(f"{value:.4f}" for value in expected.mean)
    assert (
        "color space: Lab" in output
        and f"--set views.view.operations.2.mean={words.replace(chr(32), chr(44))}" in output
    )
    assert "space.statistics" not in output
    assert main(["views", "statistics", "moco_v2", "--data", path]) == 0
    *_, mean, std, options = capsys.readouterr().out.splitlines()
    mean, std = (line.split(": ")[1].replace(" ", ",") for line in (mean, std))
    assert options == f"--set mean={mean} --set std={std}", "a plan may have more views than the recipe"
    assert main(["views", "statistics", "--data", path, "--space", "HSV", "--images", "2"]) == 0
    assert "color space: HSV" in capsys.readouterr().out


def test_a_space_that_the_recipe_does_not_have_is_refused(tmp_path: Path, capsys) -> None:
    assert main(["views", "statistics", "moco_v2", "--data", str(tmp_path), "--space", "Lab"]) == 2
    assert "--space Lab, but the views of moco_v2 are in RGB" in capsys.readouterr().err
    assert main(["views", "statistic", "--data", str(tmp_path)]) == 2
    assert "did you mean" in capsys.readouterr().err.lower()


@pytest.mark.slow
def test_the_constants_of_spaces_are_near_tiny_imagenets(shared_data: Path) -> None:
    source = open_source(str(shared_data / "tiny-imagenet-50.tar.gz"))
    for space in (YIQ(), YUV(), XYZ(), HSV()):
        statistics = measured_statistics(source, space, images=1_000)
        assert statistics.mean == pytest.approx(space.statistics.mean, abs=0.02)
        assert statistics.std == pytest.approx(space.statistics.std, abs=0.02)
