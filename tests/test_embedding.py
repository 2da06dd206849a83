"""Features in memory: in order, of the deterministic view, cached by what they are of."""

import threading
from pathlib import Path

import pytest
import torch
from counting import Counting
from tiny import cpu_work, images, tiny_run
from torch import Tensor

from vantage.encoding import Work, in_threads
from vantage.errors import UnreadableImage, UserError
from vantage.frozen.encoder import random_encoder
from vantage.frozen.features import Features, embed


def test_features_are_the_backbone_s_of_the_view(tmp_path: Path) -> None:
    encoder, source = random_encoder(tiny_run()), images(37, seed=0)
    embedding = embed(encoder, source, cpu_work(tmp_path))
    for number in range(37):
        view = encoder.view.batch(source.image(number)[None])
        torch.testing.assert_close(embedding.vector[number], encoder.backbone(view)[0], rtol=1e-5, atol=1e-5)
    assert embedding.label.tolist() == [number % 3 for number in range(37)]
    assert list(embedding.name) == [f"row {number}" for number in range(37)]


def test_features_are_printed_in_a_line() -> None:
    """They printed every number and the name of every image."""
    features = Features(torch.zeros(1_200, 16), torch.zeros(1_200, dtype=torch.int64), ["a.jpg"] * 1_200)
    assert repr(features) == "Features(vector: 1,200 × 16, label, name)"


def test_images_of_any_size_are_brought_to_the_view(tmp_path: Path) -> None:
    embedding = embed(random_encoder(tiny_run()), images(5, seed=0, size=50), cpu_work(tmp_path))
    assert embedding.vector.shape == (5, 12) and embedding.vector.isfinite().all()


def test_an_unreadable_image_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableImage, match="row 21"):
        embed(random_encoder(tiny_run()), Counting(bad=21), cpu_work(tmp_path))


def test_few_batches_are_decoded_ahead() -> None:
    reads, lock = [0], threading.Lock()

    def make(number: int) -> Tensor:
        with lock:
            reads[0] += 1
        return torch.tensor(number)

    parts = in_threads(make, iter([range(first, first + 10) for first in range(0, 1000, 10)]), workers=4)
    assert next(parts).tolist() == list(range(10)) and reads[0] <= 40
    assert torch.cat(list(parts)).tolist() == list(range(10, 1000))


def test_auto_is_a_device() -> None:
    assert Work().resolved_device().type in ("cpu", "cuda", "mps", "xpu")


def test_a_device_that_is_not_here_and_an_empty_batch_are_refused() -> None:
    for device in ("foo", "cuda:99"):
        with pytest.raises(UserError, match=f"there is no .*'{device}'"):
            Work(device=device).resolved_device()
    with pytest.raises(UserError, match="batch_size is 0"):
        Work(batch_size=0)
