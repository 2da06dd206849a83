"""Table 4 of InfoMin at a small budget: MNIST digits over Tiny-ImageNet photographs, all rows, some seeds.

    python benchmarks/moving_mnist.py --data ../shared/data --work /tmp/moving_mnist

The paper contrasts 60,000 clips for 200 epochs: 94,000 steps of 128. A quarter of an hour on two cores allows 400 steps
of 64 for each row. The differences from `vantage reproduce infomin-table-4` are these, all chosen without test images:
the first view is frames 1 and 2 and the second refers to frame 3 (paper: 1 to 10, and 20), a quarter of the work; AdamW
at 0.001, chosen by the training loss, instead of SGD at 0.03; 4,000 training frames for the linear layers and 2,000
test frames. Backgrounds are the first ten classes of tiny-imagenet-50, scaled from 64 to 96 pixels and cropped to 64,
instead of STL-10. With `--published`, only the images differ.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import torch
from timing import write_results

from vantage.data import open_source
from vantage.encoding import Work
from vantage.progress import PlainProgress
from vantage.schedules import CosineByStep
from vantage.studies.moving_mnist import ClipTraining, LinearHeads, Scene
from vantage.studies.reproduce import InfoMinTable4, reproduce
from vantage.training.optimizers import AdamW

PATHS = {
    "digits": "mnist.npz#train",
    "test_digits": "mnist.npz#test",
    "backgrounds": "tiny-imagenet-50.tar.gz#train",
    "test_backgrounds": "tiny-imagenet-50.tar.gz#val",
}


def main() -> None:
    """Compute the missing rows, and write results/moving_mnist.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder that holds the sets")
    parser.add_argument("--work", type=Path, required=True, help="folder for the rows; a second call continues there")
    parser.add_argument("--steps", type=int, default=400, help="steps of 64 clips for each network")
    parser.add_argument("--rate", type=float, default=0.001, help="AdamW's rate, on half a cosine")
    parser.add_argument("--seeds", type=int, default=2, help="repetitions")
    parser.add_argument("--published", action="store_true", help="the paper's clips, batches, epochs and rates")
    options = parser.parse_args()
    torch.set_num_threads(1)
    entry = InfoMinTable4(seeds=options.seeds)
    entry = entry if options.published else brief(entry, options.steps, options.rate)
    sources = {name: open_source(f"{options.data}/{path}") for name, path in PATHS.items()}
    outcome = reproduce(entry, sources, options.work, Work(device="auto", progress=PlainProgress()))
    print(outcome.report.markdown())
    document = json.loads((options.work / f"{entry.name}.json").read_text())
    all_rows = [json.loads(file.read_text()) for file in sorted((options.work / "rows").glob("*.json"))]
    own_rows = [row for row in all_rows if row["seed"] < options.seeds]
    summary = {"settings": document["settings"], "notes": document["notes"], "sets": PATHS}
    write_results("moving_mnist", [summary, *document["rows"], *own_rows])


def brief(entry: InfoMinTable4, steps: int, peak: float) -> InfoMinTable4:
    """The table at a budget of some minutes on one core."""
    adamw, rate = AdamW(weight_decay=0.0), CosineByStep(peak)
    course = ClipTraining(epochs=1, batch_size=64, clips=64 * steps, optimizer=adamw, learning_rate=rate)
    heads = LinearHeads(ClipTraining(epochs=100), frames=4_000)
    scene = Scene(seen=2, last=3)
    return replace(entry, scene=scene, course=course, heads=heads, test_frames=2_000, information_clips=1_280)


if __name__ == "__main__":
    main()
