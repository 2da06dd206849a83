"""Does pretraining help on these images? Fine-tuned and frozen beside scratch, a random network and raw pixels."""

from vantage.studies.benefit.course import benefit, check
from vantage.studies.benefit.figure import benefit_figure, write_benefit
from vantage.studies.benefit.plan import Benefit, Budget
from vantage.studies.benefit.result import BenefitResult, Cell, Gap, Images
from vantage.studies.benefit.verdict import sentences

__all__ = [
    "Benefit",
    "BenefitResult",
    "Budget",
    "Cell",
    "Gap",
    "Images",
    "benefit",
    "benefit_figure",
    "check",
    "sentences",
    "write_benefit",
]
