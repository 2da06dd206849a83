"""Each method of the papers compared with its base on real images: same steps, views and network, several seeds.

    python benchmarks/methods_quality.py --data ../shared/data --seeds 0 1 2

The budget is small and fixed: 3,000 training images, 5 epochs of batches of 64 (230 steps), a network of four
convolutions on 32 pixels, the views of MoCo v2 (`everything` has InfoMin's, which are part of it), and SGD at 0.0075,
which is 0.03 for 256 images by the linear rule, decayed by step. It can show differences larger than the spread over
seeds, and nothing else; published numbers take 200 epochs of 50,000 images or more. Nothing was chosen by labels.
CIFAR-10 here is recompressed as JPEG (quality 75). Evaluated on 2,500 test images by kNN (k = 20) and logistic
regression on cached features, beside raw pixels and a random encoder for each seed.

Pairs: ring_ir and instance_discrimination (at Ring's τ of 0.07), ring_moco and moco_v1, jcl and moco_v2 (at JCL's τ of
0.2), interclr and its λ = 1 (weight 0 for the branch between images), everything and moco_v2.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from quality import PATHS, summary, write_small_images
from timing import write_results

import vantage
from vantage.data import open_source
from vantage.encoders import Convolutions, Momentum, Shared
from vantage.encoding import Work
from vantage.estimators import InfoNCE
from vantage.evaluate import KNN, LinearCached
from vantage.frozen.encoder import load, random_encoder, raw_pixels
from vantage.progress import PlainProgress
from vantage.schedules import Constant, CosineByStep
from vantage.training.loop import train
from vantage.training.optimizers import SGD
from vantage.views import WithJigsaw, moco_v2_views

IMAGES, TEST_IMAGES, EPOCHS, BATCH = 3_000, 2_500, 5, 64


def warm_ir(size: int) -> vantage.Run:
    """Instance discrimination at the temperature of its ring."""
    run = vantage.instance_discrimination(size)
    return replace(run, branches=(replace(run.branches[0], estimator=InfoNCE(0.07)),))


def cool_moco(size: int) -> vantage.Run:
    """MoCo v2 at JCL's temperature."""
    run = vantage.moco_v2(size)
    return replace(run, branches=(replace(run.branches[0], estimator=InfoNCE(0.2)),))


def intra_only(size: int) -> vantage.Run:
    """InterCLR at λ = 1."""
    run = vantage.interclr(size)
    intra, inter = run.branches
    return replace(run, branches=(replace(intra, weight=Constant(1.0)), replace(inter, weight=Constant(0.0))))


METHODS: dict[str, Callable[[int], vantage.Run]] = {
    "instance_discrimination": warm_ir,
    "ring_ir": vantage.ring_ir,
    "moco_v1": vantage.moco_v1,
    "ring_moco": vantage.ring_moco,
    "moco_v2": cool_moco,
    "jcl": vantage.jcl,
    "interclr, λ = 1": intra_only,
    "interclr": vantage.interclr,
    "everything": vantage.everything,
}


def main() -> None:
    """Run every seed, set and method, and write the results after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder that holds the sets")
    parser.add_argument("--sets", nargs="+", choices=PATHS, default=list(PATHS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--join", nargs="+", type=Path, help="only join these results files into one table")
    parser.add_argument("--name", default="methods_quality", help="name of the results file")
    options = parser.parse_args()
    if options.join:
        rows = [row for path in options.join for row in json.loads(path.read_text())["rows"] if "seed" in row]
        write_results(options.name, [*rows, *summary(rows)])
        return
    rows = []
    for name in options.sets:
        folder = Path(tempfile.mkdtemp(prefix="vantage-quality-"))
        paths = [f"{options.data}/{path}" for path in PATHS[name]]
        counts = (IMAGES, TEST_IMAGES)
        paths = [write_small_images(open_source(p), n, folder / f"{n}.npz") for p, n in zip(paths, counts, strict=True)]
        for seed in options.seeds:
            for method in options.methods:
                measures = measure(method, seed, paths, folder / "run", baselines=method == options.methods[0])
                rows.append({"set": name, **measures})
                print(rows[-1], flush=True)
                write_results(options.name, [*rows, *summary(rows)])
        shutil.rmtree(folder)


def measure(method: str, seed: int, paths: list[str], folder: Path, baselines: bool) -> dict[str, Any]:
    """Train once and evaluate: one row."""
    source, test = (open_source(path) for path in paths)
    run = replace(brief(METHODS[method](32).fit(len(source))), seed=seed, data=vantage.Data(paths[0]))
    start = time.perf_counter()
    if not train(run, folder, PlainProgress()).finished:
        raise SystemExit("the run was stopped: nothing is judged")
    row: dict[str, Any] = {"recipe": method, "seed": seed, "epochs": run.epochs, "batch": run.batch_size}
    row |= {"train images": len(source), "test images": len(test), "optimizer": repr(run.optimizer)}
    row |= {"train seconds": round(time.perf_counter() - start)}
    last = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    row |= {name: round(last[name], 3) for name in ("loss", "rank", "uniformity")}
    encoders = [(method, load(folder))]
    if baselines:
        encoders += [("raw pixels", raw_pixels(run)), ("random encoder", random_encoder(run, seed=seed))]
    for protocol in (KNN(k=20), LinearCached()):
        for name, encoder in encoders:
            outcome = protocol(encoder, source, test, Work(num_workers=1))
            row[f"{protocol.name}: {name if name in ('raw pixels', 'random encoder') else 'trained'}"] = round(
                outcome.accuracy.top1, 2
            )
    shutil.rmtree(folder)
    return row


def brief(run: vantage.Run) -> vantage.Run:
    """The run with the network, views, optimizer and steps that all methods share."""
    role = run.encoders
    assert isinstance(role, Shared | Momentum)
    role = replace(role, encoder=replace(role.encoder, backbone=Convolutions()))
    views = run.views if isinstance(run.views, WithJigsaw) else moco_v2_views(32, count=run.views.count)
    run = replace(run, encoders=role, views=views).rescale(BATCH, EPOCHS)
    return replace(run, optimizer=SGD(momentum=0.9, weight_decay=5e-4), learning_rate=CosineByStep(0.03 * BATCH / 256))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
