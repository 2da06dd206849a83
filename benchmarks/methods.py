"""Ring over a queue, and JCL, forward and backward to the query: time and memory compared with the released forms.

    python benchmarks/methods.py           # K = 65,536 and 16,384, batch 256, width 128, float32

The released forms repeat the operations of the published scripts, without their code. Ring: a sort of all similarities
with the gradient through it, then ranks [inner, outer) beside the positive. JCL: a d × d covariance for each image, its
quadratic form, cross-entropy over a cloned queue; without a queue, only the terms of the positives, on one core and on
two, before and after large tables. Peak memory is read in a fresh process, relative to that process before the call.
"""

import argparse
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from timing import fresh, interleave, measured_peak, speedup, write_results
from torch import Tensor

from vantage.estimators import JCL, InfoNCE
from vantage.negatives import Ring, Rule
from vantage.partition import sum_negatives, sum_table
from vantage.positives import OtherViews
from vantage.records import Keys, Negatives

BATCH, WIDTH, KEYS, STRENGTH = 256, 128, 5, 4.0
Step = Callable[[], Tensor]


def problem(length: int, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, `keys` keys of each (keys, batch, width) and a queue, all of unit length."""
    generator = torch.Generator().manual_seed(1)
    query = F.normalize(torch.randn(BATCH, WIDTH, generator=generator), dim=1)
    positive = F.normalize(query + 0.5 * torch.randn(keys, BATCH, WIDTH, generator=generator), dim=2)
    queue = F.normalize(torch.randn(length, WIDTH, generator=generator), dim=1)
    return query.requires_grad_(), positive, queue


def stepping(query: Tensor, loss: Step) -> Step:
    """Forward and backward; returns the query's gradient."""

    def step() -> Tensor:
        query.grad = None
        loss().backward()
        return query.grad  # pyright: ignore

    return step


def ring_released(length: int) -> Step:
    """All similarities sorted, ranks [inner, outer) kept beside the positive."""
    query, (key,), queue = problem(length, 1)
    outer = int(0.1 * length)
    inner = int(0.1 * outer)

    def loss() -> Tensor:
        pull = (query * key).sum(1) / 0.07
        logits = torch.sort(query @ queue.T / 0.07, dim=1, descending=True).values
        ring = torch.cat([pull[:, None], logits[:, :outer][:, inner:]], 1)
        return (torch.logsumexp(ring, 1) - pull).mean()

    return stepping(query, loss)


def jcl_released(length: int) -> Step:
    """The covariance of each image's keys, and its quadratic form twice; without a queue, only the positives' terms."""
    query, positive, queue = problem(length, KEYS)
    columns = queue.T.contiguous()

    def loss() -> Tensor:
        with torch.no_grad():
            mean = positive.mean(0)
            away = positive - mean
            spread = torch.bmm(away.permute(1, 2, 0), away.permute(1, 0, 2)) * (STRENGTH / (KEYS * 0.2))
        pull = (query * (mean + 0.5 * torch.bmm(spread, query[:, :, None])[:, :, 0])).sum(1)
        quadratic = 0.5 * torch.bmm(torch.bmm(query[:, None], spread), query[:, :, None]).mean() / 0.2
        if not length:
            return quadratic - pull.mean() / 0.2
        logits = torch.cat([pull[:, None], torch.einsum("nc,ck->nk", query, columns.clone())], 1)
        logits /= 0.2
        return F.cross_entropy(logits, torch.zeros(BATCH, dtype=torch.long)) + quadratic

    return stepping(query, loss)


def ours(
    length: int, keys: int, rules: tuple[Rule, ...], estimator: InfoNCE | JCL, way: Callable[..., Negatives]
) -> Step:
    """OtherViews, an estimator, and one of the ways to compute the log-partition."""
    query, positive, queue = problem(length, keys)
    image, pool = torch.arange(BATCH), Keys(queue, torch.full((length,), -1))
    answers = tuple(Keys(key, image) for key in positive)

    def loss() -> Tensor:
        queries = Keys(query, image)
        negatives = way(queries, pool, rules, estimator.temperature, 0)
        return estimator(OtherViews()(queries, answers, pool, 0), negatives, 0).mean()

    return stepping(query, loss)


def jcl_positives(length: int) -> Step:
    """The positives' terms alone. With a huge log-sum s over the negatives, the loss is s − pull − extra + extra, which
    are the released terms."""
    query, positive, _ = problem(length, KEYS)
    image = torch.arange(BATCH)
    negatives = Negatives(torch.full((BATCH,), 1e3), torch.ones(BATCH, dtype=torch.int64))
    answers, pool = tuple(Keys(key, image) for key in positive), Keys(torch.zeros(0, WIDTH), torch.zeros(0).long())

    def loss() -> Tensor:
        return JCL()(OtherViews()(Keys(query, image), answers, pool, 0), negatives, 0).mean()

    return stepping(query, loss)


def jcl_positives_limit(length: int) -> Step:
    """The fewest operations that compute the positives' terms if an image's keys are adjacent in memory: one product,
    one mean and variance, a sum."""
    query, positive, _ = problem(length, KEYS)
    together = positive.transpose(0, 1).contiguous()

    def loss() -> Tensor:
        cosine = torch.bmm(query.unsqueeze(1), together.mT).squeeze(1)
        variance, mean = torch.var_mean(cosine, 1, correction=0)
        extra = variance * (0.5 * STRENGTH / 0.2**2)
        return (
            extra - (mean / 0.2 + extra)
        ).mean()  # once in the numerator and once in the denominator, as in the released terms

    return stepping(query, loss)


def floor(length: int) -> Step:
    """The least that any loss over all keys computes: one product with the keys forward and one backward, in chunks.
    Its gradient is that of the sum of all cosines, so it is not a loss to train with."""
    query, _, queue = problem(length, 1)

    def loss() -> Tensor:
        return _AllCosines.apply(query, queue)  # pyright: ignore

    return stepping(query, loss)


class _AllCosines(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, queue: Tensor) -> Tensor:
        back, total = torch.zeros_like(query), query.new_zeros(())
        for keys in queue.split(2048):
            cosine = query @ keys.T
            total += cosine.sum()
            back.addmm_(torch.ones_like(cosine), keys)
        ctx.save_for_backward(back)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return gradients[0] * ctx.saved_tensors[0], None


FLOOR = "two products with the keys"
RING, BOTH = (Ring(),), (65_536, 16_384)
CASES: dict[str, tuple[str, tuple[int, ...], Callable[[int], Step]]] = {
    "ring released": ("ring released", BOTH, ring_released),
    "ring table": ("ring released", BOTH, lambda length: ours(length, 1, RING, InfoNCE(0.07), sum_table)),
    "ring band": ("ring released", BOTH, lambda length: ours(length, 1, RING, InfoNCE(0.07), sum_negatives)),
    "jcl released": ("jcl released", BOTH, jcl_released),
    "jcl": ("jcl released", BOTH, lambda length: ours(length, KEYS, (), JCL(), sum_negatives)),
    FLOOR: ("ring released", BOTH, floor),
}
"""For each case, the case it is compared with, the lengths it is measured at, and a function that prepares it."""


def main() -> None:
    """Time all cases in turn, check their gradients against the released ones', write results/methods.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--peak", choices=CASES)
    parser.add_argument("--length", type=int)
    parser.add_argument("--dry", action="store_true", help="check the gradients only")
    options = parser.parse_args()
    if options.peak:
        print(measured_peak(CASES[options.peak][2](options.length)))
        return
    rows: list[dict[str, Any]] = []
    rows += measure_alone(options.rounds, options.dry, "before")
    for length in [options.length] if options.length else BOTH:
        rows += measure({name: case[2](length) for name, case in CASES.items()}, length, options.rounds, options.dry)
    rows += measure_alone(options.rounds, options.dry, "after")
    if not options.dry:
        write_results("methods", rows)


def measure_alone(rounds: int, dry: bool, when: str) -> list[dict[str, Any]]:
    """The positives' terms on one core and on two, before or after the allocator has served large tables. Afterwards
    the released form gets memory for its covariances without a call to the system, which halves its time."""
    alone = {"jcl positives released": jcl_released(0), "jcl positives": jcl_positives(0)}
    alone["jcl positives, limit"] = jcl_positives_limit(0)
    rows = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        rows += measure(alone, 0, 2 * rounds, dry, calls=50)
    return [row | {"large tables": when} for row in rows]


def measure(steps: dict[str, Step], length: int, rounds: int, dry: bool, calls: int = 1) -> list[dict[str, Any]]:
    """A row for each case; the time of a short one is the mean of `calls` successive calls."""
    rows = []
    seconds = {} if dry else interleave(steps, rounds, calls=dict.fromkeys(steps, calls))
    for name, step in steps.items():
        base = CASES[name][0] if name in CASES else "jcl positives released"
        truth = steps[base]().clone()
        row: dict[str, Any] = {"keys": length, "case": name, "threads": torch.get_num_threads()}
        if name != FLOOR:
            row["gradient error"] = ((step() - truth).norm() / truth.norm()).item()
        if not dry:
            times = sorted(seconds[name])
            row |= {"ms": round(1e3 * times[len(times) // 2], 2)}
            row |= {"times faster than released": round(speedup(seconds, name, base), 2)}
            peak = fresh(__file__, "--peak", name, "--length", str(length)) if length else None
            row |= {"peak MiB": peak and round(peak)}
        rows.append(row)
        print(row, flush=True)
    return rows


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
