"""InfoNCE over a queue, forward and backward to the query: time and memory compared with the released form and lightly.

    python benchmarks/losses.py            # K = 65,536 and 16,384, batch 256, width 128, float32

The released form repeats the operations of the published MoCo script, without its code: a product with a clone of the
queue, a concatenation, a division, cross-entropy. Peak memory is read in a fresh process, relative to that process
before the call.
"""

import argparse
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from timing import fresh, interleave, measured_peak, speedup, write_results
from torch import Tensor

from vantage.estimators import InfoNCE
from vantage.partition import sum_negatives, sum_table
from vantage.positives import OtherViews
from vantage.records import Keys, Negatives

BATCH, WIDTH, TEMPERATURE = 256, 128, 0.07


def problem(length: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, their keys and a queue, all of unit length."""
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(BATCH, WIDTH, generator=generator)
    key = F.normalize(query + 0.7 * torch.randn(BATCH, WIDTH, generator=generator), dim=1)
    queue = F.normalize(torch.randn(length, WIDTH, generator=generator), dim=1)
    return F.normalize(query, dim=1).requires_grad_(), key, queue


def released(length: int) -> Callable[[], Tensor]:
    """Logits of a cloned queue, concatenated with the positive's, divided, cross-entropy."""
    query, key, queue = problem(length)
    columns = queue.T.contiguous()

    def step() -> Tensor:
        query.grad = None
        positive = torch.einsum("nc,nc->n", query, key)[:, None]
        negatives = torch.einsum("nc,ck->nk", query, columns.clone())
        logits = torch.cat([positive, negatives], dim=1)
        logits /= TEMPERATURE
        F.cross_entropy(logits, torch.zeros(BATCH, dtype=torch.long)).backward()
        return query.grad  # pyright: ignore

    return step


def ours(length: int, way: Callable[..., Negatives] = sum_negatives) -> Callable[[], Tensor]:
    """OtherViews, InfoNCE, and one of the ways to compute the log-partition."""
    query, key, queue = problem(length)
    image = torch.arange(BATCH)
    pool = Keys(queue, torch.full((length,), -1))
    estimator, positives = InfoNCE(TEMPERATURE), OtherViews()

    def step() -> Tensor:
        query.grad = None
        queries = Keys(query, image)
        positive_cosines = positives(queries, (Keys(key, image),), pool, 0)
        estimator(positive_cosines, way(queries, pool, (), TEMPERATURE, 0), 0).mean().backward()
        return query.grad  # pyright: ignore

    return step


def lightly(length: int) -> Callable[[], Tensor]:
    """lightly's NT-Xent loss with its memory bank, which it also writes."""
    from lightly.loss import NTXentLoss

    query, key, queue = problem(length)
    loss = NTXentLoss(temperature=TEMPERATURE, memory_bank_size=(length, WIDTH))
    loss.memory_bank.bank.copy_(queue if loss.memory_bank.bank.shape == queue.shape else queue.T)

    def step() -> Tensor:
        query.grad = None
        loss(query, key).backward()
        return query.grad  # pyright: ignore

    return step


CASES: dict[str, Callable[[int], Callable[[], Tensor]]] = {
    "released": released,
    "lightly": lightly,
    "table": lambda length: ours(length, sum_table),
    "streaming": ours,
}


def main() -> None:
    """Time all cases in turn, check their gradients against the released one's, write results/losses.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--peak", choices=CASES)
    parser.add_argument("--length", type=int)
    options = parser.parse_args()
    if options.peak:
        print(measured_peak(CASES[options.peak](options.length)))
        return
    rows: list[dict[str, Any]] = []
    for length in [options.length] if options.length else [65_536, 16_384]:
        steps = {}
        for name, case in CASES.items():
            try:
                steps[name] = case(length)
            except ImportError:
                print(f"{name} is not installed: left out")
        truth = steps["released"]().clone()
        seconds = interleave(steps, options.rounds)
        for name, step in steps.items():
            times = sorted(seconds[name])
            error = ((step() - truth).norm() / truth.norm()).item() if name != "lightly" else None
            row = {"keys": length, "case": name, "ms": round(1e3 * times[len(times) // 2], 1)}
            row |= {"times faster than released": round(speedup(seconds, name, "released"), 2)}
            row |= {
                "peak MiB": round(fresh(__file__, "--peak", name, "--length", str(length))),
                "gradient error": error,
            }
            rows.append(row)
            print(row, flush=True)
    write_results("losses", rows)


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
