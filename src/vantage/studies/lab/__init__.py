"""The lab: tables and figures of the papers as data, their cells made on two cores or a GPU, and every claim judged."""

from vantage.studies.lab.course import Order, expected, make_all, missing, time_of
from vantage.studies.lab.entries import ENTRIES
from vantage.studies.lab.entry import Arm, Cell, Claim, Entry, Gate, Untrained
from vantage.studies.lab.levels import LEVELS, Level
from vantage.studies.lab.making import Maker
from vantage.studies.lab.page import ours_in_words, page, publish, state_of
from vantage.studies.lab.results import collect, numbers_in, write_collected
from vantage.studies.lab.ruling import Ruling, rule
from vantage.studies.lab.sets import Sets
from vantage.studies.lab.smoke import smoke
from vantage.studies.lab.store import Lab

__all__ = [
    "ENTRIES",
    "LEVELS",
    "Arm",
    "Cell",
    "Claim",
    "Entry",
    "Gate",
    "Lab",
    "Level",
    "Maker",
    "Order",
    "Ruling",
    "Sets",
    "Untrained",
    "collect",
    "expected",
    "make_all",
    "missing",
    "numbers_in",
    "ours_in_words",
    "page",
    "publish",
    "rule",
    "smoke",
    "state_of",
    "time_of",
    "write_collected",
]
