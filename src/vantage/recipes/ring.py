"""Ring: negatives that are similar to the query, without the most similar."""

from dataclasses import replace

from vantage.estimators import InfoNCE
from vantage.negatives import Ball, Ring, Rule, Sample
from vantage.recipes.instance_discrimination import instance_discrimination
from vantage.recipes.moco import moco_v1
from vantage.run import Run
from vantage.schedules import BetweenEpochs, Linear, Schedule, StepDecay

__all__ = ["annealed", "ball_ir", "ball_moco", "ring_ir", "ring_moco"]


def annealed() -> Schedule:
    """Ring's annealing: from all keys to the most similar tenth over 100 epochs of 300, in a straight line by step."""
    return BetweenEpochs(Linear(1.0, 0.1, 100))


def ring_ir(size: int = 224) -> Run:
    """IRing (Wu et al., arXiv 2010.02037), for its Table 1: instance discrimination whose 4,095 negatives are drawn
    from the ring of the whole bank, τ .07, 300 epochs, steps at 200 and 250.

    The inner cut is a tenth of what is kept from the first step on, as in the code; the paper's text lets w_ℓ alone
    move. The own row is ranked like any other, as in the code. The bank keeps momentum .5 as the paper says; the code
    replaces rows (0). Bases as in `instance_discrimination`, views and batch for small images too.
    """
    return _bank("ring_ir", size, Ring(annealed()))


def ball_ir(size: int = 224) -> Run:
    """IRing without the inner cut (arXiv 2010.02037, Table 2, "w_u = 100"): `ring_ir` with the closest keys left in."""
    return _bank("ball_ir", size, Ball(annealed()))


def ring_moco(size: int = 224) -> Run:
    """MoCoRing (Wu et al., arXiv 2010.02037, Algorithm 1), for its Table 1: MoCo on all of the ring of its queue,
    τ .07, 300 epochs, steps at 200 and 250.

    Algorithm 1 leaves the positive out of the denominator, the equations and the code do not, nor is it here: the
    other reading is the estimator `Decoupled`. Base as in `moco_v1`: its linear head, views and queue.
    """
    return _queue("ring_moco", size, Ring(annealed()))


def ball_moco(size: int = 224) -> Run:
    """MoCoRing without the inner cut (arXiv 2010.02037, section 5): `ring_moco` with the closest keys left in."""
    return _queue("ball_moco", size, Ball(annealed()))


def _bank(name: str, size: int, rule: Rule) -> Run:
    return _rung(instance_discrimination(size), name, (rule, Sample(4_095)))


def _queue(name: str, size: int, rule: Rule) -> Run:
    return _rung(moco_v1(size), name, (rule,))


def _rung(base: Run, name: str, negatives: tuple[Rule, ...]) -> Run:
    """A base with other negatives, and the paper's τ, epochs and steps."""
    branch = replace(base.branches[0], negatives=negatives, estimator=InfoNCE(0.07))
    return replace(base, recipe=name, branches=(branch,), rate=StepDecay(0.03, at_epochs=(200, 250)), epochs=300)
