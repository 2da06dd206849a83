"""The order of shards, and of images among them, is a function of seed and epoch."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tar_shards import COUNTS, write_shards

from vantage.composition.fields import differences
from vantage.data import Shards, Source, SourceSubset, StreamedImages, open_source
from vantage.data.order import BatchOrder, EpochOrder, epoch_order
from vantage.draws import Purpose, mix
from vantage.errors import UserError
from vantage.recipes import moco_v2
from vantage.training.folder.same_run import refuse_conflicts
from vantage.training.run import Data


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return open_source(write_shards(tmp_path / "shards", COUNTS), cache=tmp_path / "cache")


def plain_order(starts: list[int], seed: int, epoch: int, window: int) -> list[int]:
    """The order as `EpochOrder` describes it, all at once."""
    blocks = [list(range(a, b)) for a, b in zip(starts, starts[1:], strict=False)]
    if len(blocks) == 1 or starts[-1] <= window:
        return epoch_order(starts[-1], seed, epoch).tolist()
    windows: dict[int, list[int]] = {}
    before = 0
    for block in torch.randperm(
        len(blocks), generator=torch.Generator().manual_seed(mix(Purpose.BLOCK_ORDER, seed, epoch))
    ):
        windows.setdefault(before // window, []).extend(blocks[block])
        before += len(blocks[block])
    order = []
    for number, images in enumerate(windows.values()):
        numbers = epoch_order(len(images), seed, epoch, *([number] if number else []))
        order += [images[at] for at in numbers]
    return order


@given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=12), seed=st.integers(0, 3), window=st.integers(1, 40))
def test_an_order_by_blocks_is_that_of_the_plain_loop(counts: list[int], seed: int, window: int) -> None:
    starts = [0, *torch.tensor(counts).cumsum(0).tolist()]
    count = starts[-1]
    if count == 0:
        return
    expected = plain_order(starts, seed, 2, window)
    order = EpochOrder(torch.tensor(starts), seed, 2, window)
    assert order.part(0, count).tolist() == expected and sorted(expected) == list(range(count))
    assert [int(order.part(at, at + 1)) for at in reversed(range(count))] == expected[::-1]


def test_blocks_of_a_subset_are_what_is_left_of_each_shard(source: Source) -> None:
    assert isinstance(source, Shards) and source.blocks().tolist() == [0, 5, 5, 14, 15, 22]
    assert SourceSubset(source, [0, 6, 7, 21]).blocks().tolist() == [0, 1, 1, 3, 3, 4]
    assert SourceSubset(source, [6, 0]).blocks().tolist() == [0, 2]


class Whole:
    """The image itself."""

    def crop(self, image: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, ...]:
        return (image,)


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:This DataLoader will create", "ignore:.*use of fork:DeprecationWarning")
def test_batches_of_windows_join_over_processes_and_resume_anywhere(source: Source, workers: int) -> None:

    def numbers(rank: int, world: int, start: int) -> list[list[int]]:
        stream = StreamedImages(source, Whole(), BatchOrder(4, 3, rank, world, window=8), num_workers=workers)
        return [batch.image.tolist() for batch in stream.batches(1, start)]

    whole = numbers(0, 1, 0)
    assert whole == [
        list(map(int, row)) for row in torch.tensor(plain_order([0, 5, 5, 14, 15, 22], 3, 1, 8))[:20].view(5, 4)
    ]
    assert numbers(0, 1, 3) == whole[3:]
    assert [a + b for a, b in zip(numbers(0, 2, 1), numbers(1, 2, 1), strict=True)] == whole[1:]


def test_a_resumed_run_keeps_its_window_and_the_squares_of_its_images() -> None:
    run = moco_v2()
    other = replace(run, data=Data(path="elsewhere", shuffle_window=7))
    assert len(differences(run, other)) == 2
    with pytest.raises(UserError, match="data.shuffle_window is 1048576 in the run, 7 was asked for"):
        refuse_conflicts(run, other)
    with pytest.raises(UserError, match="data.resident_side is 0 in the run, 64 was asked for"):
        refuse_conflicts(run, replace(run, data=Data(resident_side=64)))
    with pytest.raises(UserError, match="data.shuffle_window is 0"):
        Data(shuffle_window=0)


def test_every_second_image_keeps_its_blocks_without_a_word(source: Source) -> None:
    numbers = torch.arange(len(source))[::2]
    starts = SourceSubset(source, numbers).blocks()
    assert starts.tolist() == SourceSubset(source, numbers.tolist()).blocks().tolist() and starts[-1] == len(numbers)
