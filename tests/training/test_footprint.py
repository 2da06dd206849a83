"""Networks and memories larger than the machine are refused before any of them is made."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from small_runs import small_run, write_images

import vantage
from vantage.composition.fitting import everywhere
from vantage.encoders import Encoder, ResNet9
from vantage.errors import UserError
from vantage.memory import Bank, InBatchStore, Queue
from vantage.training.loop import train
from vantage.training.run import Run
from vantage.training.start.footprint import check_footprint


def with_memory(memory: vantage.memory.Memory) -> Run:
    run = vantage.moco_v2(32)
    return replace(run, branches=(replace(run.branches[0], memory=memory),))


@pytest.mark.parametrize("length", [10**12, 9 * 10**18])
def test_a_queue_larger_than_the_memory_is_refused(length: int, tmp_path: Path) -> None:
    run = small_run("moco_v2", write_images(tmp_path / "images.npz"))
    run = replace(run, branches=(replace(run.branches[0], memory=Queue(length)),))
    with pytest.raises(UserError, match="memory of branch 0 (takes .* GiB, and this machine has|would be larger)"):
        train(run, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_bank_is_as_long_as_there_are_images() -> None:
    check_footprint(with_memory(Bank()), 10_000)
    with pytest.raises(UserError, match="memory of branch 0 takes"):
        check_footprint(with_memory(Bank()), 10**12)


@pytest.mark.parametrize("width", [10**7, 10**12])
def test_a_network_larger_than_the_memory_is_refused(width: int) -> None:
    run = vantage.simclr(32)
    wide = everywhere(
        run.encoders, lambda part: replace(part, backbone=ResNet9(width)) if isinstance(part, Encoder) else part
    )
    with pytest.raises(UserError, match="networks (takes .* GiB, and this machine has|would be larger)"):
        check_footprint(replace(run, encoders=wide), 1_000)


@dataclass(frozen=True)
class NeedsNumbers:
    """A memory of a user's own, which cannot be built without real numbers."""

    def build(self, images: int, width: int) -> InBatchStore:
        raise NotImplementedError("not on the meta device")


def test_a_part_that_cannot_be_counted_is_left_to_the_trial() -> None:
    check_footprint(with_memory(NeedsNumbers()), 1_000)
