"""Whole views: the contract of every operation, both routes, generators, sizes, devices."""

from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pretend_gpu import Pretend, Pretended, values

from vantage.errors import UserError
from vantage.views import (
    IMAGENET,
    Augmentation,
    ColorJitter,
    GaussianBlur,
    Grayscale,
    HorizontalFlip,
    Lighting,
    Operation,
    RandomResizedCrop,
    ViewMaker,
    Views,
    interclr_views,
    moco_v2_views,
    npid_views,
    pycontrast_a_views,
    simclr_views,
)
from vantage.views.operations import perform
from vantage.views.operations.operation import slice_rows

OPERATIONS = [
    RandomResizedCrop(16),
    HorizontalFlip(),
    ColorJitter(0.8, 0.8, 0.8, 0.2, 0.8),
    Grayscale(0.4),
    GaussianBlur(),
    Lighting(),
    IMAGENET.normalize(),
]
RECIPES = [npid_views, pycontrast_a_views, moco_v2_views, interclr_views, simclr_views]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pictures(count: int, height: int, width: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 256, (count, 3, height, width), dtype=torch.uint8, generator=generator(seed))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: type(operation).__name__)
class TestOperations:
    def test_satisfies_the_protocol(self, operation) -> None:
        assert isinstance(operation, Operation)
        assert slice_rows(operation.draw(5, generator()), 1, 3) is not None

    def test_draws_one_row_per_image_on_the_cpu(self, operation) -> None:
        draws = operation.draw(5, generator())
        for field in draws if isinstance(draws, tuple) else (draws,):
            assert len(field) == 5 and field.device.type == "cpu"

    def test_changing_one_image_leaves_the_others_bit_equal(self, operation) -> None:
        images = torch.rand(12, 3, 20, 20)
        other = images.clone()
        other[5] = torch.rand(3, 20, 20)
        draws = operation.draw(12, generator(1))
        before, after = operation.apply(images, draws), operation.apply(other, draws)
        keep = torch.arange(12) != 5
        assert torch.equal(before[keep], after[keep]) and not torch.equal(before[5], after[5])

    def test_a_row_means_the_same_alone_as_in_a_batch(self, operation) -> None:
        images = torch.rand(6, 3, 20, 20)
        draws = operation.draw(6, generator(2))
        alone = torch.cat([operation.apply(images[i : i + 1], slice_rows(draws, i, i + 1)) for i in range(6)])
        torch.testing.assert_close(operation.apply(images, draws), alone, atol=1e-5, rtol=1e-5)

    def test_does_not_change_its_input(self, operation) -> None:
        images = torch.rand(6, 3, 20, 20)
        before = images.clone()
        operation.apply(images, operation.draw(6, generator(3)))
        assert torch.equal(images, before)

    def test_equal_generators_draw_equally(self, operation) -> None:
        first, second = operation.draw(7, generator(4)), operation.draw(7, generator(4))
        for ours, theirs in zip(first, second, strict=True):
            assert torch.equal(ours, theirs)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
@pytest.mark.parametrize("size", [32, 64])
def test_views_have_the_right_shape_type_and_range(recipe, size: int) -> None:
    views = recipe(size, count=2)
    assert isinstance(views, ViewMaker)
    batch = views.batch(pictures(9, size + 8, size), generator())
    assert len(batch) == views.count == 2 and not torch.equal(batch[0], batch[1])
    for view in batch:
        assert view.shape == (9, 3, size, size) and view.dtype == torch.float32 and not view.requires_grad
        pixels = view * torch.tensor(IMAGENET.std).view(3, 1, 1) + torch.tensor(IMAGENET.mean).view(3, 1, 1)
        assert pixels.min() >= -1e-5 and pixels.max() <= 1 + 1e-5


@given(height=st.integers(1, 40), width=st.integers(1, 40), size=st.integers(1, 40), count=st.integers(0, 5))
def test_any_image_makes_a_view(height: int, width: int, size: int, count: int) -> None:
    operations = (*OPERATIONS[1:],)
    view = Augmentation(RandomResizedCrop(size), operations)
    images = pictures(count, height, width)
    batch = view.batch(images, generator())
    assert batch.shape == (count, 3, size, size) and batch.isfinite().all()
    crops = [view.crop_one(image, generator(i)) for i, image in enumerate(images)]
    if crops:
        assert view.finish(torch.stack(crops), generator()).shape == batch.shape


def test_equal_generators_make_equal_views_and_others_do_not() -> None:
    images, views = pictures(40, 32, 32), simclr_views(32)
    first, again, other = (torch.stack(views.batch(images, generator(seed))) for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_the_size_of_a_piece_changes_nothing(monkeypatch) -> None:
    images, views = pictures(40, 32, 32), moco_v2_views(48)
    whole = torch.stack(views.batch(images, generator(1)))
    monkeypatch.setattr(perform, "PIECE", 4 * 3 * 32 * 32 * 7)
    torch.testing.assert_close(torch.stack(views.batch(images, generator(1))), whole, atol=1e-5, rtol=0)


def test_pixels_become_floats_once_for_all_views_of_a_batch(monkeypatch) -> None:
    images, views, count = pictures(40, 32, 32), Views((*simclr_views(32).views, *moco_v2_views(16).views)), 0
    floats = perform._floats

    def counted(pixels: torch.Tensor) -> torch.Tensor:
        nonlocal count
        count += len(pixels)
        return floats(pixels)

    monkeypatch.setattr(perform, "_floats", counted)
    monkeypatch.setattr(perform, "PIECE", 4 * 3 * 32 * 32 * 7)
    random = generator(1)
    apart = [view.batch(images, random) for view in views.views]
    assert count == 40 * 4
    together = views.batch(images, generator(1))
    assert count == 40 * 5
    for one, other in zip(apart, together, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("count", "most"), [(1, 4), (5, 3), (12, 20), (29, 4)])
def test_small_crops_of_several_pieces_are_put_together(count: int, most: int, monkeypatch) -> None:
    """Pieces of one image; as many of its crops as fit, if these are at least four, are changed at once."""
    images, view = pictures(count, 48, 48), simclr_views(16).views[0]
    expected, sizes = torch.cat([view.crop.apply(images / 255, view.crop.draw(count, generator()))]), list[int]()
    monkeypatch.setattr(perform, "PIECE", 4 * 3 * 16 * 16 * most)
    watched = Watched(sizes)
    crops = replace(view, operations=(watched,)).batch(images, generator())
    torch.testing.assert_close(crops, expected, atol=1e-5, rtol=0)
    together = most if most >= 4 else 1
    assert sizes == [together] * (count // together) + ([count % together] if count % together else [])


@dataclass(frozen=True)
class Watched:
    """Notes how many images it sees at once."""

    sizes: list[int]

    def draw(self, count: int, generator: torch.Generator) -> torch.Tensor:
        return torch.arange(count)

    def apply(self, images: torch.Tensor, parameters: torch.Tensor) -> torch.Tensor:
        assert parameters[0] == sum(self.sizes)
        self.sizes.append(len(images))
        return images


def test_views_made_under_autocast_keep_their_precision() -> None:
    images, views = pictures(8, 32, 32), simclr_views(32)
    expected = torch.stack(views.batch(images, generator(1)))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(torch.stack(views.batch(images, generator(1))), expected)


def test_crop_then_finish_is_the_batch_route_to_a_gray_level() -> None:
    view = Augmentation(RandomResizedCrop(24), (HorizontalFlip(), IMAGENET.normalize()))
    images = pictures(6, 50, 40)
    source, crop = generator(3), view.crop
    draws = crop.draw(6, source)
    batch = view.batch(images, generator(3))
    boxes = torch.stack(crop.boxes(draws, 50, 40), 1).tolist()
    from torchvision.transforms.v2.functional import resized_crop

    crops = torch.stack([resized_crop(i, *box, [24, 24], antialias=True) for i, box in zip(images, boxes, strict=True)])
    views = view.finish(crops, source)  # the generator stands where the batch route's crop left it
    assert (views - batch).abs().max() <= 1.05 / 255 / min(IMAGENET.std)


def test_crops_of_views_are_drawn_one_after_the_other() -> None:
    views = moco_v2_views(48, count=3)
    crops = views.crop(pictures(1, 100, 80)[0], generator(1))
    assert len(crops) == 3 and not torch.equal(crops[0], crops[1])
    outputs = views.finish(tuple(crop[None] for crop in crops), generator(2))
    assert [view.shape for view in outputs] == [(1, 3, 48, 48)] * 3


def test_on_a_device_equal_views_are_made_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same views as on the CPU, in fewer calls; another operation, another size or too many pixels part them."""
    flip = Augmentation(RandomResizedCrop(24), (HorizontalFlip(), IMAGENET.normalize()))
    other, smaller = replace(flip, operations=(IMAGENET.normalize(),)), flip.at_side(16)
    views, images = Views((flip, other, flip, smaller, flip)), pictures(6, 50, 40)
    expected = views.batch(images, generator(1))
    for most, groups in ((1 << 28, [[0, 2, 4], [1], [3]]), (2 * 4 * images.numel(), [[0, 2], [4], [1], [3]])):
        monkeypatch.setattr(perform, "TOGETHER", most)
        operations = [(view.crop, *view.operations) for view in views.views]
        assert list(perform._together([images] * 5, operations)) == groups
        with Pretend():
            made = values(views.batch(Pretended(images), generator(1)))
        for view, same in zip(made, expected, strict=True):
            torch.testing.assert_close(view, same, atol=1e-5, rtol=0)


def test_wrong_numbers_of_views_are_refused() -> None:
    with pytest.raises(UserError, match="at least one"):
        Views(())
    with pytest.raises(UserError, match="2 views"):
        moco_v2_views(32).finish((pictures(2, 32, 32),), generator())


@pytest.mark.gpu
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
@pytest.mark.parametrize("size", [32, 224])
def test_gpu_and_cpu_make_the_same_views(recipe, size: int) -> None:
    images, views = pictures(32, size, size), recipe(size)
    cpu = torch.stack(views.batch(images, generator(1)))
    gpu = torch.stack(views.batch(images.cuda(), generator(1)))
    torch.testing.assert_close(gpu.cpu(), cpu, atol=1e-3, rtol=0)  # a ninth of a step of 8 bits
