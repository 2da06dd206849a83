"""Count the images that BatchNorm sees, for every recipe at its paper's setting on 1, 2, 4 and 8 gloo processes:
`python benchmarks/batch_norm_groups.py`.

Process 0 asks one output of a recipe's BatchNorm which images of all processes it depends on: those whose gradient is
not 0. The layer is the one that the recipe's choice of normalization makes; the images are single pixels.
`each_process` is what the choice meant before it belonged to the joint batch.
"""

import argparse
import json
import socket
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as spawning
from timing import write_results
from torch import nn

from vantage import processes
from vantage.composition.fitting import parts_of
from vantage.encoders import Encoder
from vantage.recipes import RECIPES
from vantage.training.run import Run

COUNTS = (1, 2, 4, 8)


def images_seen(run: Run) -> int:
    """Images of the joint batch that one output depends on; the same for every encoder of the run."""
    numbers = set()
    for encoder in parts_of(run.encoders):
        if isinstance(encoder, Encoder):
            norm = encoder.normalization.convert(nn.BatchNorm2d(1))
            images = torch.randn(run.batch_size // processes.count(), 1, 1, 1, requires_grad=True)
            (norm(images)[0] * (processes.rank() == 0)).sum().backward()
            assert images.grad is not None
            numbers.add(int(processes.total((images.grad != 0).sum())))
    (number,) = numbers
    return number


def work(rank: int, count: int, port: int, file: str) -> None:
    """What each process does; the first writes what all counted."""
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=count)
    counts = {recipe.__name__: images_seen(recipe(224)) for recipe in RECIPES}
    if rank == 0:
        Path(file).write_text(json.dumps(counts))
    dist.destroy_process_group()


def counted(count: int) -> dict[str, int]:
    """Images seen by recipe on so many processes."""
    with socket.socket() as free, tempfile.TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        file = str(Path(folder) / "seen.json")
        spawning.spawn(work, (count, port, file), nprocs=count)  # pyright: ignore[reportPrivateImportUsage]
        return json.loads(Path(file).read_text())


def main() -> None:
    """Count on each number of processes, and write the table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    counts = {count: counted(count) for count in COUNTS}
    rows = []
    for recipe in RECIPES:
        run, name = recipe(224), recipe.__name__
        (groups, *others) = {part.normalization.groups for part in parts_of(run.encoders) if isinstance(part, Encoder)}
        assert not others
        row = {
            "recipe": name,
            "batch_size": run.batch_size,
            "groups": groups,
            "images": {count: counts[count][name] for count in COUNTS},
            "each_process": {count: run.batch_size // count // groups for count in COUNTS},
        }
        rows.append(row)
        print(f"{name:<32}{run.batch_size:>5}{groups:>3}  {row['images']}")
    write_results("batch_norm_groups", rows)


if __name__ == "__main__":
    main()
