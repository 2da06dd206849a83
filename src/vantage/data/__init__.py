"""Images: their sources, the scan for unreadable ones, and batches in an order fixed by seed and epoch."""

from vantage.data.decode import MAX_PIXELS, decode
from vantage.data.imagenet100 import IMAGENET_100
from vantage.data.loading import Batch, Crops, StreamedImages
from vantage.data.order import epoch_order, image_seed, shares, steps_in
from vantage.data.reencode import Resized, resize_short_side
from vantage.data.resident import ResidentImages, decode_all, fits, resident_size
from vantage.data.scan import BadImage, OnBadImage, Scan, readable, scan
from vantage.data.sources import (
    Arrays,
    Folder,
    Marked,
    MultiLabeled,
    Parquet,
    Photographs,
    Pictures,
    Shards,
    Source,
    SourceSubset,
    Tar,
    TorchvisionSet,
    checked,
    labels_of,
    marks_of,
    open_source,
)
from vantage.data.splits import held_out, split
from vantage.data.threads import CORES, prefetch
from vantage.storage.cache import cache_folder

__all__ = [
    "CORES",
    "IMAGENET_100",
    "MAX_PIXELS",
    "Arrays",
    "BadImage",
    "Batch",
    "Crops",
    "Folder",
    "Marked",
    "MultiLabeled",
    "OnBadImage",
    "Parquet",
    "Photographs",
    "Pictures",
    "ResidentImages",
    "Resized",
    "Scan",
    "Shards",
    "Source",
    "StreamedImages",
    "SourceSubset",
    "Tar",
    "TorchvisionSet",
    "cache_folder",
    "checked",
    "decode",
    "decode_all",
    "epoch_order",
    "fits",
    "held_out",
    "image_seed",
    "labels_of",
    "marks_of",
    "open_source",
    "prefetch",
    "readable",
    "resident_size",
    "resize_short_side",
    "scan",
    "shares",
    "split",
    "steps_in",
]
