"""The lab: the papers' tables and figures as data, their cells run on two cores or a GPU, a verdict on each claim."""

from vantage.composition.public import make_public
from vantage.studies.lab.entries import ENTRIES as ENTRIES
from vantage.studies.lab.entry import Arm as Arm
from vantage.studies.lab.entry import Cell as Cell
from vantage.studies.lab.entry import Claim as Claim
from vantage.studies.lab.entry import Entry as Entry
from vantage.studies.lab.entry import Gate as Gate
from vantage.studies.lab.entry import Reason as Reason
from vantage.studies.lab.entry import Untrained as Untrained
from vantage.studies.lab.levels import LEVELS as LEVELS
from vantage.studies.lab.levels import Level as Level
from vantage.studies.lab.making.collecting import collect as collect
from vantage.studies.lab.making.collecting import write_collected as write_collected
from vantage.studies.lab.making.cost import TrainingSpeeds as TrainingSpeeds
from vantage.studies.lab.making.cost import estimate_workload as estimate_workload
from vantage.studies.lab.making.cost import time_per_seed as time_per_seed
from vantage.studies.lab.making.maker import Maker as Maker
from vantage.studies.lab.making.maps import write_map as write_map
from vantage.studies.lab.making.origins import Origins as Origins
from vantage.studies.lab.making.repeating import command as command
from vantage.studies.lab.making.results import PUBLISHED_RESULTS as PUBLISHED_RESULTS
from vantage.studies.lab.making.results import numbers_in as numbers_in
from vantage.studies.lab.making.results import outdated as outdated
from vantage.studies.lab.making.store import LabFolder as LabFolder
from vantage.studies.lab.making.workload import WorkOrder as WorkOrder
from vantage.studies.lab.making.workload import make_all as make_all
from vantage.studies.lab.making.workload import missing_pieces as missing_pieces
from vantage.studies.lab.page.cell_words import origins_of_runs as origins_of_runs
from vantage.studies.lab.page.cell_words import paper_row as paper_row
from vantage.studies.lab.page.cell_words import training_in_words as training_in_words
from vantage.studies.lab.page.claim_words import ours_in_words as ours_in_words
from vantage.studies.lab.page.claim_words import paper_in_words as paper_in_words
from vantage.studies.lab.page.claim_words import runs_in_words as runs_in_words
from vantage.studies.lab.page.page import completion as completion
from vantage.studies.lab.page.page import page as page
from vantage.studies.lab.page.page import publish as publish
from vantage.studies.lab.sets import ImageSets as ImageSets
from vantage.studies.lab.smoke import smoke as smoke
from vantage.studies.lab.verdicts import ClaimVerdict as ClaimVerdict
from vantage.studies.lab.verdicts import judge_claims as judge_claims

__all__ = ["ENTRIES", "LEVELS", "PUBLISHED_RESULTS", *make_public(globals())]  # pyright: ignore
