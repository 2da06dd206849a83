"""The arms of InterCLR's studies (Xie et al., arXiv 2008.11702 v1, §5.2 and Appendix C): branches of one warm base."""

from dataclasses import replace
from typing import Any

from vantage.composition.fitting import everywhere
from vantage.estimators import InfoNCE
from vantage.memory import Blocks, ClusteredBank, LabeledBank, ReclusteredBank
from vantage.negatives import Count, Draw, Hardest, Sample
from vantage.recipes.interclr_study import interclr_intra_only, interclr_offline, interclr_random, interclr_semi_hard
from vantage.schedules import Constant
from vantage.studies.lab.entry import Arm, Cell
from vantage.studies.lab.measures.vectors import ProtocolAccuracy
from vantage.studies.lab.two_cores import QUEUE, base, branch, floors, gate
from vantage.training.run import Run

__all__ = [
    "BETWEEN_NEGATIVES",
    "EPOCHS",
    "FLOORS",
    "GATE",
    "NEVER",
    "RARE_MATES",
    "SCALE",
    "arm",
    "commands",
    "every_epoch",
    "with_margins",
    "with_offline_labels",
    "with_true_classes",
    "with_weight",
]

_BASE_EPOCHS, EPOCHS = 12, 12
"""Epochs of the base and of its branches. After two epochs even true classes could not be told from clusters."""

NEVER = 1_000
"""More epochs than any branch lasts."""

_CLASSES = 50
"""Classes of the set, with equally many training images each."""

BETWEEN_NEGATIVES = 128
"""Negatives between images: with the paper's 4,096 from a bank of 7,500, the ways of sampling could hardly differ."""


def _equalize_negatives(run: Run) -> Run:
    """The run with as many negatives as every other arm: within images as many as a queue holds, between images few
    enough for the ways of sampling to differ."""

    def fewer(part: Any) -> Any:
        match part:
            case Draw():
                return replace(part, count=BETWEEN_NEGATIVES)
            case Hardest(amount=Count()):
                return Hardest(Count(BETWEEN_NEGATIVES))
        return part

    within, *between = run.branches
    negatives = tuple(replace(one, negatives=everywhere(one.negatives, fewer)) for one in between)
    return replace(run, branches=(replace(within, negatives=(Sample(QUEUE), *within.negatives[1:])), *negatives))


def _warm_base() -> Arm:
    """The warm base at λ 1, whose bank starts from the untrained network's rows. Its clusters are not used, since each
    branch clusters the rows of the warm network anew."""
    warm = base(interclr_intra_only(32), _BASE_EPOCHS)
    (within,) = warm.run.branches
    memory = ReclusteredBank(0.5, clusters=2, clusterings=1, first=0, every=NEVER)
    return replace(warm, run=_equalize_negatives(replace(warm.run, branches=(replace(within, memory=memory),))))


_BASE = _warm_base()
GATE = gate("base")
"""The base must be above raw pixels and a random encoder."""
FLOORS = (*floors(_BASE), Cell("base", _BASE, (ProtocolAccuracy(),)))
"""Cells that the gate needs."""
SCALE = (
    f"an image's row against {QUEUE:,} others, mates against {BETWEEN_NEGATIVES} of other clusters; 58 clusters of the"
    " warm base's rows; one view, τ .1"
)
"""What all cells share, in words."""
RARE_MATES = "about 3 % of the mates are of the image's own class; chance is 2 % (figure 6a)"
"""Why claims that need mates of one class fail at this scale, as measured on the clusters."""


def commands(*recipes: str) -> tuple[str, ...]:
    """The studies at the paper's scale: their recipes, some with settings, each judged by SVMs on VOC07."""
    lines: list[str] = []
    for number, recipe in enumerate(recipes):
        name, _, change = recipe.partition(" ")
        out = f"runs/{name}" + (f"_{number}" if change else "")
        lines += [f"vantage pretrain {name} --data IMAGENET#train --size 224 --out {out} {change}".rstrip()]
        lines += [f"vantage evaluate svm {out} --data VOC07#trainval --test VOC07#test"]
    return tuple(lines)


def arm(run: Run) -> Arm:
    """The base continued under a recipe of the studies."""
    branch_arm = branch(run, _BASE, EPOCHS)
    return replace(branch_arm, run=_equalize_negatives(branch_arm.run))


def every_epoch(branch_arm: Arm) -> Arm:
    """The branch with the checkpoints of all epochs kept."""
    run = branch_arm.run
    return replace(branch_arm, run=replace(run, monitoring=replace(run.monitoring, keep_every=1)))


def with_weight(weight: float) -> Arm:
    """λ, with random negatives."""
    if weight == 1.0:
        return arm(interclr_intra_only(32))
    random = arm(interclr_random(32))
    within, between = random.run.branches
    within, between = replace(within, weight=Constant(weight)), replace(between, weight=Constant(1.0 - weight))
    return replace(random, run=replace(random.run, branches=(within, between)))


def with_true_classes(weight: float) -> Arm:
    """λ, with random negatives, and the true classes in place of clusters: training images are sorted by class, and
    there are equally many of each."""
    clustered = with_weight(weight)

    def classes(part: Any) -> Any:
        return LabeledBank(part.momentum, Blocks(_CLASSES)) if isinstance(part, ClusteredBank) else part

    return replace(clustered, run=replace(clustered.run, branches=everywhere(clustered.run.branches, classes)))


def with_margins(intra: float, inter: float) -> Arm:
    """Margins within and between images, with semi-hard negatives."""
    semi_hard = arm(interclr_semi_hard(32))
    pairs = zip(semi_hard.run.branches, (intra, inter), strict=True)
    branches = tuple(replace(one, estimator=InfoNCE(0.1, margin=margin)) for one, margin in pairs)
    return replace(semi_hard, run=replace(semi_hard.run, branches=branches))


def with_offline_labels(every: int) -> Arm:
    """Labels renewed every few epochs, starting from the same clusters as online labels."""
    offline = arm(interclr_offline(32))

    def rarer(part: Any) -> Any:
        return replace(part, every=every) if isinstance(part, ReclusteredBank) else part

    return replace(offline, run=replace(offline.run, branches=everywhere(offline.run.branches, rarer)))
