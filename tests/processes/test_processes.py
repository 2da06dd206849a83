"""Several processes, joined by gloo."""

from pathlib import Path

import pytest
import ranks
import torch
from torch.testing import assert_close

from vantage import processes

STOPPED = "another process of this run stopped: its message says why"


def test_one_process_does_nothing():
    rows = torch.arange(6.0).reshape(3, 2).requires_grad_()
    assert processes.count() == 1 and processes.rank() == 0
    assert processes.gather(rows) is rows and torch.equal(processes.own_rows(rows), rows)
    assert processes.total(torch.tensor(3)) == 3


def test_two_processes_gather_rows_in_order_and_sum_gradients(tmp_path: Path):
    results = ranks.spawn(ranks.gathering, tmp_path)
    first = torch.arange(6.0).reshape(3, 2)
    weight = torch.arange(12.0).reshape(6, 2)
    for rank in range(2):
        mine = results[rank]
        assert (mine["count"], mine["rank"], mine["own"]) == (2, rank, True)
        assert torch.equal(mine["joined"], torch.cat([first, first + 10]))
        assert mine["integers"].tolist() == [0, 1, 100, 101]
        assert float(mine["total"]) == 3.0
        assert torch.equal(mine["gradient"], 3 * weight[3 * rank : 3 * rank + 3]), "the sum over both processes"
        assert torch.equal(mine["other"], (rank + 1) * weight), "gathering must not write into others' gradients"
        assert_close(mine["shared"], ranks.sharing() | {"everywhere": [True, False, 7]}, rtol=0, atol=0)
    assert [mine["stopped"][0] for mine in results] == [STOPPED, "first"]
    assert [mine["stopped"][1] for mine in results] == ["reads no further", STOPPED]
    assert [mine["stopped"][2] for mine in results] == [STOPPED, "last"]
    # Unequally many queries with a positive: the mean over processes is the mean over all such queries.
    loss, gradient = ranks.uneven_parts(lambda rows: rows)
    assert_close((results[0]["loss"] + results[1]["loss"]) / 2, loss, rtol=0, atol=1e-12)
    assert_close(torch.cat([results[0]["query"], results[1]["query"]]) / 2, gradient, rtol=0, atol=1e-12)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="/proc does not list threads here")
def test_no_thread_outlives_the_group(tmp_path: Path) -> None:
    """One that lets go of a tensor while Python ends aborts the process."""
    for results in ranks.spawn(ranks.leaving, tmp_path):
        before, after = results["threads"].tolist()
        assert before > 0 and after == 0
