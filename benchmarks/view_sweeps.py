"""InfoMin's figures on real images: crop bounds and color spaces, I_NCE on held-out images against accuracy.

    python benchmarks/view_sweeps.py crop --data ../shared/data --work /tmp/view_sweeps
    python benchmarks/view_sweeps.py color --data ../shared/data --work /tmp/view_sweeps

The budget is small and fixed, so that each sweep takes some minutes on one core: 3,000 images of tiny-imagenet-50 at 32
pixels, batches of 64, networks of four convolutions, InfoNCE within the batch at τ = 0.1 with the loss of both
directions, AdamW at 1e-3 decayed to 0 by step, three seeds. I_NCE is measured on 1,500 of the 2,500 validation images,
drawn twice, with K = 1,499 negatives. Accuracy is measured on all 2,500, by logistic regression on cached features and
by kNN (k = 20). Nothing was chosen by their labels. Finished work is skipped when a sweep is run again.

crop: SimCLR's views (jitter 0.5) with crops from a fraction c of the area (arXiv 2005.10243, Figs. 5 and 13).
color: one crop and flip; the {first | last two} channels of a space each go to their own network (Fig. 4), and the
features are concatenated. Its logistic regressions choose among four penalties and stop after 50 iterations. Each space
has its own raw pixels.
"""

import argparse
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import torch
from timing import RESULTS, write_results

import vantage
from vantage.branch import Branch
from vantage.data import open_source
from vantage.encoders import MLP, Encoder, PerView, Role, Shared
from vantage.encoders.backbones.convolutions import Convolutions
from vantage.encoding import Work
from vantage.estimators import InfoNCE
from vantage.evaluate import KNN, LinearCached
from vantage.memory import InBatch
from vantage.negatives import OtherImages
from vantage.positives import OtherViews
from vantage.progress import PlainProgress
from vantage.schedules import CosineByStep
from vantage.studies.analyse import HeldOutInformation
from vantage.studies.sweep import ColorSpaces, CropBound, Study, Sweep, run_study, write_sweep
from vantage.training.images import open_images
from vantage.training.optimizers import AdamW
from vantage.views import ViewMaker, cmc_views, simclr_views

SIZE, BATCH, WIDTH = 32, 64, 128
LINEAR = {"crop": LinearCached(), "color": LinearCached((1e-4, 1e-3, 1e-2, 1e-1), iterations=50)}
SPACES = ("RGB", "XYZ", "HSV", "YCbCr", "YDbDr", "Lab")


def main() -> None:
    """Run one sweep, and write its rows and picture to results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", choices=SWEEPS)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder that holds the sets")
    parser.add_argument("--work", type=Path, required=True, help="folder for the runs; finished ones are not repeated")
    parser.add_argument("--images", type=int, default=3_000, help="training images")
    parser.add_argument("--epochs", type=int, default=6, help="passes over them")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options = parser.parse_args()
    sweep, base = SWEEPS[options.sweep]()
    path = f"{options.data}/tiny-imagenet-50.tar.gz"
    data = vantage.Data(f"{path}#train", num_workers=1, max_images=options.images)
    run = replace(base, epochs=options.epochs, data=data, hardware=vantage.Hardware("cpu", precision="32-true"))
    information, protocols = HeldOutInformation(images=1_500, draws=2), (LINEAR[options.sweep], KNN(k=20))
    small_study = Study(sweep, run, tuple(options.seeds), information, protocols, discard=True)
    train, test = open_images(data)[0], open_source(f"{path}#val")
    result = run_study(
        small_study, train, test, options.work / options.sweep, Work("cpu", num_workers=1), PlainProgress()
    )
    rows = [{"summary": row} for row in result.table()]
    about = {"axis": result.axis, "what": result.caption(), "base": repr(replace(run, data=vantage.Data()))}
    write_results(f"views_{options.sweep}", [about, *rows, *map(asdict, (*result.rows, *result.baselines))])
    files = write_sweep(result, options.work / options.sweep)
    shutil.copy(next(path for path in files if path.suffix == ".png"), RESULTS / f"views_{options.sweep}.png")
    print("\n".join(result.lines()))


def crop() -> tuple[Sweep, vantage.Run]:
    """Crop bounds of SimCLR's views."""
    encoder = Encoder(Convolutions(), MLP(256, WIDTH))
    values = (0.05, 0.1, 0.2, 0.4, 0.7)
    return CropBound(values), _run("crop", simclr_views(SIZE, strength=0.5), Shared(encoder))


def color() -> tuple[Sweep, vantage.Run]:
    """Color spaces, divided between two networks of half the width."""
    widths = (16, 32, 64, 128)
    networks = tuple(Encoder(Convolutions(widths, channels), MLP(128, WIDTH)) for channels in (1, 2))
    return ColorSpaces(SPACES), _run("color", cmc_views(SIZE), PerView(networks))


def _run(name: str, views: ViewMaker, encoders: Role) -> vantage.Run:
    forward = Branch(InBatch(), OtherViews(), (OtherImages(),), InfoNCE(0.1), query=0, keys=(1,), pool=(1,))
    backward = replace(forward, query=1, keys=(0,), pool=(0,))
    optimizer, rate = AdamW(weight_decay=1e-2), CosineByStep(1e-3)
    return vantage.Run(name, views, encoders, (forward, backward), optimizer, rate, batch_size=BATCH)


SWEEPS: dict[str, Callable[[], tuple[Sweep, vantage.Run]]] = {"crop": crop, "color": color}


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
