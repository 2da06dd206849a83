"""Banks that are sharded by image number give the same as whole banks."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import ranks
import sharded_banks
from torch.testing import assert_close


@cache
def alone(name: str) -> dict[str, Any]:
    """The results of one process, which all numbers of processes share."""
    return sharded_banks.train(sharded_banks.cases()[name])


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_a_sharded_bank_equals_a_whole_one(tmp_path: Path, count: int) -> None:
    """Losses, gradients, parameters and stores of every recipe with a bank, over several steps, in float64."""
    several = ranks.spawn(sharded_banks.every_case, tmp_path, count)
    for name in sharded_banks.cases():
        one = alone(name)
        for rank, results in enumerate(several):
            equals(results[name], one, name)
            assert ("state" in results[name]) == (rank == 0)
    assert [number for results in several for number in results["held"]] == list(range(10))
    for results in several:
        table, rule, positives = results["refused"]
        assert "only of rows drawn with Sample" in table and "sharded=False" in table
        assert rule == "_Own cannot select from a sharded bank: give it an on_shard, or take sharded=False"
        assert "looks at a whole bank" in positives


def equals(mine: dict[str, Any], one: dict[str, Any], name: str) -> None:
    """Everything that both have."""
    assert len(one["losses"]) == ranks.STEPS
    for part in mine:
        assert_close(mine[part], one[part], rtol=0, atol=1e-9, msg=lambda text, part=part: f"{name}, {part}: {text}")
