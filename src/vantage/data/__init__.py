"""Images: their sources, the scan for unreadable ones, and batches in an order fixed by seed and epoch."""

from vantage.composition.public import make_public
from vantage.data.decode import MAX_PIXELS as MAX_PIXELS
from vantage.data.decode import decode as decode
from vantage.data.imagenet100 import IMAGENET_100 as IMAGENET_100
from vantage.data.loading import Batch as Batch
from vantage.data.loading import Crops as Crops
from vantage.data.loading import StreamedImages as StreamedImages
from vantage.data.order import BatchOrder as BatchOrder
from vantage.data.order import epoch_order as epoch_order
from vantage.data.order import image_seed as image_seed
from vantage.data.order import steps_in as steps_in
from vantage.data.reencode import ResizeResult as ResizeResult
from vantage.data.reencode import resize_short_side as resize_short_side
from vantage.data.resident import ResidentImages as ResidentImages
from vantage.data.resident import decode_all as decode_all
from vantage.data.resident import fits_in_memory as fits_in_memory
from vantage.data.resident import resident_size as resident_size
from vantage.data.scan import BadImage as BadImage
from vantage.data.scan import OnBadImage as OnBadImage
from vantage.data.scan import Scan as Scan
from vantage.data.scan import readable as readable
from vantage.data.scan import scan as scan
from vantage.data.sources.arrays import Arrays as Arrays
from vantage.data.sources.folder import Folder as Folder
from vantage.data.sources.multi_label import MultiLabelImages as MultiLabelImages
from vantage.data.sources.opening import open_source as open_source
from vantage.data.sources.parquet import Parquet as Parquet
from vantage.data.sources.photographs import Photographs as Photographs
from vantage.data.sources.pictures import Pictures as Pictures
from vantage.data.sources.shards import Shards as Shards
from vantage.data.sources.source import MultiLabeled as MultiLabeled
from vantage.data.sources.source import Source as Source
from vantage.data.sources.source import SourceSubset as SourceSubset
from vantage.data.sources.source import check_source as check_source
from vantage.data.sources.source import labels_of as labels_of
from vantage.data.sources.source import marks_of as marks_of
from vantage.data.sources.tar import Tar as Tar
from vantage.data.sources.torchvision_sets import TorchvisionSet as TorchvisionSet
from vantage.data.splits import hold_out_mask as hold_out_mask
from vantage.data.splits import split as split
from vantage.data.threads import CORES as CORES
from vantage.data.threads import prefetch as prefetch
from vantage.storage.cache import cache_folder as cache_folder

__all__ = ["CORES", "IMAGENET_100", "MAX_PIXELS", "OnBadImage", "cache_folder", *make_public(globals())]  # pyright: ignore
