"""The product behind all similarities, queries × keys, by every public way that torch and NumPy offer on a CPU.

    python benchmarks/similarities.py            # one thread, float32 unless a way says bfloat16

`mm` is what Vantage uses (MKL in torch's builds). `linear` is `torch.nn.functional.linear`; `convolution` has the keys
as 1x1 filters, which oneDNN computes; `numpy` is NumPy's product (OpenBLAS) on the same memory; `bfloat16` converts
both sides and multiplies. "share of a step" compares the time that the fastest float32 way saves, in the forward pass
and in the backward pass to the query, with a whole training step of ResNet-9 of width 16 on 256 images of 32 pixels.
"""

import argparse
from collections.abc import Callable
from functools import partial
from statistics import median

import torch
import torch.nn.functional as F
from timing import interleave, speedup, write_results
from torch import Tensor

from vantage.encoders import ResNet9

POOLS = {
    "in the batch": (512, 512, 128),
    "a chunk of a queue": (256, 2_048, 128),
    "a short queue at once": (256, 4_096, 128),
    "MoCo's queue at once": (256, 65_536, 128),
}
"""Queries, keys and width of each product. Vantage takes a queue in chunks of 2,048 keys, whose logits stay in the
cache."""


def ways(query: Tensor, key: Tensor) -> dict[str, Callable[[], object]]:
    """Every way to compute the table of similarities."""
    filters, columns = key[:, :, None, None], query.T.contiguous()[None, :, :, None]
    rows, keys = query.numpy(), key.numpy()
    return {
        "mm": lambda: query @ key.T,
        "linear": lambda: F.linear(query, key),
        "convolution": lambda: F.conv2d(columns, filters),
        "numpy": lambda: rows @ keys.T,
        "bfloat16": lambda: query.bfloat16() @ key.bfloat16().T,
    }


def training_step(network: torch.nn.Module, images: Tensor) -> None:
    """Forward and backward pass of two views in bfloat16."""
    with torch.autocast("cpu", torch.bfloat16):
        for _ in range(2):
            network(images).sum().backward()


def main() -> None:
    """Time every product, and one step, and write results/similarities.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    network = ResNet9(16).build().to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    images = torch.randn(256, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    step = median(interleave({"step": partial(training_step, network, images)}, 5)["step"])
    rows: list[dict[str, object]] = []
    for name, (queries, keys, width) in POOLS.items():
        query, key = (F.normalize(torch.randn(count, width), dim=1) for count in (queries, keys))
        seconds = interleave(ways(query, key), options.rounds)
        fastest = min((way for way in seconds if way != "bfloat16"), key=lambda way: median(seconds[way]))
        saved = 2 * (median(seconds["mm"]) - median(seconds[fastest]))
        for way, times in seconds.items():
            row = {"pool": name, "size": f"{queries:,} × {keys:,} × {width}", "way": way}
            row |= {"milliseconds": round(1_000 * median(times), 2)}
            rows.append(row | {"times as fast as mm": round(speedup(seconds, way, "mm"), 2)})
        rows.append({"pool": name, "fastest float32 way": fastest, "share of a step": round(saved / step, 4)})
    write_results("similarities", rows)


if __name__ == "__main__":
    main()
