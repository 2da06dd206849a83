"""Two patches of one image at a fixed distance."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from small_recipes import TwoLayers

from vantage.branch import Branch
from vantage.encoders import Encoder, LinearHead, Shared
from vantage.errors import UserError
from vantage.estimators import InfoNCE
from vantage.learner import Learner
from vantage.memory import Bank, InBatch, Queue
from vantage.positives import OtherViews, Remembered
from vantage.views import Patches


def generator_of(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def where(height: int = 20, width: int = 30) -> torch.Tensor:
    """An image whose pixels show their row and column."""
    down, across = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return torch.stack((down, across, torch.zeros_like(down))).to(torch.uint8)


@given(size=st.integers(1, 8), distance=st.integers(0, 12), seed=st.integers(0, 99))
def test_28_the_offset_is_exact(size: int, distance: int, seed: int):
    first, second = Patches(size, distance, ()).crop(where(), generator_of(seed))
    assert first.shape == second.shape == (3, size, size)
    assert torch.equal(second[:2].int() - first[:2].int(), torch.full((2, size, size), distance, dtype=torch.int32))
    assert (first[0, :, 0].diff() == 1).all() and (first[1, 0].diff() == 1).all()
    assert torch.equal(first, second) == (distance == 0)


def test_28_near_patches_overlap():
    first, second = Patches(6, 2, ()).crop(where(), generator_of(0))
    assert torch.equal(first[:, 2:, 2:], second[:, :-2, :-2])


@pytest.mark.slow
def test_every_place_is_as_likely():
    generator = generator_of(0)
    rows = [Patches(6, 10, ()).crop(where(), generator)[0][:2, 0, 0].tolist() for _ in range(5_500)]
    count = np.zeros((5, 15))
    for down, across in rows:
        count[down, across] += 1
    assert chisquare(count.flatten()).pvalue > 1e-3


def test_batches_and_single_images_are_cut_alike():
    image, views = where(), Patches(6, 4)
    generator = generator_of(5)
    alone = [views.crop(image, generator) for _ in range(3)]
    joint = tuple(torch.stack(part) for part in zip(*alone, strict=True))
    batch, expected = views.batch(image.expand(3, -1, -1, -1), generator_of(5)), views.finish(joint, generator_of(5))
    assert all(torch.equal(one, other) for one, other in zip(batch, expected, strict=True)) and views.count == 2


def test_images_that_are_too_small_are_refused():
    with pytest.raises(UserError, match="need images of 26 px, found a side of 20 px"):
        Patches(6, 20).crop(where(), generator_of(0))
    with pytest.raises(UserError, match="two batches"):
        Patches(6, 2).finish((torch.zeros(1, 3, 6, 6, dtype=torch.uint8),), generator_of(0))
    for wrong in ((0, 3), (3, -1)):
        with pytest.raises(UserError, match="at least"):
            Patches(*wrong)


@pytest.mark.parametrize("memory", [InBatch(), Queue(24), Bank(0.5)], ids=lambda memory: type(memory).__name__)
def test_patches_train_with_a_shared_encoder_and_any_memory(memory: Any):
    """In the batch or with a queue, and with the bank of CMC: each patch asks for what is kept of the other."""
    positives = Remembered() if isinstance(memory, Bank) else OtherViews()
    keys = () if isinstance(memory, Bank) else (1,)
    ask = Branch(memory, positives, (), InfoNCE(0.1), keys=keys, pool=(1,))
    answer = replace(ask, query=1, keys=keys and (0,), pool=(0,))
    torch.manual_seed(0)
    learner = Learner(Shared(Encoder(TwoLayers(), LinearHead(8))), (ask, answer), images=12, seed=0)
    views = Patches(6, 4).batch(torch.randint(0, 256, (12, 3, 20, 30), dtype=torch.uint8), generator_of(0))
    step = learner(views, torch.arange(12), 0)
    step.loss.backward()
    learner.after_step([step.fresh], 0)
    assert step.loss.isfinite() and all(part.grad is not None for part in learner.parameters())
