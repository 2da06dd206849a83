"""Start a run from what another has learned: which of its tensors fit, and what starts anew.

* Networks. The backbone must fit. Heads are taken where names and shapes agree. One network goes to every network here,
  several go by their names; a slow copy that the other run lacks begins as a copy of its trained network.
* Optimizer. What it keeps of every parameter that was taken, where it is of the same kind.
* Memories. They fit where the same images were encoded by a network that was taken whole. An equal memory is then taken
  as it is, clusters included; of another bank the rows are taken, and clustered. Every other memory is filled with what
  the warm network makes of the images (`vantage.training.first_rows`), and then clustered.
* Estimators with a state (NCE's normalizer), where they are equal and the memory would fit.

Steps count from 0, so schedules and adaptive numbers start anew. The order of the images and every draw are functions
of (seed, step, image): runs of one seed from one checkpoint see the same images in the same order. A checkpoint of step
0 is written at once, so that resuming never needs the other run again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vantage.branch import Branch, owners
from vantage.composition.codec import decode
from vantage.data import Source
from vantage.encoders import EncoderNetwork, RoleNetworks
from vantage.errors import UserError
from vantage.learner import Learner
from vantage.memory import EachKey, Store
from vantage.progress import Progress
from vantage.records import Keys
from vantage.storage.provenance import read_provenance
from vantage.training import checkpoint, settings
from vantage.training.first_rows import fill, key_encoder
from vantage.training.run import Run

__all__ = ["WarmStart", "read_start", "recorded_start", "take"]

TAKEN, ROWS_TAKEN, FILLED, ANEW = "taken", "rows taken, then clustered", "filled by the warm network", "starts anew"
"""What may become of a part."""


@dataclass(frozen=True, eq=False)
class WarmStart:
    """A checkpoint of another run, in memory."""

    path: Path
    """The checkpoint."""

    run: Run
    """The run that it is of."""

    images: dict[str, Any] | None
    """Which images that run was trained on, where its provenance says so."""

    tensors: dict[str, Tensor]
    """Everything in the checkpoint."""

    facts: dict[str, Any]
    """Its step, and what the optimizer has beside tensors."""

    digest: str
    """SHA-256 of the file of tensors."""

    def state(self, *path: str) -> dict[str, Tensor]:
        """The tensors below a path, by the rest of their names."""
        prefix = "".join(f"{name}." for name in path)
        return {name.removeprefix(prefix): value for name, value in self.tensors.items() if name.startswith(prefix)}


def read_start(path: Path | str) -> WarmStart:
    """The newest checkpoint of a run's folder, or the checkpoint at `path`.

    Raises `UserError` where there is none, or where it is damaged.
    """
    path = Path(path)
    at_checkpoint = path.parent.name == "checkpoint" and not (path / settings.FILE).exists()
    folder = path.parent.parent if at_checkpoint else path
    stored = settings.read(folder)
    newest = path if at_checkpoint else checkpoint.latest(folder)
    if newest is None or not newest.is_dir():
        missing = f"{folder} holds no checkpoint yet" if newest is None else f"there is no checkpoint {newest}"
        raise UserError(f"{missing}: let the run reach it, or start from another")
    tensors, facts = checkpoint.load(newest)
    run = decode(facts["run"], Run) if "run" in facts else stored
    records = read_provenance(folder)
    images = records[0]["data"] if records else None
    return WarmStart(newest, run, images, tensors, facts, checkpoint.digest_of(newest))


def recorded_start(folder: Path) -> WarmStart | None:
    """What a run that was stopped before its first checkpoint starts from; `None` where it starts from nothing.

    Raises `UserError` where that has changed since.
    """
    record = next(iter(read_provenance(folder)), {}).get("init")
    if record is None:
        return None
    start = read_start(record["from"])
    if start.digest != record["sha256"]:
        raise UserError(
            f"the run in {folder} was stopped before its first checkpoint, and {start.path}, from which it starts, has"
            " changed since: remove the folder, and start again"
        )
    return start


def take(
    start: WarmStart, learner: Learner, optimizer: torch.optim.Optimizer, run: Run, source: Source, progress: Progress
) -> dict[str, Any]:
    """Change a freshly built run to start from a checkpoint of another. The progress says what became of each part;
    what is returned says so in the run's provenance.

    Raises `UserError` where a backbone does not fit, or networks do not correspond.
    """
    with torch.device("meta"):  # only for its names
        theirs = start.run.encoders.build()
    pairs = _pairs(theirs, learner.networks, start.path)
    outcome = {}
    for ours, other in pairs.items():
        outcome |= _take_network(learner.networks.get_submodule(ours), ours, start, other)
    outcome["optimizer"] = _take_moments(start, theirs, pairs, outcome, learner, optimizer, run)
    same = start.images == {"fingerprint": source.fingerprint(), "images": len(source)}
    owner = owners(run.branches)
    for number, branch in enumerate(run.branches):
        encoder = _name(key_encoder(learner.networks, branch), learner.networks)
        whole = all(fate == TAKEN for part, fate in outcome.items() if part.startswith(f"{encoder}."))
        others = sorted(range(len(start.run.branches)), key=lambda other: other != number) if same and whole else []
        fits = [n for n in others if pairs[encoder] == _name(key_encoder(theirs, start.run.branches[n]), theirs)]
        if owner[number] == number and learner.store(number).state_dict():
            fate = _take_memory(start, learner.store(number), branch, fits, len(source))
            if fate == ANEW and learner.store(number).room:
                fill(learner, run, number, source, progress, "the warm network")
                fate = FILLED
            outcome[f"memory of branch {number}"] = fate
        if str(number) in learner.estimators:
            state = learner.estimators[str(number)]
            equal = number in fits and start.run.branches[number].estimator == branch.estimator
            outcome[f"estimator of branch {number}"] = (
                _load(state, start.state("learner", "estimators", str(number))) if equal else ANEW
            )
    progress.line(f"starting from {start.path} (sha256 {start.digest[:12]}):")
    for fate in dict.fromkeys(outcome.values()):
        progress.line(f"  {fate}: {', '.join(part for part, own in outcome.items() if own == fate)}")
    step = start.facts["step"]
    return {"from": str(start.path.absolute()), "step": step, "sha256": start.digest, "parts": outcome}


def _pairs(theirs: RoleNetworks, ours: RoleNetworks, path: Path) -> dict[str, str]:
    """The network of the other run, by name, that each network here takes."""
    trained, there = [_name(network, ours) for network in ours.encoders], _encoders(theirs)
    source = [_name(network, theirs) for network in theirs.encoders]
    if len(source) != 1 and len(source) != len(trained):
        raise UserError(
            f"the run of {path} trained {len(source)} networks, this one trains {len(trained)}: start from a run with"
            " one network, or with as many"
        )
    of = dict(zip(trained, source if len(source) > 1 else source * len(trained), strict=True))
    return {name: of[name] if name in of else name if name in there else source[0] for name in _encoders(ours)}


def _encoders(networks: RoleNetworks) -> list[str]:
    return [name for name, module in networks.named_modules() if isinstance(module, EncoderNetwork)]


def _name(network: nn.Module, networks: RoleNetworks) -> str:
    return next(name for name, module in networks.named_modules() if module is network)


def _load(module: nn.Module, state: dict[str, Tensor]) -> str:
    """Fill a module with a state that fits it."""
    if checkpoint.differing(module.state_dict(), state):
        return ANEW
    module.load_state_dict(state)
    return TAKEN


def _take_network(network: nn.Module, name: str, start: WarmStart, other: str) -> dict[str, str]:
    """Fill the parts of one network."""
    outcome = {}
    for part, module in network.named_children():
        state = start.state("learner", "networks", other, part)
        outcome[f"{name}.{part}"] = fate = _load(module, state)
        if part == "backbone" and fate == ANEW:
            raise UserError(
                f"the backbone in {start.path} is not the one of this run: "
                f"{checkpoint.differing(module.state_dict(), state)}. Choose the backbone that it was trained with"
            )
    return outcome


def _take_moments(
    start: WarmStart,
    theirs: RoleNetworks,
    pairs: dict[str, str],
    outcome: dict[str, str],
    learner: Learner,
    optimizer: torch.optim.Optimizer,
    run: Run,
) -> str:
    """What the other optimizer keeps of the parameters that were taken."""
    facts = start.facts.get("optimizer")
    if facts is None or type(start.run.optimizer) is not type(run.optimizer):
        return ANEW
    before = _numbers(start.run.optimizer.build(nn.ModuleDict({"networks": theirs})), theirs.named_parameters())
    if sum(len(group["params"]) for group in facts["groups"]) != len(before):
        return ANEW  # parameters beside those of the networks
    slots: dict[str, Any] = {**start.state("optimizer"), **_without_prefix(facts["numbers"])}
    moved: dict[str, Any] = {}
    for name, number in _numbers(optimizer, learner.networks.named_parameters()).items():
        encoder = next((each for each in pairs if name.startswith(f"{each}.")), "")
        part = name.removeprefix(f"{encoder}.")
        if outcome.get(f"{encoder}.{part.partition('.')[0]}") == TAKEN:
            old = f"{before[f'{pairs[encoder]}.{part}']}."
            moved |= {f"{number}.{slot.removeprefix(old)}": v for slot, v in slots.items() if slot.startswith(old)}
    tensors = {f"optimizer.{slot}": value for slot, value in moved.items() if isinstance(value, Tensor)}
    numbers = {f"optimizer.{slot}": value for slot, value in moved.items() if not isinstance(value, Tensor)}
    groups = optimizer.state_dict()["param_groups"]
    checkpoint.restore_optimizer(optimizer, tensors, {"groups": groups, "numbers": numbers})
    return TAKEN


def _without_prefix(numbers: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("optimizer."): value for name, value in numbers.items()}


def _numbers(optimizer: torch.optim.Optimizer, named: Iterable[tuple[str, nn.Parameter]]) -> dict[str, int]:
    """The number by which an optimizer's state knows each of its parameters."""
    order = [id(parameter) for group in optimizer.param_groups for parameter in group["params"]]
    return {name: order.index(id(parameter)) for name, parameter in named if id(parameter) in order}


def _take_memory(start: WarmStart, store: Store, branch: Branch, others: list[int], images: int) -> str:
    """Fill a store with the first memory of the other run that fits: as it is, or else the rows of a bank."""
    candidates = [
        (start.run.branches[number], start.state("learner", "stores", str(number)))
        for number in others
        if start.run.branches[number].remember in (branch.remember, EachKey())
    ]
    for other, state in candidates:
        own = store.state_dict()
        if other.memory == branch.memory and not checkpoint.differing(own, state):
            keep = {name: own[name] for name in own if name == "seed"}  # clusterings follow from the new run's seed
            store.load_state_dict({**state, **keep})
            return TAKEN
    for _, state in candidates:
        rows, own = state.get("vector"), store.state_dict().get("vector")
        numbered = torch.equal(state.get("image", torch.zeros(0)), torch.arange(images))
        if store.room == images and numbered and rows is not None and own is not None and rows.shape == own.shape:
            store.begin(Keys(rows, state["image"]))
            return ROWS_TAKEN
    return ANEW
