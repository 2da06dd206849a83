"""The images that BatchNorm sees: those of the joint batch, on any number of processes and in any number of parts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import normalizing
import pytest
import ranks
import torch
from small_recipes import TwoLayers
from small_runs import small_run, write_images
from torch import Tensor, nn
from torch.testing import assert_close

from vantage import processes
from vantage.composition.codec import decode, encode
from vantage.composition.fitting import parts_of
from vantage.encoders import BatchNorm, Encoder, LinearHead, Shared, SplitBatchNorm
from vantage.encoders.normalization.grouped import GroupedStatistics, set_accumulation
from vantage.errors import UserError
from vantage.recipes import RECIPES, instance_discrimination, moco_v2, simclr
from vantage.training.folder.settings import read_run
from vantage.training.loop import train
from vantage.training.run import Data, Hardware, Run
from vantage.training.start.try_parts import try_branches

THIRTY_TWO = (
    *("moco_v1", "moco_v2", "moco_v2_multi_crop", "ring_moco", "ball_moco", "infomin", "infomin_linear"),
    *("interclr_moco", "interclr_ring", "jcl_ring", "jcl_interclr", "everything"),
)
"""Recipes of 256 images on 8 devices: MoCo (arXiv 1911.05722, section 3.3) and what is built on it."""
PUBLISHED = {name: 32 for name in THIRTY_TWO} | {"jcl": 64, "jcl_vanilla": 64}
"""Images that share statistics; JCL has 512 on 8. Not named: the whole batch, as SimCLR has it, and banks, whose papers
say nothing."""


def images_per_group(run: Run, count: int, parts: int, monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Images that one output of BatchNorm depends on, for each encoder of the run: as one of several processes has it,
    whose others hold the same images."""
    monkeypatch.setattr(processes, "count", lambda: count)
    monkeypatch.setattr(processes, "rank", lambda: 0)
    monkeypatch.setattr(processes, "gather", lambda rows: torch.cat([rows] * count))
    numbers = set()
    for encoder in parts_of(run.encoders):
        if isinstance(encoder, Encoder):
            norm = encoder.normalization.convert(nn.BatchNorm2d(1))
            set_accumulation(norm, parts)
            images = torch.randn(run.batch_size // count // parts, 1, 1, 1, requires_grad=True)
            (gradient,) = torch.autograd.grad(norm(images)[0].sum(), images)
            images_here = int((gradient != 0).sum())
            count_of_group = count if images_here == len(images) and isinstance(norm, GroupedStatistics) else 1
            numbers.add(images_here * max(1, count_of_group // max(1, encoder.normalization.groups // parts)))
    return numbers


@pytest.mark.parametrize("count", [1, 2, 4, 8])
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_every_recipe_normalizes_as_many_images_as_its_paper(
    recipe: Any, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = recipe(224)
    assert images_per_group(run, count, 1, monkeypatch) == {PUBLISHED.get(recipe.__name__, run.batch_size)}
    if recipe.__name__ in PUBLISHED:
        assert images_per_group(run, count, 8 // count, monkeypatch) == {PUBLISHED[recipe.__name__]}


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            replace(simclr(32), accumulate=2),
            r"one group of the joint batch, which 2 accumulated parts.*SplitBatchNorm\(2\)",
        ),
        (replace(moco_v2(32), accumulate=16), r"8 groups of the joint batch, which 16 accumulated parts"),
        (
            replace(moco_v2(32), batch_size=240, hardware=Hardware(devices=3)),
            r"8 groups of the joint batch, 8 in each.*3 processes cannot have equal shares.*SplitBatchNorm\(3\)",
        ),
        (
            replace(moco_v2(32), batch_size=252),
            "split 252 images into 8 groups.*use a batch of 16 or another mult",
        ),
        (replace(moco_v2(32), batch_size=8), "split 8 images into 8 groups, which must be equal and hold two"),
    ],
)
def test_shares_that_are_not_equal_are_refused(run: Run, message: str) -> None:
    with pytest.raises(UserError, match=message):
        try_branches(run)


def test_a_refused_run_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    run = small_run("instance_discrimination", write_images(tmp_path / "images.npz"))
    for each in (run, replace(run, data=Data("/nowhere"))):  # before the images are read
        with pytest.raises(UserError, match="2 accumulated parts"):
            train(replace(each, accumulate=2), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize("count", normalizing.COUNTS)
def test_every_recipe_and_variant_normalizes_as_many_images_on_real_processes(count: int, tmp_path: Path) -> None:
    """At the paper's batch size, in a small network."""
    papers = {recipe.__name__: [normalizing.expected(recipe(224), recipe.__name__)] for recipe in normalizing.EVERY}
    for by_rank in ranks.spawn(normalizing.count_all, tmp_path, count):
        assert {name: numbers.tolist() for name, numbers in by_rank.items()} == papers


def test_shares_that_are_equal_and_networks_without_batch_norm_are_taken() -> None:
    for devices, parts in ((1, 8), (2, 4), (8, 1), (16, 1)):
        try_branches(replace(moco_v2(32), accumulate=parts, hardware=Hardware(devices=devices)))
    try_branches(replace(simclr(32), hardware=Hardware(devices=8)))
    without = Shared(Encoder(TwoLayers(normalized=False), LinearHead(6)))
    try_branches(replace(instance_discrimination(32), encoders=without, accumulate=4))


@pytest.mark.parametrize(("devices", "parts"), [(1, 1), (2, 1), (2, 2), (8, 1)])
@pytest.mark.parametrize(("recipe", "groups"), [(moco_v2, 8), (simclr, 1)])
def test_an_earlier_run_computes_what_it_computed(recipe: Any, groups: int, devices: int, parts: int) -> None:
    """Groups were those of each process and part; on one, in one part, nothing changes."""
    run = replace(recipe(32), accumulate=parts, hardware=Hardware(devices=devices))
    before = read_run(encode(run), schema=1)
    (encoder,) = (part for part in parts_of(before.encoders) if isinstance(part, Encoder))
    assert encoder.normalization.groups == groups * devices * parts
    assert (before == run) == (devices * parts == 1)
    assert read_run(encode(run), schema=2) == run


def test_synchronized_batch_norm_of_an_earlier_run_is_that_of_the_joint_batch() -> None:
    data = encode(replace(simclr(32), hardware=Hardware(devices=2)))
    data["encoders"]["encoder"]["normalization"] = {"part": "SyncBatchNorm"}
    assert read_run(data, schema=1).encoders.encoder.normalization == BatchNorm()  # pyright: ignore
    assert decode({"part": "SyncBatchNorm"}, Any) == BatchNorm()


def normalize_by_groups(images: Tensor, weight: Tensor, groups: int) -> list[Tensor]:
    """Output, gradients and what is remembered of two steps of BatchNorm in groups of the joint batch."""
    norm = SplitBatchNorm(groups).convert(nn.BatchNorm2d(3).double())
    images = images.clone().requires_grad_()
    norm(images)
    result = norm(images)
    (result * weight).sum().backward()
    gradients = [processes.total(parameter.grad) for parameter in norm.parameters() if parameter.grad is not None]
    assert images.grad is not None
    return [result.detach(), images.grad, *gradients, *norm.buffers()]


def layer(groups: int) -> list[Tensor]:
    """The same of this process's share of 16 images."""
    generator = torch.Generator().manual_seed(0)
    images, weight = (torch.randn(16, 3, 2, 2, generator=generator, dtype=torch.float64) for _ in range(2))
    return normalize_by_groups(processes.own_rows(images) * 3 + 1, processes.own_rows(weight), groups)


def layers(folder: Path) -> None:
    """What each of four processes does."""
    values = {f"{groups}.{n}": value for groups in (1, 2, 4, 8) for n, value in enumerate(layer(groups))}
    torch.save(values, folder / f"{processes.rank()}.pt")


@pytest.mark.slow
@pytest.mark.parametrize("groups", [1, 2, 4, 8])
def test_four_processes_equal_one(groups: int, four: list[dict[str, Tensor]]) -> None:
    """Groups of one, two and four processes, and two groups in each: outputs, gradients, running statistics."""
    output, gradient, *others = layer(groups)
    assert_close(torch.cat([part[f"{groups}.0"] for part in four]), output, rtol=0, atol=1e-12)
    assert_close(torch.cat([part[f"{groups}.1"] for part in four]), gradient, rtol=0, atol=1e-12)
    for number, expected in enumerate(others, 2):
        mean = torch.stack([part[f"{groups}.{number}"].double() for part in four]).mean(0)
        assert_close(mean, expected.double(), rtol=0, atol=1e-12)


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Tensor]]:
    return ranks.spawn(layers, tmp_path_factory.mktemp("four"), count=4)
