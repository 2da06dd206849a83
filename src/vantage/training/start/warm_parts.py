"""What a run takes from a warm start, part by part; `vantage.training.start.warm_start` gives the rules."""

from pathlib import Path
from shlex import quote
from typing import Any

import torch
from torch import Tensor, nn

from vantage.branch import Branch, owners
from vantage.composition.fitting import parts_of
from vantage.composition.printing import in_a_line
from vantage.data import Source
from vantage.encoders import Encoder, EncoderNetwork, RoleNetworks
from vantage.encoders.weights import backbone_tensors, build_without_numbers, describe_difference
from vantage.errors import UserError
from vantage.learner import Learner
from vantage.memory import EachKey, Store
from vantage.progress import Progress
from vantage.records import Keys
from vantage.training.folder.checkpoint import restoring
from vantage.training.run import Run
from vantage.training.start.first_rows import fill, key_encoder
from vantage.training.start.moments import copy_moments
from vantage.training.start.warm_start import WarmStart

__all__ = ["check_backbones", "take"]

TAKEN, ROWS_TAKEN, FILLED, ANEW = "taken", "rows taken, then clustered", "filled by the warm network", "starts anew"
"""What may happen to a part."""


def check_backbones(start: WarmStart, run: Run) -> None:
    """Raises `UserError` if a backbone of the run does not fit, or if the networks of the two runs do not correspond,
    before the run is built."""
    networks = build_without_numbers(run.encoders.build)
    if start.run is None:
        for name in _encoders(networks):
            backbone_tensors(networks.get_submodule(f"{name}.backbone"), start.tensors, start.path)
        return
    pairs = _pairs(build_without_numbers(start.run.encoders.build), networks, start.path)
    for ours, other in pairs.items():
        state = start.state("learner", "networks", other, "backbone")
        _check_backbone(networks.get_submodule(f"{ours}.backbone"), state, start)


def take(
    start: WarmStart, learner: Learner, optimizer: torch.optim.Optimizer, run: Run, source: Source, progress: Progress
) -> dict[str, Any]:
    """Make a freshly built run start from a checkpoint of another run, or from weights. The progress reports what
    happened to each part; the facts that are returned record it in the run's provenance.

    Raises `UserError` if a backbone does not fit, or if the networks of the two runs do not correspond.
    """
    if start.run is None:
        outcome = {**_take_weights(learner.networks, start), "optimizer": ANEW}
        fitting_branches: list[list[int]] = [[] for _ in run.branches]
    else:
        other_networks = build_without_numbers(start.run.encoders.build)  # only its names are needed
        pairs = _pairs(other_networks, learner.networks, start.path)
        outcome = _take_networks(learner.networks, start, pairs)
        names = [name for name, fate in outcome.items() if fate == TAKEN]
        parts = {f"networks.{name}.": f"networks.{_other_name(name, pairs)}." for name in names}
        other = nn.ModuleDict({"networks": other_networks})
        with restoring(start.path):
            has_moments = type(start.run.optimizer) is type(run.optimizer) and copy_moments(
                learner, optimizer, start.run.optimizer.build(other), other,
                start.state("optimizer"), start.facts.get("optimizer"), parts,
            )  # fmt: skip
        outcome["optimizer"] = TAKEN if has_moments else ANEW
        same = start.images == {"fingerprint": source.fingerprint(), "images": len(source)}
        fitting_branches = [
            _matching_branches(start.run, other_networks, learner.networks, branch, pairs, outcome, number)
            if same
            else []
            for number, branch in enumerate(run.branches)
        ]
    for number, matches in enumerate(fitting_branches):
        outcome |= _take_state(start, learner, run, number, matches, source, progress)
    progress.line(f"starting from {start.path} (sha256 {start.digest[:12]}):")
    for fate in dict.fromkeys(outcome.values()):
        progress.line(f"  {fate}: {', '.join(part for part, its_fate in outcome.items() if its_fate == fate)}")
    step = start.facts.get("step")
    return {"from": str(start.path.absolute()), "step": step, "sha256": start.digest, "parts": outcome}


def _pairs(other_networks: RoleNetworks, networks: RoleNetworks, path: Path) -> dict[str, str]:
    """For each network here, by name, the network of the other run that it starts from."""
    names, other_names = [_name(network, networks) for network in networks.encoders], _encoders(other_networks)
    source = [_name(network, other_networks) for network in other_networks.encoders]
    if len(source) != 1 and len(source) != len(names):
        raise UserError(
            f"the run of {path} trained {len(source)} networks, this one trains {len(names)}: start from a run with"
            " one network, or with as many"
        )
    of = dict(zip(names, source if len(source) > 1 else source * len(names), strict=True))
    return {
        name: of[name] if name in of else name if name in other_names else source[0] for name in _encoders(networks)
    }


def _encoders(networks: RoleNetworks) -> list[str]:
    return [name for name, module in networks.named_modules() if isinstance(module, EncoderNetwork)]


def _name(network: nn.Module, networks: RoleNetworks) -> str:
    return next(name for name, module in networks.named_modules() if module is network)


def _other_name(part: str, pairs: dict[str, str]) -> str:
    """The name in the other run of a part of a network."""
    network, _, last = part.rpartition(".")
    return f"{pairs[network]}.{last}"


def _load(module: nn.Module, state: dict[str, Tensor]) -> str:
    """Fill a module with a state if it fits; returns what happened."""
    if describe_difference(module.state_dict(), state):
        return ANEW
    module.load_state_dict(state)
    return TAKEN


def _take_networks(networks: RoleNetworks, start: WarmStart, pairs: dict[str, str]) -> dict[str, str]:
    """Fill the parts of every network; returns what happened to each."""
    outcome = {}
    for ours, other in pairs.items():
        for part, module in networks.get_submodule(ours).named_children():
            state = start.state("learner", "networks", other, part)
            outcome[f"{ours}.{part}"] = _load(module, state)
            if part == "backbone":
                _check_backbone(module, state, start)
    return outcome


def _check_backbone(backbone: nn.Module, state: dict[str, Tensor], start: WarmStart) -> None:
    """Raises `UserError` if a state of the other run does not fit the backbone."""
    if difference := describe_difference(backbone.state_dict(), state):
        assert start.run is not None  # a file is taken by `_take_weights`
        encoders = [part for part in parts_of(start.run) if isinstance(part, Encoder)]
        choices = dict.fromkeys(f"--backbone {quote(in_a_line(encoder.backbone))}" for encoder in encoders)
        raise UserError(
            f"the backbone in {start.path} is not the one of this run: {difference}. Choose the backbone that it was"
            f" trained with: {' or '.join(choices)}"
        )


def _take_weights(networks: RoleNetworks, start: WarmStart) -> dict[str, str]:
    """Fill every backbone with a file's tensors."""
    outcome: dict[str, str] = {}
    for name in _encoders(networks):
        for part, module in networks.get_submodule(name).named_children():
            outcome[f"{name}.{part}"] = ANEW
            if part == "backbone":
                state, others = backbone_tensors(module, start.tensors, start.path)
                module.load_state_dict(state)
                outcome |= {f"{name}.{part}": TAKEN, **{f"{each} in the file": "left out" for each in others}}
    return outcome


def _matching_branches(
    other: Run,
    other_networks: RoleNetworks,
    networks: RoleNetworks,
    branch: Branch,
    pairs: dict[str, str],
    outcome: dict[str, str],
    number: int,
) -> list[int]:
    """The branches of the other run whose keys come from the network that this branch's key encoder was taken from, the
    branch of the same number first. None if that network was not taken whole."""
    encoder = _name(key_encoder(networks, branch), networks)
    if any(fate != TAKEN for part, fate in outcome.items() if part.startswith(f"{encoder}.")):
        return []
    order = sorted(range(len(other.branches)), key=lambda each: each != number)
    return [
        each
        for each in order
        if pairs[encoder] == _name(key_encoder(other_networks, other.branches[each]), other_networks)
    ]


def _take_state(
    start: WarmStart, learner: Learner, run: Run, number: int, matches: list[int], source: Source, progress: Progress
) -> dict[str, str]:
    """Fill the store of a branch, and the state of its estimator."""
    outcome, branch = {}, run.branches[number]
    if owners(run.branches)[number] == number and learner.store(number).state_dict():
        fate = _take_memory(start, learner.store(number), branch, matches, len(source))
        if fate == ANEW and learner.store(number).room:
            fill(learner, run, number, source, progress, "the warm network")
            fate = FILLED
        outcome[f"memory of branch {number}"] = fate
    if str(number) in learner.estimators:
        equal = number in matches and start.run is not None and start.run.branches[number].estimator == branch.estimator
        state = start.state("learner", "estimators", str(number)) if equal else {}
        outcome[f"estimator of branch {number}"] = _load(learner.estimators[str(number)], state)
    return outcome


def _take_memory(start: WarmStart, store: Store, branch: Branch, matches: list[int], images: int) -> str:
    """Fill a store from the first memory of the other run that fits: an equal one as it is, or else a bank's rows."""
    expected = store.state_dict()
    branches = start.run.branches if start.run is not None else ()
    candidates = [
        (branches[number], start.state("learner", "stores", str(number)))
        for number in matches
        if branches[number].remember in (branch.remember, EachKey())
    ]
    for other, state in candidates:
        if other.memory == branch.memory and not describe_difference(expected, state):
            own_seed = {"seed": expected["seed"]} if "seed" in expected else {}  # clusterings follow from it
            store.load_state_dict({**state, **own_seed})
            return TAKEN
    for _, state in candidates:
        rows, image = state.get("vector"), state.get("image")
        if rows is None or image is None or store.room != images or expected["vector"].shape != rows.shape:
            continue
        if torch.equal(image, torch.arange(images)):
            store.begin(Keys(rows, image).rows(store.share))
            return TAKEN if expected.keys() <= {"vector", "image"} else ROWS_TAKEN
    return ANEW
