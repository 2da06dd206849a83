"""What `Hardware.compile` compiles: a whole step if it is one graph, else the networks alone."""

from collections.abc import Callable

import torch
from torch import Tensor

from vantage import processes
from vantage.branch import Branch
from vantage.composition.conformance import conforms
from vantage.composition.fitting import parts_of
from vantage.composition.names import is_built_in
from vantage.encoders import EncoderNetwork
from vantage.estimators import EstimatorChoice
from vantage.learner import Learner, Step, StepSeeds
from vantage.negatives import PairRule
from vantage.schedules import Adaptive, Constant, Schedule

__all__ = ["compile_learner", "compile_networks", "is_one_graph"]


def compile_learner(learner: Learner) -> None:
    """Compile networks and losses of a step, forward and backward, as one graph if `is_one_graph` allows it and there
    is one process; else each network. Graphs that this process compiled before are forgotten: torch keeps at most 8 of
    a function, and would take a second run's temperature for a variable, which its compiler cannot follow."""
    torch.compiler.reset()
    if processes.count() == 1 and is_one_graph(learner.branches):
        learner.compute = _compiled(learner.compute)
    else:
        compile_networks(learner)


def compile_networks(learner: Learner) -> None:
    """Compile every network of a learner as a graph of its own."""
    for network in learner.modules():
        if isinstance(network, EncoderNetwork):
            network.compile()


def _compiled(compute: Callable[..., Step]) -> Callable[..., Step]:
    compiled = torch.compile(compute)

    def compute_any_step(views: list[Tensor], image: Tensor, step: int, seeds: StepSeeds) -> Step:
        return compiled(views, image, 0, seeds)  # no part reads the step, but torch would compile a graph for 0 alone

    return compute_any_step


def is_one_graph(branches: tuple[Branch, ...]) -> bool:
    """Whether every step of these branches is the same graph of operations: no number follows the step, since torch
    compiles a graph for each number, and nothing is selected by rank or drawn, since that is computed in tiles whose
    sizes the host must know. Parts of a user's own are handed the step too, and may read it."""
    rules = [rule for branch in branches for rule in branch.negatives]
    return (
        all(isinstance(rule, PairRule) for rule in rules)
        and not any(isinstance(branch.estimator, EstimatorChoice) for branch in branches)
        and not any(_follows_step(part) for part in parts_of(branches))
    )


def _follows_step(part: object) -> bool:
    kind = type(part)
    if isinstance(part, tuple | int | float | str | None) or kind is Constant:
        return False
    return not is_built_in(kind) or isinstance(part, Adaptive) or conforms(kind, Schedule)
