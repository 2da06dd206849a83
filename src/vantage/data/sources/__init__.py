"""Where images come from, one kind of source a file."""

from vantage.data.sources.arrays import Arrays
from vantage.data.sources.crops import BoxCrops
from vantage.data.sources.folder import Folder
from vantage.data.sources.marked import Marked
from vantage.data.sources.masked import MaskedImages, open_masked, split_masked
from vantage.data.sources.opening import open_source
from vantage.data.sources.parquet import Parquet
from vantage.data.sources.photographs import Photographs
from vantage.data.sources.pictures import Pictures
from vantage.data.sources.shards import Shards
from vantage.data.sources.source import (
    Blocked,
    MultiLabeled,
    Source,
    SourceSubset,
    Stamped,
    blocks_of,
    checked,
    labels_of,
    marks_of,
)
from vantage.data.sources.tar import Tar
from vantage.data.sources.torchvision_sets import TorchvisionSet

__all__ = [
    "Arrays",
    "Blocked",
    "BoxCrops",
    "Folder",
    "Marked",
    "MaskedImages",
    "MultiLabeled",
    "Parquet",
    "Photographs",
    "Pictures",
    "Shards",
    "Source",
    "SourceSubset",
    "Stamped",
    "Tar",
    "TorchvisionSet",
    "blocks_of",
    "checked",
    "labels_of",
    "marks_of",
    "open_masked",
    "open_source",
    "split_masked",
]
