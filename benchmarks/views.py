"""Views per second: A-SimCLR, A-MoCo2 and A-InfoMin at 32, 64 and 224 pixels, compared with other libraries.

The others are torchvision image by image (PIL, tensors, and tensors through a DataLoader with 2 workers), kornia's
batches, and lightly.

    python benchmarks/views.py [--rounds 5] [--sizes 32 64 224]

All times are CPU time on one core, including worker processes, so a busy machine changes them little; results are
ratios within a run. At 32 and 64 pixels, the engine processes a batch of whole images in memory; at 224, it crops
decoded photos one by one and finishes batches of 16. Peers that are not installed are left out. Images are pieces of
photographs that scikit-image and scikit-learn ship.
"""

import argparse
import random
import resource
from collections.abc import Callable
from typing import NamedTuple

import numpy
import skimage.data
import sklearn.datasets
import torch
import view_peers
from PIL import Image
from timing import interleave, measured_peak, merge_rows, speedup, write_results
from torch.utils.data import DataLoader, Dataset

from vantage.views import Augmentation, Views, infomin_views, moco_v2_views, simclr_views

SHAPES = {32: (32, 32), 64: (64, 64), 224: (300, 400)}
BATCH = {32: 512, 64: 128, 224: 32}
FEWER = {32: 64, 64: 48, 224: 32}
"""Images that a library processes one by one in a round."""
LOADER_IMAGES = {32: 128, 64: 64, 224: 16}
"""Images that a DataLoader processes in a round, with new workers."""


class Case(NamedTuple):
    """Something to time."""

    run: Callable[[], object]
    """What is done in a round."""
    views: int
    """How many views a round makes."""


def recipes(size: int) -> dict[str, Views]:
    """The engine's views; strength .5 and no blur at 32 pixels, as in SimCLR's paper."""
    half = 0.5 if size == 32 else 1.0
    return {
        "A-SimCLR": simclr_views(size, 1, strength=half),
        "A-MoCo2": moco_v2_views(size, 1),
        "A-InfoMin": infomin_views(size, 1),
    }


def pieces(count: int, height: int, width: int) -> list[numpy.ndarray]:
    """Random parts of photographs, all of one size, as (height, width, 3) uint8."""
    examples = [skimage.data.astronaut(), skimage.data.chelsea(), skimage.data.coffee(), skimage.data.rocket()]
    photos = examples + list(sklearn.datasets.load_sample_images().images)
    sources = [photo for photo in photos if photo.shape[0] >= height and photo.shape[1] >= width]
    chance, crops = random.Random(0), []
    for number in range(count):
        photo = sources[number % len(sources)]
        top, left = chance.randrange(photo.shape[0] - height + 1), chance.randrange(photo.shape[1] - width + 1)
        crops.append(numpy.ascontiguousarray(photo[top : top + height, left : left + width]))
    return crops


class ViewsOfImages(Dataset):
    """Views of images, made one at a time."""

    def __init__(self, images: list[torch.Tensor], transform: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self.images, self.transform = images, transform

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, number: int) -> torch.Tensor:
        return self.transform(self.images[number])


def loader_pass(images: list[torch.Tensor], view: Augmentation) -> Callable[[], object]:
    """One pass of a DataLoader with 2 workers, which end with the pass."""
    data = ViewsOfImages(images, view_peers.torchvision_v2(view))
    return lambda: [len(batch) for batch in DataLoader(data, batch_size=16, num_workers=2)]


def ours(views: Views, images: list[torch.Tensor], batch: torch.Tensor | None) -> Callable[[], object]:
    """The engine: a batch in memory, or photos cropped one by one and finished in batches of 16."""
    generator = torch.Generator().manual_seed(0)
    if batch is not None:
        return lambda: views.batch(batch, generator)

    def run() -> None:
        for start in range(0, len(images), 16):
            crops = [views.crop(image, generator)[0] for image in images[start : start + 16]]
            views.finish((torch.stack(crops),), generator)

    return run


def cases(name: str, views: Views, size: int) -> dict[str, Case]:
    """Every way to make these views."""
    arrays, view, fewer = pieces(BATCH[size], *SHAPES[size]), views.views[0], FEWER[size]
    pictures = [Image.fromarray(array) for array in arrays]
    images = [torch.from_numpy(array).permute(2, 0, 1) for array in arrays]  # laid out as decoders do
    batch = torch.stack([image.contiguous() for image in images])
    first, second = view_peers.torchvision_v1(view), view_peers.torchvision_v2(view)
    cases = {
        "torchvision v1 PIL": Case(lambda: [first(picture) for picture in pictures[:fewer]], fewer),
        "torchvision v2 per image": Case(lambda: [second(image) for image in images[:fewer]], fewer),
        "torchvision v2, DataLoader, 2 workers": Case(
            loader_pass(images[: LOADER_IMAGES[size]], view), LOADER_IMAGES[size]
        ),
    }
    if (theirs := view_peers.lightly(name, size)) is not None:
        cases["lightly"] = Case(lambda: [theirs(picture) for picture in pictures[: fewer // 2]], fewer // 2 * 2)
    if (kornia_views := view_peers.kornia(view)) is not None:
        cases["kornia batch"] = Case(lambda: kornia_views(batch), len(batch))
    cases["vantage"] = Case(ours(views, images, batch if size < 224 else None), len(images))
    if size == 224 and name == "A-MoCo2":
        chance = torch.Generator().manual_seed(0)
        cases["vantage, crop only"] = Case(lambda: [views.crop(image, chance) for image in images], len(images))
    return cases


def processor_time() -> float:
    """Seconds of this process and of the workers that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in usages)


def measure(setting: str, cases: dict[str, Case], rounds: int) -> list[dict]:
    """Time the cases, print them, and return the rows for the results file."""
    seconds = interleave({name: case.run for name, case in cases.items()}, rounds, processor_time)
    per_view = {name: [time / cases[name].views for time in times] for name, times in seconds.items()}
    rows = []
    for name, times in per_view.items():
        against = {base: round(speedup(per_view, name, base), 2) for base in per_view if base != name}
        row = {
            "setting": setting,
            "case": name,
            "microseconds_per_view": round(sorted(times)[len(times) // 2] * 1e6, 1),
            "times_faster_than": against if name.startswith("vantage") else {},
            "peak_mib": round(measured_peak(cases[name].run)),
            "rounds": len(times),
        }
        rows.append(row)
        ratios = ", ".join(f"{times}x {base}" for base, times in row["times_faster_than"].items())
        print(f"{setting:16} {name:38} {row['microseconds_per_view']:>9} us/view  {ratios}", flush=True)
    return rows


def main() -> None:
    """Run the settings of each size, and write results/views.json; rows of other sizes stay."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[32, 64, 224], choices=[32, 64, 224])
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    rows = []
    for size in options.sizes:
        for name, views in recipes(size).items():
            rows += measure(f"{name}, {size} px", cases(name, views, size), options.rounds)
    print("written:", write_results("views", merge_rows("views", "setting", rows)))


if __name__ == "__main__":
    main()
