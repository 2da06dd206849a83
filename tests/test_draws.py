"""Random numbers as a function of what they are for."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from vantage import draws

WORD = (1 << 64) - 1


def splitmix(state: int) -> int:
    """The finalizer of SplitMix64 on Python's own integers, from the paper's listing."""
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & WORD
    return state ^ (state >> 31)


@given(seed=st.integers(-(2**63), 2**63 - 1), salt=st.integers(0, 9))
def test_bits_are_splitmix(seed: int, salt: int):
    numbers = draws.bits(torch.tensor([seed]), 3, salt)[0].tolist()
    expected = [splitmix((seed + (i + 1 + (salt << 40)) * 0x9E3779B97F4A7C15) & WORD) for i in range(3)]
    assert [number & WORD for number in numbers] == expected


def test_splitmix_gives_its_published_numbers():
    # The first three outputs of SplitMix64 from state 1234567, as its reference implementation gives them.
    numbers = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [number & WORD for number in draws.bits(torch.tensor([1234567]), 3)[0].tolist()] == numbers


def test_mix_depends_on_order_and_on_every_number():
    seeds = {draws.mix(*numbers) for numbers in ((), (0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1), (-1,), (2**64 + 5,))}
    assert len(seeds) == 9
    assert all(0 <= number < 2**63 for number in seeds)


@pytest.mark.parametrize("below", [2, 3, 10, 1000])
def test_integers_are_uniform(below: int):
    numbers = draws.integers(draws.query_seeds(5, 7, torch.arange(200)), 500, below)
    assert int(numbers.min()) == 0 and int(numbers.max()) == below - 1
    assert chisquare(numbers.flatten().bincount(minlength=below).numpy()).pvalue > 1e-3
    # First draws alone, over images: neighboring image numbers must not give neighboring draws.
    first = draws.integers(draws.query_seeds(5, 7, torch.arange(20_000)), 1, below)
    assert chisquare(first.flatten().bincount(minlength=below).numpy()).pvalue > 1e-3


def test_uniforms_are_uniform_in_the_half_open_interval():
    numbers = draws.uniforms(draws.query_seeds(1, 2, torch.arange(100)), 300)
    assert numbers.dtype == torch.float64
    assert 0 <= float(numbers.min()) and float(numbers.max()) < 1
    assert kstest(numbers.flatten().numpy(), "uniform").pvalue > 1e-3


@pytest.mark.parametrize("other", ["salt", "step", "seed", "image", "next"])
def test_draws_for_different_things_are_independent(other: str):
    image = torch.arange(40)
    one = draws.integers(draws.query_seeds(3, 4, image), 500, 5)
    two = {
        "salt": lambda: draws.integers(draws.query_seeds(3, 4, image), 500, 5, salt=1),
        "step": lambda: draws.integers(draws.query_seeds(3, 5, image), 500, 5),
        "seed": lambda: draws.integers(draws.query_seeds(4, 4, image), 500, 5),
        "image": lambda: draws.integers(draws.query_seeds(3, 4, image + 1), 500, 5),
        "next": lambda: one.roll(1, dims=1),
    }[other]()
    pairs = (one * 5 + two).flatten().bincount(minlength=25)
    assert chisquare(pairs.numpy()).pvalue > 1e-3


@given(rows=st.integers(1, 9), count=st.integers(1, 5), seed=st.integers(0, 999))
def test_draws_do_not_depend_on_order_or_tiles(rows: int, count: int, seed: int):
    image = torch.randperm(100, generator=torch.Generator().manual_seed(seed))[:rows]
    whole = draws.uniforms(draws.query_seeds(seed, 1, image), count)
    reversed_images = image.flip(0)
    assert torch.equal(draws.uniforms(draws.query_seeds(seed, 1, reversed_images), count), whole.flip(0))
    tiles = [draws.uniforms(draws.query_seeds(seed, 1, image[i : i + 1]), count) for i in range(rows)]
    assert torch.equal(torch.cat(tiles), whole)
    assert torch.equal(draws.uniforms(draws.query_seeds(seed, 1, image), count + 3)[:, :count], whole)


def test_seeds_of_a_large_set_do_not_collide():
    seeds = torch.cat([draws.query_seeds(0, step, torch.arange(50_000)) for step in range(4)])
    assert len(seeds.unique()) == 200_000


@pytest.mark.gpu
def test_gpu_draws_as_the_cpu_does():
    image = torch.arange(1000)
    on_cpu, on_gpu = draws.query_seeds(1, 2, image), draws.query_seeds(1, 2, image.cuda())
    assert torch.equal(on_cpu, on_gpu.cpu())
    assert torch.equal(draws.bits(on_cpu, 50, 3), draws.bits(on_gpu, 50, 3).cpu())
    assert torch.equal(draws.uniforms(on_cpu, 50), draws.uniforms(on_gpu, 50).cpu())
    assert torch.equal(draws.integers(on_cpu, 50, 12345), draws.integers(on_gpu, 50, 12345).cpu())


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_torchs_generators_start_as_torch_starts_them(device: str) -> None:
    draws.set_torch_seed(5, torch.device(device))
    ours = torch.rand(3), torch.rand(3, device=device)
    torch.manual_seed(5)
    assert torch.equal(ours[0], torch.rand(3)) and torch.equal(ours[1], torch.rand(3, device=device))
