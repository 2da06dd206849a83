"""InterCLR's semi-hard negatives and mates: time and peak memory compared with the released form.

    python benchmarks/interclr.py          # banks of 50,000, 200,000 and 1,280,000 rows, width 128, float32

Semi-hard: k negatives from other clusters, drawn from the tenth of the bank that is most similar to each query;
log-sum-exp of their logits, forward and backward to the query. *released* repeats the operations of the published
script, without its code: all similarities, top-k, draws without replacement, redrawn while one has the query's label, a
fetch of queries × k × width, a product. *exact* is `(OtherClusters(), Hardest(Share(.1)), Distinct(k))`; *subset* is
`(Subset(10 k), OtherClusters(), Hardest(Share(.1)))`. *two products with the bank* and *with the subset* are lower
limits: one product for all cosines that are examined, and one back for the gradient. "gradient error" compares *exact*
and *subset* with the table of all scores, for four queries and the same draws.

Mates: one row of each query's cluster. *scan* examines all labels for each query, as released; *table* compares queries
and rows at once; *index* is `ClusterMate` with the memory's index.

Centroids: *loop* computes the mean of each cluster's rows, cluster by cluster, as released; *sums* is what our step
does instead (`Clustering.move`): it subtracts the queries' rows from the clusters' sums and adds the new ones, a tenth
of them under another label. *sums, index* also updates the index of mates.

Calls of *index* and *sums* are so short that the mean of twenty in a row is reported; "once" is a single call, after
the other cases have used the processor's caches.

Peak memory, for cases that allocate any, is read in a fresh process, relative to that process before the call.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from timing import fresh, interleave, measured_peak, speedup, write_results
from torch import Tensor

from vantage.draws import query_seeds
from vantage.memory.clustering import Clustering
from vantage.negatives import Distinct, Hardest, OtherClusters, Rule, Share, Subset
from vantage.partition import sum_negatives, sum_table
from vantage.positives import ClusterMate
from vantage.records import Keys
from vantage.records.members import Members
from vantage.schedules import Constant

WIDTH, TEMPERATURE = 128, 0.1
TENTH = Hardest(Share(Constant(0.1)))
Step = Callable[[], Tensor]


@dataclass(frozen=True)
class Size:
    """How large a bank, how many queries, and how many rounds."""

    rows: int
    queries: int
    rounds: int

    @property
    def negatives(self) -> int:
        """Number of negatives for each query, in the paper's ratio: 16,384 of 1.28 million."""
        return round(self.rows * 16_384 / 1_280_000)

    @property
    def clusters(self) -> int:
        """Number of clusters, as in a fitted recipe."""
        return self.rows // 128


SIZES = {size.rows: size for size in (Size(50_000, 256, 9), Size(200_000, 256, 5), Size(1_280_000, 256, 3))}


@cache
def problem(size: Size) -> tuple[Keys, Keys]:
    """Queries near rows of a bank, whose rows lie around their centroids."""
    generator = torch.Generator().manual_seed(1)
    centroid = F.normalize(torch.randn(size.clusters, WIDTH, generator=generator), dim=1)
    label = torch.randint(size.clusters, (size.rows, 1), generator=generator)
    bank = torch.randn(size.rows, WIDTH, generator=generator).mul_(0.12).add_(centroid[label[:, 0]])
    bank = F.normalize(bank, dim=1, out=bank)
    image = torch.randint(size.rows, (size.queries,), generator=generator)
    query = F.normalize(bank[image] + 0.05 * torch.randn(size.queries, WIDTH, generator=generator), dim=1)
    queries = Keys(query.requires_grad_(), image, label[image], query_seeds(1, 0, image), 1)
    return queries, Keys(bank, torch.arange(size.rows), label, members=Members())


def stepping(query: Keys, loss: Step) -> Step:
    """Forward and backward; returns the query's gradient."""

    def step() -> Tensor:
        query.vector.grad = None
        loss().mean().backward()
        return query.vector.grad  # pyright: ignore

    return step


def released(size: Size) -> Step:
    """Top-k, draw, redraw, fetch, product."""
    query, pool = problem(size)
    label, mine, bank = pool.clusters[:, 0], query.clusters, pool.vector

    def draw(similar: Tensor, weight: Tensor) -> Tensor:
        return similar.gather(1, torch.multinomial(weight, size.negatives))

    def loss() -> Tensor:
        with torch.no_grad():
            similar = torch.topk(query.vector @ bank.T, size.rows // 10, dim=1, sorted=False).indices
            weight = torch.ones(similar.shape)
            drawn_rows = draw(similar, weight)
            while (same_cluster := label[drawn_rows] == mine).any():
                drawn_rows[same_cluster] = draw(similar, weight)[same_cluster]
            keys = bank.index_select(0, drawn_rows.flatten()).view(size.queries, size.negatives, WIDTH)
        return torch.logsumexp(torch.bmm(keys, query.vector[:, :, None])[:, :, 0] / TEMPERATURE, 1)

    return stepping(query, loss)


def exact(size: Size) -> tuple[Rule, ...]:
    """Drawn from the most similar tenth of the bank, for each query separately."""
    return OtherClusters(), TENTH, Distinct(size.negatives)


def subset(size: Size) -> tuple[Rule, ...]:
    """The hardest tenth of a random subset."""
    return Subset(10 * size.negatives), OtherClusters(), TENTH


RULES = {"exact": exact, "subset": subset}


def ours(size: Size, rules: tuple[Rule, ...]) -> Step:
    """The log-partition as our code computes it for these rules."""
    query, pool = problem(size)
    return stepping(query, lambda: sum_negatives(query, pool, rules, TEMPERATURE, 0).log_sum)


def products(size: Size, share: float) -> Step:
    """One product with a share of the bank and one back, a tile at a time, as a limit."""
    query, pool = problem(size)
    vectors, rows = query.vector.detach(), pool.vector[: round(share * size.rows)]

    def step() -> Tensor:
        back = torch.zeros_like(vectors)
        for keys in rows.split(8192):
            back.addmm_(vectors @ keys.T, keys)
        return back

    return step


def scan(size: Size) -> Step:
    """All labels for each query."""
    query, pool = problem(size)
    label = pool.clusters[:, 0].contiguous()

    def draw() -> Tensor:
        mates = (torch.where(label == mine)[0] for mine in query.clusters[:, 0])
        return torch.cat([mate[torch.randint(len(mate), (1,))] for mate in mates])

    return draw


def by_table(size: Size) -> Step:
    """A table of queries × rows, in which the r-th mate of each query is looked up, with a random r."""
    query, pool = problem(size)

    def draw() -> Tensor:
        upto = (pool.clusters[:, 0] == query.clusters).cumsum(1, dtype=torch.int32)
        nth = (torch.rand(size.queries, 1) * upto[:, -1:]).int() + 1
        return torch.searchsorted(upto, nth)

    return draw


def by_index(size: Size) -> Step:
    """The memory's index, which is built once, before timing starts."""
    query, pool = problem(size)
    return lambda: ClusterMate()(query, (), pool, 0).key


def loop(size: Size) -> Step:
    """Rows sorted by label, then the mean of each cluster."""
    _, pool = problem(size)
    label, bank = pool.clusters[:, 0], pool.vector

    def centroids() -> Tensor:
        order = label.argsort()
        labels, sizes = label[order].unique_consecutive(return_counts=True)
        mean = bank.new_zeros(size.clusters, WIDTH)
        for cluster, rows in zip(labels.tolist(), order.split(sizes.tolist()), strict=True):
            mean[cluster] = bank[rows].mean(0)
        return mean

    return centroids


def running_sums(size: Size, index: bool = False) -> Step:
    """Sums that follow the rows of the queries, a tenth of which change their label."""
    query, pool = problem(size)
    members, label, image = Members(), pool.clusters.clone(), query.image.unique()
    total, count = torch.zeros(size.clusters, WIDTH, dtype=torch.float64), torch.zeros(size.clusters, dtype=torch.int64)
    clustering = Clustering(pool.vector, label[:, 0], torch.zeros(size.clusters, WIDTH), total, count, members)
    clustering.recount()
    if index:
        members.find(label, query.clusters)
    labels, vectors = clustering.label[image], pool.vector[image]

    def move() -> Tensor:
        labels[::10] = torch.randint(size.clusters, (len(labels[::10]),))
        clustering.move(image, labels, vectors)
        return total

    return move


CASES: dict[str, tuple[str, Callable[[Size], Step]]] = {
    "released": ("released", released),
    "exact": ("released", lambda size: ours(size, exact(size))),
    "subset": ("released", lambda size: ours(size, subset(size))),
    "two products with the bank": ("released", lambda size: products(size, 1.0)),
    "two products with the subset": ("released", lambda size: products(size, 10 * size.negatives / size.rows)),
    "mates: scan": ("mates: scan", scan),
    "mates: table": ("mates: scan", by_table),
    "mates: index, once": ("mates: scan", by_index),
    "mates: index": ("mates: scan", by_index),
    "centroids: loop": ("centroids: loop", loop),
    "centroids: sums, once": ("centroids: loop", running_sums),
    "centroids: sums": ("centroids: loop", running_sums),
    "centroids: sums, index": ("centroids: loop", partial(running_sums, index=True)),
}
"""For each case, the case it is compared with, and a function that prepares it."""

SHORT = {"mates: index": 20, "centroids: sums": 20, "centroids: sums, index": 20}
"""Number of calls in a row, for cases that take less than a few milliseconds."""

LARGE = ("released", "exact", "subset", "mates: table")
"""Cases whose peak memory is measured, each in its own process."""


def error(size: Size, rules: tuple[Rule, ...]) -> float:
    """Error of the gradient for four queries, relative to the table's."""
    query, pool = problem(size)
    four = query.rows(slice(0, 4))
    ours, truth = (
        torch.autograd.grad(way(four, pool, rules, TEMPERATURE, 0).log_sum.sum(), query.vector)[0]
        for way in (sum_negatives, sum_table)
    )
    return ((ours - truth).norm() / truth.norm()).item()


def measure(size: Size, rounds: int) -> list[dict[str, Any]]:
    """A row for each case."""
    seconds = interleave({name: case[1](size) for name, case in CASES.items()}, rounds, calls=SHORT)
    rows = []
    for name, (base, _) in CASES.items():
        times = sorted(seconds[name])
        row: dict[str, Any] = {"bank": size.rows, "queries": size.queries, "case": name}
        row |= {"ms": round(1e3 * times[len(times) // 2], 2)}
        row |= {f"times faster than {base.split()[-1]}": round(speedup(seconds, name, base), 2)}
        row |= {"gradient error": error(size, RULES[name](size)) if name in RULES else None}
        row |= {"peak MiB": round(fresh(__file__, "--peak", name, "--rows", str(size.rows))) if name in LARGE else None}
        rows.append(row)
        print(row, flush=True)
    return rows


def main() -> None:
    """Time all cases in turn, write results/interclr.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="for every size; by default fewer the larger the bank is")
    parser.add_argument("--rows", type=int, choices=SIZES, help="one size only; nothing is written")
    parser.add_argument("--peak", choices=CASES)
    options = parser.parse_args()
    if options.peak:
        print(measured_peak(CASES[options.peak][1](SIZES[options.rows])))
        return
    rows: list[dict[str, Any]] = []
    for size in [SIZES[options.rows]] if options.rows else SIZES.values():
        rows += measure(size, options.rounds or size.rounds)
        problem.cache_clear()
    if not options.rows:
        write_results("interclr", rows)


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
