"""A backbone for Detectron2: its weights under Detectron2's names, and settings of the detectors that papers train.

Detectron2 is not needed to write them.
"""

from vantage.frozen.export.detectron2.folder import write_folder
from vantage.frozen.export.detectron2.settings import detectors
from vantage.frozen.export.detectron2.weights import name_there, weights_there

__all__ = ["detectors", "name_there", "weights_there", "write_folder"]
