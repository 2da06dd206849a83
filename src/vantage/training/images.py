"""Which images a run trains on, and what is known of them before it starts.

n: images
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from vantage import draws
from vantage.data import Source, SourceSubset, check_source, labels_of, open_source, readable, scan
from vantage.data.sources.hidden import hidden_words
from vantage.data.sources.listing import unread_words
from vantage.data.sources.named_twice import twice_words
from vantage.data.sources.names import doubtful_class
from vantage.data.sources.tar_members import links_words
from vantage.data.splits import hold_out_mask
from vantage.errors import DataError, UnreadableImage, UserError, quantity
from vantage.training.run import Data

__all__ = ["SAMPLE", "held_out_part", "no_longer_seen", "open_images", "training_part", "usual_size"]

SAMPLE = 32
"""At least this many images are looked at to find the size of a set's images, if there are as many."""
_MOST_SCANNED = (
    10_000_000  # larger sets are not decoded first to find unreadable images to train on: it would take an epoch
)


def open_images(
    data: Data,
    progress: Callable[[int, int], None] | None = None,
    source: Source | None = None,
    together: bool = False,
    trains: bool = True,
) -> tuple[Source, str]:
    """The readable images that a run trains on, and one line about those that are not readable.

    They come from `source`, or from `data.path` if it is omitted. With `together`, all processes of the run call this
    at the same time and share the search for unreadable images. Training replaces an unreadable image when it comes up,
    so it does not need to know all of a very large set before; other work (not `trains`) cannot skip it otherwise.
    Raises `UserError` (`DataError`) if there is nothing at that path, if the source lacks a method, or if too many
    images are unreadable.
    """
    if source is None and not data.path:
        raise UserError(
            "no images were named: give --data PATH (a folder, .npz, .parquet, .tar or torchvision:NAME), or `source` "
            "from Python"
        )
    whole = open_source(data.path, progress=progress) if source is None else check_source(source)
    if len(whole) > _MOST_SCANNED and (trains or data.on_bad_image == "stop"):
        line = f"{len(whole):,} images, too many to try each of them first (data.on_bad_image: {data.on_bad_image})"
        return training_part(whole, data), line + _remarks(whole)
    result = scan(whole, num_workers=max(1, data.num_workers), progress=progress, together=together)
    usable = readable(whole, result, data.on_bad_image)
    part = training_part(usable, data)
    line = result.summary() + _remarks(whole)
    return part, line if part is usable else f"{line}; {len(part):,} of them are trained on"


def _remarks(whole: Source) -> str:
    """What else there is to say of a source's images in one line, each remark after a semicolon."""
    remarks = ""
    if words := unread_words(getattr(whole, "unread", {})):
        remarks += f"; {words} left out, as this format is not read: convert to JPEG"
    if packed := getattr(whole, "packed", ()):
        remarks += f"; {_some(packed)} left out: shards are read in place, so decompress what belongs to them"
    if beside := getattr(whole, "beside", 0):
        remarks += f"; {quantity(beside, 'image')} beside the shards left out: put them into a folder of their own"
    if tars := getattr(whole, "tars", ()):
        remarks += f"; {_some(tars)} left out: among images or folders, a tar is read only if you name it"
    if (labels := getattr(whole, "label_files", 0)) and not whole.classes:
        remarks += f"; {quantity(labels, 'label')} (.cls) left out: to read them, name the folder of this shard"
    if words := links_words(getattr(whole, "dangling", 0)):
        remarks += f"; {words}, so left out"
    if words := twice_words(getattr(whole, "twice", ())):
        remarks += f"; {words}"
    if words := getattr(whole, "other_classes", ""):
        remarks += f"; {words}"
    if words := hidden_in(whole):
        remarks += f"; {words} left out"
    if name := doubtful_class(whole.classes):
        remarks += f"; {name!r} counts as a class: put images without one directly into the top folder"
    return remarks


def _some(names: Sequence[str]) -> str:
    return f"{names[0]} and {len(names) - 1:,} more" if len(names) > 1 else names[0]


def hidden_in(source: Source) -> str:
    """The images of a folder or tar that were left out because they are hidden, in words; "" if there are none."""
    return hidden_words(getattr(_whole(source), "hidden", {}))


def no_longer_seen(source: Source) -> str:
    """What is left out of these images although earlier versions trained on it, in words; "" for nothing."""
    twice = len(getattr(_whole(source), "twice", ()))
    again = f"the second name{'s' * (twice > 1)} of {twice:,} file{'s' * (twice > 1)}" if twice else ""
    return " and ".join(filter(None, (hidden_in(source), again)))


def _whole(source: Source) -> Source:
    """What a source is a part of, or the source itself."""
    while isinstance(source, SourceSubset):
        source = source.source
    return source


def training_part(source: Source, data: Data) -> Source:
    """The images of a source that are not held out, or `max_images` of them, in their order in the source.

    The draw depends only on the number of images and their labels (seed 0), so it is the same for every run. Raises
    `UserError` if there are fewer than `max_images`.
    """
    if not data.hold_out and not data.max_images:
        return source
    label = labels_of(source)
    numbers = (~_hold_out_mask(label, data.hold_out)).nonzero()[:, 0] if data.hold_out else torch.arange(len(source))
    if data.max_images > len(numbers):
        raise UserError(
            f"{data.max_images:,} training images were asked for, but there are {len(numbers):,}: ask for fewer"
        )
    if data.max_images:
        order = numbers[draws.permutation(len(numbers), draws.mix(0, draws.Purpose.MAX_IMAGES))]
        rank = torch.empty_like(order)  # of an image within its class
        for number in label[order].unique():
            of_class = label[order] == number
            rank[of_class] = torch.arange(int(of_class.sum()))
        numbers = order[rank.argsort(stable=True)[: data.max_images]].sort().values
    return SourceSubset(source, numbers)


def held_out_part(source: Source, data: Data) -> Source:
    """The images of a source that `data.hold_out` leaves out of training, in their order in it."""
    out = _hold_out_mask(labels_of(source), data.hold_out)
    return SourceSubset(source, out.nonzero()[:, 0])


def _hold_out_mask(label: Int[Tensor, "n"], share: float) -> Bool[Tensor, "n"]:
    """The images that `vantage.data.split` holds out: of the labeled ones, or of all if none is labeled."""
    rows = (label >= 0) | (label < 0).all()
    out = torch.zeros(len(label), dtype=torch.bool)
    out[rows] = hold_out_mask(label[rows], share, 0)
    return out


def usual_size(source: Source) -> tuple[int, tuple[int, int] | None]:
    """Median short side, in pixels, of at most 63 images spread over the set, and the height and width that all of
    these have; None if they differ."""
    step = max(1, len(source) // SAMPLE)
    shapes, numbers = list[tuple[int, int]](), range(0, len(source), step)
    for number in numbers:
        try:
            _, height, width = source.image(number).shape
            shapes.append((height, width))
        except UnreadableImage:
            continue
    if not shapes:
        raise DataError(f"none of the images tried ({len(numbers)} of {len(source)}) can be read. Check the files")
    sides = sorted(min(shape) for shape in shapes)
    return sides[len(sides) // 2], shapes[0] if len(set(shapes)) == 1 else None
