"""Tables and figures of papers, reproduced: one frozen value for each, with the paper's numbers next to ours."""

from vantage.studies.reproduce.infomin_table_4 import InfoMinTable4
from vantage.studies.reproduce.infomin_table_4_report import PUBLISHED
from vantage.studies.reproduce.paper_table import DataPath, PaperTable, Report, Reproduction, RowMeasures, reproduce

__all__ = [
    "ENTRIES",
    "PUBLISHED",
    "PaperTable",
    "InfoMinTable4",
    "RowMeasures",
    "DataPath",
    "Report",
    "Reproduction",
    "reproduce",
]

ENTRIES: tuple[type[PaperTable], ...] = (InfoMinTable4,)
"""What can be reproduced."""
