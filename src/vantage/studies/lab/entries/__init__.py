"""The tables and figures of the four papers, each in the modules of its paper, and a question of ours."""

from vantage.studies.lab.entries import (
    cnce,
    cnce_toys,
    combinations,
    infomin,
    infomin_detection,
    infomin_sweeps,
    interclr,
    jcl,
)
from vantage.studies.lab.entry import Entry

__all__ = ["ENTRIES"]

ENTRIES: tuple[Entry, ...] = (
    *jcl.ENTRIES,
    *cnce.ENTRIES,
    *cnce_toys.ENTRIES,
    *interclr.ENTRIES,
    *infomin.ENTRIES,
    *infomin_sweeps.ENTRIES,
    *infomin_detection.ENTRIES,
    *combinations.ENTRIES,
)
"""All entries, in the order of the papers; then ours."""
