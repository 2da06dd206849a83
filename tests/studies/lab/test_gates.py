"""Gates: before a claim about accuracy is decided, the base must be above what needs no training."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from lab_entries import entry_of

from vantage.errors import UserError
from vantage.studies.lab import ENTRIES, Arm, Untrained
from vantage.studies.lab.experiments.learned_views import SPACES, LearnedViewsCell, contrast
from vantage.studies.lab.judging.predicates import Beats
from vantage.studies.lab.making.compositions import arm_chain, arm_of
from vantage.training.backbone import backbone_of, evaluation_view
from vantage.training.run import Run


def test_gates_ask_of_the_base_that_the_arms_continue() -> None:
    for entry in ENTRIES:
        for claim in (claim for claim in entry.claims if claim.accuracy and claim.measure):
            bases = {
                repr(arm_chain(entry.cell(one.base).experiment)[:1]) for one in claim.gates or (entry.gate,) if one
            }
            terms = {term.partition(" @ ")[0] for predicate in claim.predicates for term in predicate.terms}
            chains = [arm_chain(entry.cell(term).experiment) for term in terms]
            assert {repr(chain[:1]) for chain in chains if len(chain) > 1} <= bases, f"{entry.name}, {claim.name}"


def test_each_base_of_cnce_is_gated_by_its_own_floors() -> None:
    several = dict.fromkeys(("cnce-table-1", "cnce-table-3"), {"MoCo base", "IR base", "CMC base"})
    several |= {"cnce-table-1a": {"MoCo", "IR", "CMC base"}, "cnce-table-6": {"IR", "CMC base"}}
    of_ir = {"cnce-table-2": {"IR"}, "cnce-figure-2a": {"IR base"}, "cnce-figure-2b": {"linear"}}
    for name, bases in (several | of_ir).items():
        entry = entry_of(name)
        gates = {one for claim in entry.claims for one in claim.gates} | {entry.gate}
        assert {one.base for one in gates if one} >= bases
        for gate in (one for one in gates if one):
            floors = [entry.cell(floor).experiment for floor in gate.floors]
            assert {floor.arm for floor in floors if isinstance(floor, Untrained)} == {entry.cell(gate.base).experiment}
            assert len(floors) == 2


def test_gates_ask_of_the_views_and_the_network_that_a_claim_is_about() -> None:
    """A floor of other channels, of another blur or of a wider network, says nothing about an arm."""
    for entry in ENTRIES:
        for claim in (claim for claim in entry.claims if claim.accuracy and claim.measure and entry.gate):
            gates = [one for one in claim.gates or (entry.gate,) if one]
            floors = {what_is_judged(entry.cell(name).experiment) for gate in gates for name in gate.floors}
            for gate in gates:
                own = {what_is_judged(entry.cell(name).experiment) for name in gate.floors}
                assert {what_is_judged(entry.cell(gate.base).experiment)} == own, f"{entry.name}, {gate.base}"
            terms = {term.partition(" @ ")[0] for predicate in claim.predicates for term in predicate.terms}
            judged = {what_is_judged(entry.cell(term).experiment) for term in terms}
            assert judged <= floors, f"{entry.name}, {claim.name}"


def what_is_judged(experiment: Any) -> tuple[str, ...]:
    """Images and their view, and the shapes of the network. Learned views count as the colors that they start from."""
    if isinstance(experiment, LearnedViewsCell):
        experiment = Arm(contrast(SPACES[experiment.space], widths=experiment.widths))
    arm = arm_of(experiment)
    return _seen(arm.run, arm.images)


@cache
def _seen(run: Run, images: str) -> tuple[str, ...]:
    with torch.device("meta"):
        networks = run.encoders.build()
    shapes = [tuple(value.shape) for value in backbone_of(run, networks, None).state_dict().values()]
    return images, repr(evaluation_view(run, None)), repr(shapes)


def test_a_precondition_or_a_gate_of_an_unknown_cell_is_refused() -> None:
    entry = entry_of("cnce-figure-2b")
    assert entry.gate
    with pytest.raises(UserError, match="gate: there is no cell 'raw pixels'"):
        replace(entry, gate=replace(entry.gate, floors=("raw pixels",)))
    with pytest.raises(UserError, match="gate: there is no cell '.* @ knn'"):
        replace(entry, gate=replace(entry.gate, base=f"{entry.gate.base} @ knn"))
    claim = replace(entry.claims[0], precondition=Beats("linear", "random encoder"))
    with pytest.raises(UserError, match="claim b.1: there is no cell 'random encoder'"):
        replace(entry, claims=(claim, *entry.claims[1:]))


def test_claims_about_fine_tuning_are_gated() -> None:
    entry = entry_of("interclr-table-2")
    assert entry.gate and [claim.name for claim in entry.claims if claim.accuracy] == ["a", "c"]  # b is the gate itself
