"""The lab: tables and figures of the papers as data, their cells made on two cores or a GPU, and every claim judged."""

from vantage.studies.lab.course import Order as Order
from vantage.studies.lab.course import expected as expected
from vantage.studies.lab.course import make_all as make_all
from vantage.studies.lab.course import missing as missing
from vantage.studies.lab.course import time_of as time_of
from vantage.studies.lab.entries import ENTRIES as ENTRIES
from vantage.studies.lab.entry import Arm as Arm
from vantage.studies.lab.entry import Cell as Cell
from vantage.studies.lab.entry import Claim as Claim
from vantage.studies.lab.entry import Entry as Entry
from vantage.studies.lab.entry import Gate as Gate
from vantage.studies.lab.entry import Untrained as Untrained
from vantage.studies.lab.levels import LEVELS as LEVELS
from vantage.studies.lab.levels import Level as Level
from vantage.studies.lab.making import Maker as Maker
from vantage.studies.lab.page import ours_in_words as ours_in_words
from vantage.studies.lab.page import page as page
from vantage.studies.lab.page import publish as publish
from vantage.studies.lab.page import state_of as state_of
from vantage.studies.lab.results import collect as collect
from vantage.studies.lab.results import numbers_in as numbers_in
from vantage.studies.lab.results import write_collected as write_collected
from vantage.studies.lab.ruling import Ruling as Ruling
from vantage.studies.lab.ruling import rule as rule
from vantage.studies.lab.sets import Sets as Sets
from vantage.studies.lab.smoke import smoke as smoke
from vantage.studies.lab.store import Lab as Lab

__all__ = ["ENTRIES", "LEVELS"]
__all__ += [name for name, part in globals().items() if getattr(part, "__module__", "").startswith(f"{__name__}.")]  # pyright: ignore
