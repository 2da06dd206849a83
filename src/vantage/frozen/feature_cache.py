"""Features of frozen encoders, computed once and cached.

n: images   b: images of a batch   d: width of the features
"""

from collections.abc import Callable, Generator, Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.data.sources.source import Source, cache_key
from vantage.encoding import Work
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.features import batches, embed
from vantage.machine.usual_torch import usual_torch
from vantage.processes.sharing import true_on_all, write_on_first
from vantage.storage.arrays import cache_rows, kept_rows
from vantage.storage.cache import hash_of

__all__ = ["features_in_parts", "features_of"]


@usual_torch()
def features_of(encoder: FrozenEncoder, source: Source, work: Work) -> Float[Tensor, "n d"]:
    """Features of every image, on the CPU, from the cache if the same encoder has encoded the same images before.

    Features of more than `work.resident_bytes` are memory-mapped: the system reads them as they are used, and drops
    them when memory is short. Features are held in memory if they cannot be cached: if the cache is read-only, if
    another run is filling it, or if they would take more than half of the free disk space. Several processes share the
    images, so all must call this. The first writes the cache, and the others read it if they have the same folder.
    """
    facts = (encoder.digest(), cache_key(source), repr(encoder.view), work.resolved_device().type, "2")
    file = work.cache / "features" / f"{hash_of(facts)}.npy"

    def parts(start: int) -> Generator[Tensor, None, None]:
        return (part for _, part in batches(encoder, source, work, start))

    def make(parts: Callable[[int], Iterator[Tensor]]) -> None:
        shape, facts = (len(source), encoder.width), {"batch": work.batch_size}  # the same batches, the same rounding
        cache_rows(file, shape, torch.float32, facts, parts)

    rows = kept_rows(file, len(source))
    if not true_on_all(rows is not None):
        write_on_first(make, parts)
        rows = kept_rows(file, len(source))
    if not true_on_all(rows is not None) or rows is None:
        return embed(encoder, source, work).vector
    return rows.part(0, rows.count) if rows.bytes <= work.resident_bytes else rows.memory_map()


def features_in_parts(encoder: FrozenEncoder, source: Source, work: Work) -> Iterator[Float[Tensor, "b d"]]:
    """Features of every image in order, on the device of the work, batch by batch. They come from the cache if those of
    all images stay within `work.resident_bytes`; otherwise they are computed as they are read, and not cached."""
    if 4 * len(source) * encoder.width <= work.resident_bytes:
        parts: Iterator[Tensor] = iter(features_of(encoder, source, work).split(work.batch_size))
    else:
        parts = (part for _, part in batches(encoder, source, work))
    for part in parts:
        yield part.to(work.resolved_device())
