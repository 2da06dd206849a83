"""Count the images that BatchNorm sees, for every recipe and variant at its paper's setting on 1, 2, 4 and 8 gloo
processes: `python benchmarks/batch_norm_groups.py`.

The network is small (`tests/support/small_recipes.py`), but its BatchNorm and the batch are those of the recipe. The
first and the last process each take one of their vectors, and count the images of all processes on which it depends:
those with a gradient other than 0. `each_process` is the count from before the setting applied to the joint batch.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import normalizing  # noqa: E402
import ranks  # noqa: E402
from timing import write_results  # noqa: E402

from vantage.composition.fitting import parts_of  # noqa: E402
from vantage.encoders import Encoder  # noqa: E402


def count_images(processes: int) -> dict[str, int]:
    """By recipe, the images that BatchNorm sees on this number of processes."""
    with tempfile.TemporaryDirectory() as folder:
        first, *other_ranks = ranks.spawn(normalizing.count_all, Path(folder), processes)
    numbers = {name: images.tolist() for name, images in first.items()}
    assert all({name: images.tolist() for name, images in rank.items()} == numbers for rank in other_ranks)
    assert all(len(images) == 1 for images in numbers.values()), numbers
    return {name: images for name, (images,) in numbers.items()}


def main() -> None:
    """Count on each number of processes, and write the table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    counts = {processes: count_images(processes) for processes in normalizing.COUNTS}
    rows = []
    for recipe in normalizing.EVERY:
        run, name = recipe(224), recipe.__name__
        (groups, *other_groups) = {
            part.normalization.groups for part in parts_of(run.encoders) if isinstance(part, Encoder)
        }
        assert not other_groups
        row = {
            "recipe": name,
            "batch_size": run.batch_size,
            "groups": groups,
            "images": {processes: counts[processes][name] for processes in normalizing.COUNTS},
            "each_process": {processes: run.batch_size // processes // groups for processes in normalizing.COUNTS},
        }
        rows.append(row)
        print(f"{name:<32}{run.batch_size:>5}{groups:>3}  {row['images']}")
    write_results("batch_norm_groups", rows)


if __name__ == "__main__":
    main()
