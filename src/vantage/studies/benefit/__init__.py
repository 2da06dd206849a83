"""Does pretraining help on these images? A run, fine-tuned and frozen, against scratch, a random network and pixels."""

from vantage.studies.benefit.comparison import check, measure_benefit
from vantage.studies.benefit.figure import benefit_figure, write_benefit
from vantage.studies.benefit.plan import BenefitPlan, Budget
from vantage.studies.benefit.result import BenefitResult, ClassifierResult, Gap, SplitImages
from vantage.studies.benefit.verdict import sentences

__all__ = [
    "BenefitPlan",
    "BenefitResult",
    "Budget",
    "ClassifierResult",
    "Gap",
    "SplitImages",
    "measure_benefit",
    "benefit_figure",
    "check",
    "sentences",
    "write_benefit",
]
