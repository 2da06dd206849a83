"""Tables and figures of papers, reproduced: one frozen value for each, with the paper's numbers beside ours."""

from vantage.studies.reproduce.entry import DataPath, Entry, Measured, Report, Reproduced, reproduce
from vantage.studies.reproduce.infomin_table_4 import PUBLISHED, InfoMinTable4

__all__ = [
    "ENTRIES",
    "PUBLISHED",
    "Entry",
    "InfoMinTable4",
    "Measured",
    "DataPath",
    "Report",
    "Reproduced",
    "reproduce",
]

ENTRIES: tuple[type[Entry], ...] = (InfoMinTable4,)
"""What can be reproduced."""
