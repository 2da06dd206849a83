"""Before an evaluation, the network sees one real image; a misfit is an error in a sentence, and nothing is written."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny import cpu_work, images, saved_run, tiny_run
from torch import Tensor, nn

from vantage.data.sources.subset import SourceSubset
from vantage.errors import UnreadableImage, UserError
from vantage.evaluate import KNN, evaluate
from vantage.evaluate.try_encoder import try_encoder
from vantage.frozen.encoder import FrozenEncoder, load, raw_pixels


@pytest.fixture
def encoder(tmp_path: Path) -> FrozenEncoder:
    saved_run(tmp_path / "run", tiny_run())
    return load(tmp_path / "run")


class OneSize(nn.Module):
    """A network that takes images of one size only, as many transformers do."""

    width = 6

    def forward(self, images: Tensor) -> Tensor:
        if images.shape[-1] != 224:
            raise ValueError(f"input height {images.shape[-1]} does not match the model's 224")
        return images.flatten(1)[:, :6]


class Maps(nn.Module):
    """A network that forgot to pool."""

    width = 3

    def forward(self, images: Tensor) -> Tensor:
        return images


class FirstDamaged(SourceSubset):
    """Images of which the first cannot be read."""

    damaged = range(1)

    def image(self, number: int) -> Tensor:
        if number in self.damaged:
            raise UnreadableImage(f"{number}.png", "damaged")
        return super().image(number)


class AllDamaged(FirstDamaged):
    """Images of which none can be read."""

    damaged = range(100)


def test_a_network_of_another_size_is_refused_before_any_work(encoder: FrozenEncoder, tmp_path: Path) -> None:
    side = encoder.view.size
    misfit = replace(encoder, backbone=OneSize(), name="mine")
    with pytest.raises(UserError, match=rf"mine does not fit views of 3 channels and {side} x {side} pixels: input"):
        evaluate(misfit, KNN(5), images(60, 0), images(30, 1), work=cpu_work(tmp_path / "cache"), out=tmp_path / "out")
    assert not (tmp_path / "cache").exists() and not (tmp_path / "out").exists()


def test_maps_are_no_features(encoder: FrozenEncoder) -> None:
    with pytest.raises(UserError, match="moco_v2"):  # by its shape, or by the check of annotations in these tests
        try_encoder(replace(encoder, backbone=Maps()), images(4, 0))


def test_encoders_that_fit_are_left_as_they_were(encoder: FrozenEncoder) -> None:
    encoder.backbone.train()
    before = {name: value.clone() for name, value in encoder.backbone.state_dict().items()}
    try_encoder(encoder, images(4, 0))
    assert encoder.backbone.training
    assert all(torch.equal(value, before[name]) for name, value in encoder.backbone.state_dict().items())
    try_encoder(raw_pixels(encoder.run), images(4, 0))


def test_damaged_images_are_passed_over(encoder: FrozenEncoder) -> None:
    misfit = replace(encoder, backbone=OneSize())
    with pytest.raises(UserError, match="does not fit"):
        try_encoder(misfit, FirstDamaged(images(4, 0), range(4)))
    try_encoder(misfit, AllDamaged(images(4, 0), range(4)))
