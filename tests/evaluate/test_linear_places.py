"""The protocol for Places205: its crops against torchvision's own, and how it differs from that for ImageNet."""

from pathlib import Path

import pytest
import torch
from tiny import cpu_work, images
from tiny_maps import mapped_run
from torchvision.transforms.v2 import functional

from vantage.cli import main
from vantage.errors import UserError
from vantage.evaluate import LinearMulti, LinearPlaces
from vantage.evaluate.protocols.linear import multi as linear_multi
from vantage.evaluate.protocols.linear.plan import LinearPlan, TrainingView
from vantage.frozen.encoder import random_encoder, raw_pixels
from vantage.views import ColorJitter, HorizontalFlip, Lighting
from vantage.views.augmentation import Augmentation
from vantage.views.operations.crops import RandomResizedCrop, SquareCrop


def generator_of(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("shape", [(30, 41), (41, 30), (64, 64), (12, 19), (33, 97)])
def test_crops_are_those_of_torchvision(shape: tuple[int, int]) -> None:
    crop = SquareCrop(28, 32)
    whole = (torch.rand(6, 3, *shape, generator=generator_of(0)) * 255).to(torch.uint8)
    corners = crop.draw(6, generator_of(1))

    def expected(image: torch.Tensor, row: int, column: int) -> torch.Tensor:
        middle = functional.center_crop(functional.resize(image, [32], antialias=True), [32, 32])
        return functional.crop(middle, row, column, 28, 28)

    crops = crop.apply(whole.float() / 255, corners)
    for image, one, (row, column) in zip(whole, crops, corners.tolist(), strict=True):
        torch.testing.assert_close(one, expected(image.float() / 255, row, column), rtol=0, atol=2e-6)
    for number, image in enumerate(whole):
        (row, column), alone = (
            crop.draw(1, generator_of(number))[0].tolist(),
            crop.crop_one(image, generator_of(number)),
        )
        assert torch.equal(alone, expected(image, row, column)) and alone.shape == (3, 28, 28)


def test_every_position_is_equally_likely() -> None:
    corners = SquareCrop(6, 8).draw(9000, generator_of(0))
    count = torch.zeros(3, 3).index_put_((corners[:, 0], corners[:, 1]), torch.ones(9000), accumulate=True)
    assert corners.min() == 0 and corners.max() == 2 and ((count / 1000 - 1).abs() < 0.12).all()
    assert (SquareCrop(8, 8).draw(5, generator_of(0)) == 0).all()


def test_batched_and_single_crops_agree() -> None:
    """Crops of whole images on the device and crops made during decoding differ only by rounding to gray levels."""
    view = Augmentation(SquareCrop(28, 32), ())
    image = images(1, 0, size=48).image(0)
    crop_of_image = view.finish(view.crop_one(image, generator_of(3))[None], generator_of(0))
    torch.testing.assert_close(view.batch(image[None], generator_of(3)), crop_of_image, rtol=0, atol=1.01 / 255)
    assert isinstance(view, TrainingView)


def plan_of(protocol: LinearMulti | LinearPlaces, monkeypatch: pytest.MonkeyPatch, folder: Path) -> LinearPlan:
    plans: list[LinearPlan] = []
    plain = linear_multi.train_and_guess

    def record(plan: LinearPlan, *rest):
        plans.append(plan)
        return plain(plan, *rest)

    monkeypatch.setattr(linear_multi, "train_and_guess", record)
    protocol(random_encoder(mapped_run()), images(24, 0), images(9, 1), cpu_work(folder))
    monkeypatch.setattr(linear_multi, "train_and_guess", plain)
    return plans[0]


def test_only_schedule_and_views_differ_from_the_protocol_for_imagenet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plan_of_places, imagenet = (plan_of(one, monkeypatch, tmp_path) for one in (LinearPlaces(), LinearMulti(epochs=1)))
    assert (
        plan_of_places.epochs,
        plan_of_places.milestones,
        plan_of_places.batch_size,
        plan_of_places.learning_rates,
    ) == (
        28,
        (7, 14, 21),
        256,
        (0.01,),
    )
    assert (plan_of_places.decay, plan_of_places.descent, plan_of_places.start) == (
        0.1,
        imagenet.descent,
        imagenet.start,
    )
    assert (plan_of_places.descent.momentum, plan_of_places.descent.nesterov, plan_of_places.descent.weight_decay) == (
        0.9,
        True,
        1e-4,
    )
    assert isinstance(plan_of_places.view, Augmentation) and isinstance(imagenet.view, Augmentation)
    assert plan_of_places.view.crop == SquareCrop(32, 37) and isinstance(imagenet.view.crop, RandomResizedCrop)
    flip, jitter, lighting, *rest = imagenet.view.operations
    assert (flip, jitter, lighting) == (HorizontalFlip(0.5), ColorJitter(0.4, 0.4, 0.4, 0.0), Lighting(0.1))
    assert plan_of_places.view.operations == (flip, *rest)
    assert round(224 / LinearPlaces().crop) == 256


def test_raw_pixels_are_evaluated_too(tmp_path: Path) -> None:
    outcome = LinearPlaces(epochs=2)(raw_pixels(mapped_run()), images(24, 0), images(9, 1), cpu_work(tmp_path))
    assert "SquareCrop(size=32, resize=37)" in outcome.how["training_view"] and 0 <= outcome.measures["top-1"] <= 100


@pytest.mark.parametrize("crop", [0.0, -1.0, 1.1, float("nan")])
def test_crops_larger_than_their_square_are_refused(crop: float) -> None:
    with pytest.raises(UserError, match="crop is .* give a share above 0 and up to 1"):
        LinearPlaces(crop=crop)


def test_the_command_line_knows_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "linear-places", "--help"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "--epochs N" in output and "28" in output and "224 of 256 pixels" in output
