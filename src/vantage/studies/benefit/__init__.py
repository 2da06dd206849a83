"""Does pretraining help on these images? A run, fine-tuned and frozen, against scratch, a random network and pixels."""

from vantage.composition.public import make_public
from vantage.studies.benefit.comparison import check as check
from vantage.studies.benefit.comparison import measure_benefit as measure_benefit
from vantage.studies.benefit.figure import benefit_figure as benefit_figure
from vantage.studies.benefit.figure import write_benefit as write_benefit
from vantage.studies.benefit.plan import BenefitPlan as BenefitPlan
from vantage.studies.benefit.plan import Budget as Budget
from vantage.studies.benefit.result import BenefitResult as BenefitResult
from vantage.studies.benefit.result import ClassifierResult as ClassifierResult
from vantage.studies.benefit.result import Gap as Gap
from vantage.studies.benefit.result import SplitImages as SplitImages
from vantage.studies.benefit.verdict import sentences as sentences

__all__ = make_public(globals())  # pyright: ignore
