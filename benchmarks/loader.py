"""Photographs per second from JPEG to two uint8 crops of 224 pixels by two workers, compared with lightly's loader.

    python benchmarks/loader.py --photos ../shared/data/imagenet-sample-200.tar

Our workers only crop; color, blur and normalization run on whole batches on the training device, and `views.py` times
them. lightly's workers do everything. Times are wall time; the workers of all loaders stay alive.
"""

import argparse
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import UInt8
from PIL import Image
from timing import speedup, write_results
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

from vantage.data import BatchOrder, Crops, Folder, SourceSubset, StreamedImages, open_source
from vantage.views import moco_v2_views

BATCH = 64


@dataclass(frozen=True)
class TorchvisionCrops:
    """Two random resized crops by torchvision: the least that uint8 crops cost."""

    def crop(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> tuple[UInt8[Tensor, "3 s s"], ...]:
        torch.manual_seed(int(torch.randint(2**31, (), generator=generator)))
        random_crop = v2.RandomResizedCrop(224, scale=(0.2, 1.0), antialias=True)
        return random_crop(image), random_crop(image)


class LightlyPhotos(Dataset[list[Tensor]]):
    """The same files as lightly reads them: Pillow, then its MoCo v2 transform."""

    def __init__(self, paths: list[Path]) -> None:
        from lightly.transforms import MoCoV2Transform

        self.paths, self.transform = paths, MoCoV2Transform(input_size=224)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> list[Tensor]:
        with Image.open(self.paths[number]) as picture:
            return self.transform(picture.convert("RGB"))


def main() -> None:
    """Time the loaders in turn and write results/loader.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, required=True, help="a folder or a tar of JPEG photographs")
    parser.add_argument("--repeat", type=int, default=10, help="times that each photograph is read in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        cases = make_cases(options.photos, Path(folder), options.repeat, options.workers)
        rates: dict[str, list[float]] = {name: [] for name in cases}
        seconds: dict[str, list[float]] = {name: [] for name in cases}
        for turn in range(options.rounds + 1):
            for name, case in cases.items():
                start = time.perf_counter()
                photos = case()
                duration = time.perf_counter() - start
                if turn:
                    seconds[name].append(duration / photos)
                    rates[name].append(photos / duration)
        rows = []
        for name in cases:
            row: dict[str, object] = {"loader": name, "workers": options.workers}
            row["photos_per_second"] = round(statistics.median(rates[name]), 1)
            row["rounds"] = [round(rate, 1) for rate in rates[name]]
            if "lightly" in cases:
                row["times_lightly"] = round(speedup(seconds, name, "lightly"), 2)
            rows.append(row)
            print(row)
        print(write_results("loader", rows))
        del cases  # ends the workers before their files go


def make_cases(photos: Path, folder: Path, repeat: int, workers: int) -> dict[str, Callable[[], int]]:
    """The loaders, each a function that reads every photograph `repeat` times and returns how many it read."""
    source = open_source(photos, cache=folder / "cache")
    for number in range(len(source)):
        name = source.name(number).rpartition("/")[2]
        (folder / name).write_bytes(source.file_bytes(number))  # pyright: ignore[reportAttributeAccessIssue]
    files = open_source(folder, cache=folder / "cache")
    assert isinstance(files, Folder)
    repeats = SourceSubset(files, list(range(len(files))) * repeat)
    crops: dict[str, Crops] = {"vantage": moco_v2_views(), "vantage, torchvision's crops": TorchvisionCrops()}
    cases: dict[str, Callable[[], int]] = {}
    for name, views in crops.items():
        stream = StreamedImages(repeats, views, BatchOrder(BATCH), num_workers=workers)
        cases[name] = lambda stream=stream: sum(len(batch.image) for batch in stream.batches(0))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dataset = LightlyPhotos([files.path(number % len(files)) for number in range(len(repeats))])
    except ImportError as error:
        print(f"lightly is not timed: {error}")
        return cases
    loader = DataLoader(
        dataset, BATCH, shuffle=True, drop_last=True, num_workers=workers, persistent_workers=True, prefetch_factor=2
    )
    cases["lightly"] = lambda: sum(len(batch[0]) for batch in loader)
    return cases


if __name__ == "__main__":
    main()
