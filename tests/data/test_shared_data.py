"""The real image sets open, count and decode as their descriptions say."""

import io
import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from vantage.data import BatchOrder, ResidentImages, SourceSubset, decode_all, labels_of, open_source, readable, scan
from vantage.errors import DataError


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize(
    "path, count, classes, shape",
    [
        pytest.param("cifar10-jpg.tar.gz#train", 50_000, 10, (3, 32, 32), marks=pytest.mark.slow),
        pytest.param("cifar10-jpg.tar.gz#test", 10_000, 10, (3, 32, 32), marks=pytest.mark.slow),
        pytest.param("tiny-imagenet-50.tar.gz#train", 25_000, 50, (3, 64, 64), marks=pytest.mark.slow),
        pytest.param("tiny-imagenet-50.tar.gz#val", 2_500, 50, (3, 64, 64), marks=pytest.mark.slow),
        ("flowers5-128.tar.gz", 4_317, 5, (3, 128, 128)),
        ("imagenet-sample-200.tar", 200, 0, None),
        ("coco-train-100.tar.gz#train2017", 100, 0, None),
        pytest.param("mnist.npz#train", 60_000, 10, (3, 28, 28), marks=pytest.mark.slow),
        ("mnist.npz#test", 10_000, 10, (3, 28, 28)),
    ],
)
def test_sets(
    path: str, count: int, classes: int, shape: tuple[int, ...] | None, shared_data: Path, cache: Path
) -> None:
    source = open_source(f"{shared_data}/{path}", cache=cache)
    assert len(source) == count and len(source.classes) == classes
    for number in itertools.chain(range(3), range(count - 3, count)):
        assert source.image(number).shape == shape if shape else source.image(number).shape[0] == 3
    counts = torch.bincount(labels_of(source) + 1, minlength=classes + 1)
    assert int(counts[0]) == (0 if classes else count) and int(counts.sum()) == count
    assert not counts[1:].numel() or int(counts[1:].min()) >= count // classes // 2


@pytest.mark.slow
def test_parts_of_a_set_have_the_same_classes(shared_data: Path, cache: Path) -> None:
    for name, parts in (("cifar10-jpg.tar.gz", ("train", "test")), ("tiny-imagenet-50.tar.gz", ("train", "val"))):
        first, second = (open_source(f"{shared_data}/{name}#{part}", cache=cache) for part in parts)
        assert first.classes == second.classes and first.fingerprint() != second.fingerprint()


def test_mnist_needs_a_part(shared_data: Path, cache: Path) -> None:
    with pytest.raises(DataError, match="mnist.npz#test, mnist.npz#train"):
        open_source(shared_data / "mnist.npz", cache=cache)
    digits = open_source(f"{shared_data}/mnist.npz#train", cache=cache)
    assert [digits.label(number) for number in range(10)] == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]


def test_photographs_all_decode_as_pillow_decodes_them(shared_data: Path, cache: Path) -> None:
    source = open_source(shared_data / "imagenet-sample-200.tar", cache=cache)
    assert readable(source, scan(source, cache=cache), "stop") is source
    for number in range(0, 200, 20):
        with Image.open(io.BytesIO(source.file_bytes(number))) as picture:  # type: ignore[attr-defined]
            expected = torch.from_numpy(np.array(picture.convert("RGB"))).permute(2, 0, 1)
        assert (source.image(number).int() - expected.int()).abs().max() <= 4


@pytest.mark.slow
def test_lossless_and_jpeg_forms_of_cifar_agree(shared_data: Path, cache: Path, tmp_path: Path) -> None:
    arrays = np.load(shared_data / "cifar10-lossless-4k.npz", allow_pickle=False)
    mosaic = np.asarray(Image.open(io.BytesIO(arrays["webp"].tobytes())).convert("RGB"))
    tiles = mosaic.reshape(63, 32, 64, 32, 3).transpose(0, 2, 1, 3, 4).reshape(-1, 32, 32, 3)[:4000]
    np.savez(tmp_path / "cifar.npz", images=tiles, labels=arrays["y"])
    lossless = open_source(tmp_path / "cifar.npz", cache=cache)
    jpeg = open_source(f"{shared_data}/cifar10-jpg.tar.gz#train", cache=cache)
    number_of = {
        jpeg.name(number)[:24]: number for number in range(len(jpeg))
    }  # the names in the file are cut to 24 letters
    subset = SourceSubset(jpeg, [number_of[str(name)[:24]] for name in arrays["jpg"][:300]])
    errors = []
    for number in range(300):
        assert subset.label(number) == lossless.label(number)
        errors.append((subset.image(number).float() - lossless.image(number).float()).square().mean())
    assert 28 < 10 * torch.log10(255**2 / torch.stack(errors)).mean() < 33  # dB; 30.5 over all 4,000


@pytest.mark.slow
def test_a_small_set_lives_in_memory(shared_data: Path, cache: Path) -> None:
    source = SourceSubset(open_source(f"{shared_data}/tiny-imagenet-50.tar.gz#val", cache=cache), range(500))
    pixels = decode_all(source, 32)
    assert pixels.shape == (500, 3, 32, 32)
    batch = next(ResidentImages(source, BatchOrder(64)).batches(0))
    assert torch.equal(batch.pixels[0][5], source.image(int(batch.image[5])))
