"""Where images come from: sources, the scan for unreadable ones, batches in an order that seed and epoch tell."""

from vantage.data.decode import MAX_PIXELS, decode
from vantage.data.loading import Batch, Crops, StreamedImages
from vantage.data.order import epoch_order, image_seed, shares, steps_in
from vantage.data.reencode import Resized, resize_short_side
from vantage.data.resident import BUDGET, ResidentImages, decode_all, fits, resident_size
from vantage.data.scan import BadImage, OnBadImage, Scan, readable, scan
from vantage.data.sources.arrays import Arrays
from vantage.data.sources.folder import Folder
from vantage.data.sources.marked import Marked
from vantage.data.sources.opening import open_source
from vantage.data.sources.parquet import Parquet
from vantage.data.sources.photographs import Photographs
from vantage.data.sources.source import MultiLabeled, Source, SourceSubset, labels_of, marks_of
from vantage.data.sources.tar import Tar
from vantage.data.sources.torchvision_sets import TorchvisionSet
from vantage.storage.cache import cache_folder

__all__ = [
    "BUDGET",
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
    "ResidentImages",
    "Resized",
    "Scan",
    "Source",
    "StreamedImages",
    "SourceSubset",
    "Tar",
    "TorchvisionSet",
    "cache_folder",
    "decode",
    "decode_all",
    "epoch_order",
    "fits",
    "image_seed",
    "labels_of",
    "marks_of",
    "open_source",
    "readable",
    "resident_size",
    "resize_short_side",
    "scan",
    "shares",
    "steps_in",
]
