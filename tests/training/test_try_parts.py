"""Networks tried on views of real images before a run starts."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from jaxtyping import UInt8
from small_runs import IMAGES, SIZE, small_run, write_images
from torch import Tensor, nn

import vantage
from vantage.data.sources.arrays import Arrays
from vantage.encoders import Convolutions, Encoder, NormalizedMLP, PerView, ResNet, Shared
from vantage.errors import UnreadableImage, UserError
from vantage.records import Keys, Scores
from vantage.training.loop import train
from vantage.training.run import Run
from vantage.training.session import Session
from vantage.training.start.try_parts import check_groups, try_branches, try_networks
from vantage.views import ProgressiveResizing


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Images, and a cache of the test's own."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    return write_images(tmp_path / "images.npz")


def noise(count: int = 4) -> Arrays:
    pixels = np.random.default_rng(0).integers(0, 256, (count, SIZE, SIZE, 3), np.uint8)
    return Arrays(pixels, None, "noise")


def gray(run: Run) -> Run:
    """The run with a backbone for one channel."""
    encoder = replace(run.encoders.encoder, backbone=ResNet(18, small=True, in_channels=1))  # pyright: ignore
    return replace(run, encoders=replace(run.encoders, encoder=encoder))  # pyright: ignore


@pytest.mark.parametrize("recipe", ["moco_v2", "cmc", "pirl", "simclr"])  # all of them in test_loop
def test_the_networks_of_a_recipe_fit_its_views(recipe: str) -> None:
    before = torch.random.get_rng_state()
    try_networks(small_run(recipe, ""), noise())
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_backbone_for_other_channels_is_refused_before_anything_is_written(path: str, tmp_path: Path) -> None:
    message = r"view 0, which has 3 channels and 16 x 16 pixels: the backbone's in_channels is 1, set it to 3 \(Given"
    with pytest.raises(UserError, match=message):
        train(gray(small_run("moco_v2", path)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_no_network_is_built_to_check_groups_that_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    run = small_run("moco_v2", "")  # two groups of a batch of 8
    built: list[Encoder] = []
    monkeypatch.setattr(Encoder, "build", lambda self: built.append(self) or nn.BatchNorm1d(1))
    check_groups(run)
    assert not built
    with pytest.raises(UserError, match="split 9 images into 2 groups"):
        check_groups(replace(run, batch_size=9))
    assert len(built) == 1, "only networks with BatchNorm have groups"


def test_a_batch_of_one_image_is_refused_if_batch_norm_sees_a_single_vector() -> None:
    run = small_run("instance_discrimination", "").rescale(1)
    try_networks(run, noise())  # with a linear head, BatchNorm sees all positions of a map
    assert isinstance(run.encoders, Shared)
    encoder = replace(run.encoders.encoder, head=NormalizedMLP(8, 8))
    run = replace(run, encoders=Shared(encoder))
    with pytest.raises(UserError, match="cannot train on one image at a time: use a batch of 2 or more"):
        try_networks(run, noise())
    try_networks(run.rescale(2), noise())


def test_a_network_for_each_view_is_tried_on_that_view() -> None:
    run = small_run("cmc", "")
    assert isinstance(run.encoders, PerView)
    first, second = run.encoders.encoders
    with pytest.raises(UserError, match="does not fit view 0, which has 1 channels"):
        try_networks(replace(run, encoders=PerView((second, first))), noise())


def test_images_too_small_for_a_network_are_refused() -> None:
    run = small_run("moco_v2", "")
    encoder = replace(run.encoders.encoder, backbone=_Wide())  # pyright: ignore
    with pytest.raises(UserError, match=r"16 x 16 pixels: give larger views .*\(.*[Kk]ernel size"):
        try_networks(replace(run, encoders=replace(run.encoders, encoder=encoder)), noise())  # pyright: ignore


def test_a_network_is_tried_on_the_smallest_views_that_it_will_see() -> None:
    run = replace(small_run("simclr", ""), resizing=ProgressiveResizing((8,), (0.5,)))
    encoder = replace(run.encoders.encoder, backbone=_Wide(kernel=13))  # pyright: ignore
    run = replace(run, encoders=replace(run.encoders, encoder=encoder))  # pyright: ignore
    with pytest.raises(UserError, match=r"8 x 8 pixels: give larger views .*\(.*[Kk]ernel size"):
        try_networks(run, noise())


@dataclass(frozen=True)
class _Wide(Convolutions):
    """A first kernel wider than the views."""

    kernel: int = 99

    def build(self) -> torch.nn.Module:
        network = super().build()
        network.layers[0] = torch.nn.Conv2d(3, self.widths[0], self.kernel, padding=1)
        return network


def test_unreadable_images_are_passed_over() -> None:
    class Bad(Arrays):
        def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
            if number < 2:
                raise UnreadableImage(self.name(number), "damaged")
            return super().image(number)

    pixels = np.zeros((5, SIZE, SIZE, 3), np.uint8)
    try_networks(small_run("moco_v2", ""), Bad(pixels, None, "some bad"))


@dataclass(frozen=True)
class Nearest:
    """The nearest keys only; fails where there are fewer."""

    count: int

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        floor = scores.cosine.detach().topk(self.count).values[:, -1:]
        return scores.only(scores.cosine.detach() >= floor)


def test_a_part_that_fails_is_named_with_its_place() -> None:
    run = small_run("moco_v2", "")
    branch = replace(run.branches[0], negatives=(Nearest(1_000),))
    words = r"^branch 0 cannot work: the rule Nearest: RuntimeError: .*\(.*test_try_parts.py, line \d+\)$"
    with pytest.raises(UserError, match=words):
        try_branches(replace(run, branches=(branch,)))


@dataclass(frozen=True)
class Restores:
    """Counts every key again."""

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        return replace(scores, keep=torch.ones_like(scores.keep))


def test_a_rule_that_counts_dropped_pairs_again_is_refused() -> None:
    """The query's own image would be among its negatives."""
    run = vantage.instance_discrimination_nce(32).fit(1_000)
    branch = replace(run.branches[0], negatives=(vantage.OtherImages(), Restores()))
    with pytest.raises(UserError, match="branch 0 cannot work: the rule Restores counts pairs that an earlier rule"):
        try_branches(replace(run, branches=(branch,)))
    try_branches(replace(run, branches=(replace(branch, negatives=(Restores(), vantage.OtherImages())),)))


@dataclass(frozen=True)
class Shifts:
    """Looks at centered keys, by centering those of the memory."""

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        pool.vector.sub_(pool.vector.mean(0))
        return scores


def test_a_rule_that_changes_the_memory_is_refused() -> None:
    run = small_run("moco_v2", "")
    run = replace(run, branches=(replace(run.branches[0], negatives=(Shifts(),)),))
    with pytest.raises(
        UserError, match="branch 0 cannot work: a part changes the keys that it gets, .*: change a copy"
    ):
        try_branches(run)


@dataclass(frozen=True)
class NoPositives:
    """Keeps no pair."""

    def __call__(self, query: Keys, keys: tuple[Keys, ...], pool: Any, step: int) -> Scores:
        scores = vantage.OtherViews()(query, keys, pool, step)
        return scores.only(torch.zeros_like(scores.keep))


def test_positives_that_keep_no_pair_are_named() -> None:
    """They were told as missing negatives."""
    run = small_run("moco_v2", "")
    run = replace(run, branches=(replace(run.branches[0], positives=NoPositives()),))
    with pytest.raises(
        UserError, match="branch 0 cannot work: no query has a positive, .*: NoPositives keeps no pair of 8 queries$"
    ):
        try_branches(run)


@dataclass(frozen=True)
class Column:
    """Losses of each query and positive, without a mean over the positives."""

    temperature: float = 0.1

    def __call__(self, positive: Any, negatives: Any, step: int) -> Any:
        return -positive.cosine


def test_an_estimator_that_gives_other_than_one_loss_for_each_query_is_refused() -> None:
    """A column (b, 1) would be spread over all queries, and the loss be as many times as large."""
    run = small_run("moco_v2", "")
    run = replace(run, branches=(replace(run.branches[0], estimator=Column()),))
    words = r"branch 0 cannot work: Column gives losses of shape \(8, 1\) for 8 queries: give one for each query"
    with pytest.raises(UserError, match=words):
        try_branches(run)


def test_memories_are_tried_as_large_as_the_run_will_have_them() -> None:
    """Up to those for 1,024 images: a rule may need a hundred keys."""
    run = vantage.moco_v2(32).fit(1_000)
    run = replace(run, branches=(replace(run.branches[0], negatives=(Nearest(100),)),))
    try_branches(run, images=1_000)
    with pytest.raises(UserError, match="branch 0 cannot work"):
        try_branches(run, images=100)


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_a_start_that_fails_leaves_nothing_in_the_way_of_the_next(
    kind: type[BaseException], path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, folder = small_run("moco_v2", path, epochs=1), tmp_path / "run"
    step_of = Session.step

    def fails(self: Session, batch, step: int) -> Tensor:
        assert (folder / "settings.json").exists()
        raise kind("out of memory")

    monkeypatch.setattr(Session, "step", fails)
    with pytest.raises(kind):
        train(run, folder)
    assert not folder.exists()
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(kind):
        train(run, folder)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    monkeypatch.setattr(Session, "step", step_of)
    assert train(run, folder).step == IMAGES // 8
