"""Views per second: the batched engine against lightly, torchvision per image, and kornia's batches.

    python benchmarks/views.py [--threads 1] [--rounds 7] [--compiled]

32 pixels: A-SimCLR (strength 0.5, no blur) and A-MoCo2 of a batch of 512; 224 pixels: A-MoCo2 from decoded photos, on
one core. Peers that are not installed are left out. `--compiled` adds the engine with its hue core through
torch.compile. Inputs are photographs that scikit-image and scikit-learn ship, cut into pieces: speed depends on content
only through PIL.
"""

import argparse
import importlib.util
import random
from collections.abc import Callable

import numpy
import skimage.data
import sklearn.datasets
import torch
from PIL import Image, ImageFilter
from timing import interleave, measured_peak, speedup, write_results
from torchvision import transforms as v1
from torchvision.transforms import v2

from vantage.views import IMAGENET, Views, colour, moco_v2, simclr

BATCH, PHOTOS = 512, 64
Cases = dict[str, Callable[[], object]]


def photographs() -> list[numpy.ndarray]:
    """Colour photographs as (height, width, 3) uint8."""
    shipped = [skimage.data.astronaut(), skimage.data.chelsea(), skimage.data.coffee(), skimage.data.rocket()]
    return shipped + list(sklearn.datasets.load_sample_images().images)


def pieces(count: int, height: int, width: int) -> list[numpy.ndarray]:
    """Random parts of the photographs, all of one size."""
    chance, sources = (
        random.Random(0),
        [photo for photo in photographs() if photo.shape[0] >= height and photo.shape[1] >= width],
    )
    found = []
    for number in range(count):
        photo = sources[number % len(sources)]
        top, left = chance.randrange(photo.shape[0] - height + 1), chance.randrange(photo.shape[1] - width + 1)
        found.append(numpy.ascontiguousarray(photo[top : top + height, left : left + width]))
    return found


class PillowBlur:
    """The papers' blur."""

    def __call__(self, image: Image.Image) -> Image.Image:
        return image.filter(ImageFilter.GaussianBlur(radius=random.uniform(0.1, 2.0)))


def per_image(size: int, flip_first: bool, blur: bool) -> tuple[v1.Compose, v2.Compose]:
    """The same view by torchvision's first and second transforms."""
    mean, std = IMAGENET.mean, IMAGENET.std
    flip = [v1.RandomHorizontalFlip()]
    first = [v1.RandomApply([v1.ColorJitter(0.4, 0.4, 0.4, 0.1)], 0.8), v1.RandomGrayscale(0.2)]
    first += [v1.RandomApply([PillowBlur()], 0.5)] if blur else []
    first = flip + first if flip_first else first + flip
    second = [v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.4, 0.1)], 0.8), v2.RandomGrayscale(0.2)]
    second += [v2.RandomApply([v2.GaussianBlur(23, (0.1, 2.0))], 0.5)] if blur else []
    second = [v2.RandomHorizontalFlip(), *second] if flip_first else [*second, v2.RandomHorizontalFlip()]
    return (
        v1.Compose([v1.RandomResizedCrop(size, (0.2, 1.0)), *first, v1.ToTensor(), v1.Normalize(mean, std)]),
        v2.Compose(
            [v2.RandomResizedCrop(size, (0.2, 1.0)), *second, v2.ToDtype(torch.float32, True), v2.Normalize(mean, std)]
        ),
    )


def kornia_batch(size: int) -> Callable[[torch.Tensor], object] | None:
    """The same view by kornia, whole batches at once."""
    if importlib.util.find_spec("kornia") is None:
        return None
    import kornia.augmentation as kornia

    sequence = kornia.AugmentationSequential(
        kornia.RandomResizedCrop((size, size), scale=(0.2, 1.0)),
        kornia.RandomHorizontalFlip(),
        kornia.ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8),
        kornia.RandomGrayscale(p=0.2),
        kornia.Normalize(torch.tensor(IMAGENET.mean), torch.tensor(IMAGENET.std)),
        data_keys=["input"],
    )
    return lambda batch: sequence(batch.float().div_(255))


def lightly_transform(size: int) -> Callable[[Image.Image], object] | None:
    """lightly's SimCLR transform at 32 pixels, its MoCo v2 transform at 224; each gives two views."""
    if importlib.util.find_spec("lightly") is None:
        return None
    from lightly.transforms import MoCoV2Transform, SimCLRTransform

    if size == 32:
        return SimCLRTransform(input_size=32, cj_prob=0.8, cj_strength=0.5, min_scale=0.2, gaussian_blur=0.0)
    return MoCoV2Transform(input_size=size)


def small(rounds: int, compiled: bool) -> list[dict]:
    """32 pixels, a batch on the CPU."""
    arrays = pieces(BATCH, 32, 32)
    pictures = [Image.fromarray(array) for array in arrays]
    batch = torch.stack([torch.from_numpy(array).permute(2, 0, 1).contiguous() for array in arrays])
    generator = torch.Generator().manual_seed(0)
    first, second = per_image(32, flip_first=True, blur=False)
    cases: Cases = {}
    if (theirs := lightly_transform(32)) is not None:
        cases["lightly SimCLRTransform"] = lambda: [theirs(picture) for picture in pictures[: BATCH // 2]]
    cases["torchvision v1 PIL"] = lambda: [first(picture) for picture in pictures]
    cases["torchvision v2 per image"] = lambda: [second(image) for image in batch]
    if (peer := kornia_batch(32)) is not None:
        cases["kornia batch"] = lambda: peer(batch)
    recipes: dict[str, Views] = {"A-SimCLR": simclr(32, 1, strength=0.5), "A-MoCo2": moco_v2(32, 1)}
    for name, views in recipes.items():
        cases[f"vantage {name}"] = lambda views=views: views.batch(batch, generator)
    if compiled:
        cases["vantage A-SimCLR, hue compiled"] = with_compiled_hue(lambda: recipes["A-SimCLR"].batch(batch, generator))
    return measure("32 px", cases, rounds, BATCH)


def large(rounds: int) -> list[dict]:
    """224 pixels, from decoded photos, crops one by one and the rest in batches of 16."""
    arrays = pieces(PHOTOS, 300, 400)
    pictures = [Image.fromarray(array) for array in arrays]
    images = [torch.from_numpy(array).permute(2, 0, 1).contiguous() for array in arrays]
    generator = torch.Generator().manual_seed(0)
    first, second = per_image(224, flip_first=False, blur=True)
    views = moco_v2(224, 1)

    def own() -> None:
        for start in range(0, PHOTOS, 16):
            crops = [views.crop(image, generator)[0] for image in images[start : start + 16]]
            views.finish((torch.stack(crops),), generator)

    cases: Cases = {"torchvision v1 PIL": lambda: [first(picture) for picture in pictures]}
    if (theirs := lightly_transform(224)) is not None:
        cases["lightly MoCoV2Transform"] = lambda: [theirs(picture) for picture in pictures[: PHOTOS // 2]]
    cases["torchvision v2 per image"] = lambda: [second(image) for image in images]
    cases["vantage A-MoCo2"] = own
    cases["vantage A-MoCo2, crop only"] = lambda: [views.crop(image, generator) for image in images]
    return measure("224 px", cases, rounds, PHOTOS)


def with_compiled_hue(case: Callable[[], object]) -> Callable[[], object]:
    """The case with the hue core through torch.compile; for measuring only."""
    fast = torch.compile(colour.turn_hue, dynamic=True)

    def run() -> None:
        eager, colour.turn_hue = colour.turn_hue, fast
        try:
            case()
        finally:
            colour.turn_hue = eager

    return run


def measure(title: str, cases: Cases, rounds: int, views: int) -> list[dict]:
    """Time the cases, print them, and give the rows for the results file."""
    seconds = interleave(cases, rounds)
    base = next(iter(cases))
    rows = []
    for name, times in seconds.items():
        middle = sorted(times)[len(times) // 2]
        row = {
            "setting": title,
            "case": name,
            "microseconds_per_view": round(middle / views * 1e6, 1),
            "times_faster_than": base,
            "times": round(speedup(seconds, name, base), 2),
            "peak_mib": round(measured_peak(cases[name])),
            "rounds": len(times),
        }
        rows.append(row)
        told = f"{row['microseconds_per_view']:>9} us/view {row['times']:>7}x {base}, {row['peak_mib']} MiB"
        print(f"{title:8} {name:34} {told}", flush=True)
    return rows


def main() -> None:
    """Run both settings and write results/views.json, or views-<threads>-threads.json with more than one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--compiled", action="store_true", help="also measure the hue core through torch.compile")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    rows = small(options.rounds, options.compiled)
    if options.threads == 1:
        rows += large(options.rounds)
    name = "views" if options.threads == 1 else f"views-{options.threads}-threads"
    print("written:", write_results(name, rows))


if __name__ == "__main__":
    main()
