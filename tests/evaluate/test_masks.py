"""Sets of masks for segmentation: what does not fit is refused or reported."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scenes import QUICK, RUN, SMALL, write_scenes
from tiny import cpu_work, images, saved_run

from vantage.data.sources.masked import open_masked, split_masked
from vantage.errors import DataError, UserError
from vantage.evaluate import evaluate
from vantage.evaluate.protocols.segmentation.feature_maps import Squares
from vantage.evaluate.protocols.segmentation.segmentation import Segmentation
from vantage.frozen.encoder import load, random_encoder


@pytest.mark.slow
def test_the_training_set_is_refused_as_test_set(tmp_path: Path) -> None:
    saved_run(tmp_path / "run", RUN)
    train = open_masked(write_scenes(tmp_path / "one", 6))
    with pytest.raises(UserError, match="test images are the training images"):
        evaluate(tmp_path / "run", QUICK, train, train, work=cpu_work(tmp_path))
    some = [train.subset(torch.tensor(rows)) for rows in ([0, 1, 2, 3], [2, 3], [3, 5], [4, 5])]
    with pytest.raises(UserError, match=r"all 2 test images are training images too, such as a/2\.jpg"):
        QUICK.task(some[0], some[1])
    assert [QUICK.task(some[0], test).test_split for test in some[2:]] == [
        "a set of its own, but 1 of its 2 images is a training image too, such as a/3.jpg",
        "a set of its own",
    ]
    with pytest.raises(UserError, match="other classes"):
        evaluate(tmp_path / "run", QUICK, train, train.with_classes(("a", "b")), work=cpu_work(tmp_path))
    with pytest.raises(UserError, match="needs images with masks"):
        evaluate(tmp_path / "run", QUICK, train, images(6, 0, classes=2), work=cpu_work(tmp_path))
    assert load(tmp_path / "run").digest()


def test_masks_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = write_scenes(tmp_path, 6)
    masks = tmp_path / "masks" / "a"
    encoder, work = random_encoder(RUN), cpu_work(tmp_path)
    Image.fromarray(np.zeros((5, 5), np.uint8)).save(masks / "2.png")
    with pytest.raises(DataError, match=r"mask of a/2.jpg is 5 x 5 pixels, but the image is 28 x 24"):
        QUICK(encoder, *split_masked(open_masked(path)), work)
    Image.fromarray(np.zeros((24, 28, 3), np.uint8)).save(masks / "2.png")
    with pytest.raises(DataError, match="this PNG holds RGB"):
        open_masked(path)
    Image.fromarray(np.full((24, 28), 7, np.uint8)).save(masks / "2.png")
    with pytest.raises(DataError, match="has the index 7, but there are 3 classes"):
        QUICK(encoder, *split_masked(open_masked(path, ("a", "b", "c"))), work)
    (masks / "2.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    with pytest.raises(DataError, match="not an intact PNG"):
        open_masked(path)
    (masks / "2.png").rename(masks / "other.png")
    with pytest.raises(DataError, match=r"there is no mask for 1 of 6 images \(a/2.jpg\)"):
        open_masked(path)
    (tmp_path / "images" / "a" / "2.jpg").unlink()
    with pytest.raises(DataError, match=r"there is no image for 1 mask \(a/other.png\): remove"):
        open_masked(path)


def test_test_masks_that_do_not_fit_are_refused_before_a_decoder_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_masked(write_scenes(tmp_path, 6), ("a", "b", "c"))
    train, test = source.subset(torch.tensor([0, 1, 2, 3])), source.subset(torch.tensor([4, 5]))
    encoder, work = random_encoder(SMALL), cpu_work(tmp_path)
    monkeypatch.setattr(Segmentation, "_train_decoder", lambda *_: pytest.fail("it was trained"))
    for mask, message in (((5, 5), "the image is 28 x 24"), ((24, 28), "no pixel of the 2 test images has a class")):
        for number in (4, 5):
            Image.fromarray(np.full(mask, 255, np.uint8)).save(tmp_path / "masks" / "a" / f"{number}.png")
        with pytest.raises(DataError, match=message):
            QUICK(encoder, train, test, work)


class OfOneSize(torch.nn.Module):
    """A network of a user's own for images of 32 pixels."""

    width = 3

    def maps(self, images: torch.Tensor) -> list[torch.Tensor]:
        assert images.shape[2:] == (32, 32), "images of 32 pixels only"
        return [images]

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.maps(images)[0].mean((2, 3))


def test_a_network_that_refuses_the_size_is_reported_before_images_are_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = replace(random_encoder(SMALL), backbone=OfOneSize(), name="mine")
    masks, work = split_masked(open_masked(write_scenes(tmp_path, 6))), cpu_work(tmp_path)
    assert replace(QUICK, size=0)(encoder, *masks, work).train_images == 5
    monkeypatch.setattr(Squares, "__init__", lambda *_: pytest.fail("images were decoded"))
    with pytest.raises(UserError, match=r"does not fit squares of 16 pixels \(images of 32 pixels only\): give an"):
        QUICK(encoder, *masks, work)


def test_one_class_is_refused(tmp_path: Path) -> None:
    path = write_scenes(tmp_path, 6)
    for file in (tmp_path / "masks" / "a").iterdir():
        Image.fromarray(np.zeros((24, 28), np.uint8)).save(file)
    with pytest.raises(DataError, match=r"show one class only \(0\)"):
        QUICK(random_encoder(RUN), *split_masked(open_masked(path)), cpu_work(tmp_path))
    for file in (tmp_path / "masks" / "a").iterdir():
        Image.fromarray(np.full((24, 28), 255, np.uint8)).save(file)
    with pytest.raises(DataError, match="no mask has a class"):
        open_masked(path)


def test_a_class_without_training_pixels_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = open_masked(write_scenes(tmp_path, 8), ("ground", "red", "green"))
    train, test = source.subset(torch.tensor([0, 2, 4])), source.subset(torch.tensor([1, 3, 6]))
    outcome = QUICK(random_encoder(SMALL), train, test, cpu_work(tmp_path))
    warning = "warning: no pixel of the training masks is of green: test pixels of that class count as wrong\n"
    assert capsys.readouterr().err == warning and outcome.details["IoU"]["green"] == 0.0


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_indices_of_few_bits_are_read_as_they_are(bits: int, tmp_path: Path) -> None:
    path = write_scenes(tmp_path, 2)
    indices = np.random.default_rng(0).integers(0, 2**bits, (24, 28)).astype(np.uint8)
    colored_mask = Image.new("P", (28, 24))
    colored_mask.putdata(indices.flatten().tolist())
    colored_mask.putpalette([value for number in range(256) for value in (number, 0, 0)])
    colored_mask.save(tmp_path / "masks" / "a" / "0.png", bits=bits)
    assert np.array_equal(open_masked(path, tuple("0123456789abcdef")).mask(0).numpy(), indices)


@pytest.mark.parametrize(
    "change", [{"epochs": 0}, {"batch_size": 1}, {"learning_rate": 0.0}, {"flip": 2.0}, {"size": -1}]
)
def test_invalid_settings_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(UserError, match="segmentation: "):
        Segmentation(**change)  # pyright: ignore[reportArgumentType]
