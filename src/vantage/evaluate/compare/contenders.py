"""The rows of a comparison: runs that differ only in their seed as one row, and the baselines of all."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vantage.errors import UserError
from vantage.frozen.encoder import FrozenEncoder, load, random_encoder, raw_pixels
from vantage.storage.provenance import read_provenance
from vantage.training.run import Hardware, Monitoring

__all__ = ["Contender", "ContenderEncoder", "contenders"]


@dataclass(frozen=True)
class ContenderEncoder:
    """One encoder to judge."""

    folder: Path
    """The run's folder, where results are recorded."""
    encoder: FrozenEncoder
    """The encoder to judge: the run's own, or a baseline of it."""
    run_encoder: FrozenEncoder
    """The run's own encoder."""


@dataclass(frozen=True)
class Contender:
    """A row of the table."""

    name: str
    """Name of the row."""
    members: tuple[ContenderEncoder, ...]
    """One for each seed."""
    trained: bool
    """Whether it was trained."""
    network: bool = True
    """Whether it has a network; raw pixels have none."""


def contenders(folders: Sequence[Path], network: int | None = None) -> tuple[Contender, ...]:
    """One row for all runs that differ at most in seed, hardware and monitoring, at the same checkpoint, if they began
    alike (`_beginning`); then, once each, raw pixels through every view, and random encoders of every architecture
    through every view, with the seeds of its runs.

    `network` is the number of the network to evaluate, as in `vantage.load`. Raises `UserError` for two runs with the
    same settings and the same seed.
    """
    rows = _group_by_settings([(folder, load(folder, network)) for folder in folders])
    return (*rows, *_baselines(rows, network))


def _group_by_settings(runs: Sequence[tuple[Path, FrozenEncoder]]) -> list[Contender]:
    groups: list[tuple[Any, list[ContenderEncoder]]] = []
    for folder, encoder in runs:
        without_seed = replace(encoder.run, seed=0, hardware=Hardware(), monitoring=Monitoring())
        key = (without_seed, encoder.checkpoint.name if encoder.checkpoint else "", _beginning(folder))
        members = next((members for other, members in groups if other == key), None)
        if members is None:
            members = []
            groups.append((key, members))
        elif any(encoder.run.seed == other.encoder.run.seed for other in members):
            raise UserError(f"{folder} is a second run with the same settings and the same seed: name one of them")
        members.append(ContenderEncoder(folder, encoder, encoder))
    firsts = [members[0] for _, members in groups]
    return [Contender(_name(members[0], firsts), tuple(members), True) for _, members in groups]


def _beginning(folder: Path) -> str:
    """What the settings of a run do not say: the images that it began on, as `data.path` may be empty or show others
    today, and which parts of a warm start it took. Runs of several seeds may start from runs of several seeds, but from
    one file of weights."""
    record = next(iter(read_provenance(folder)), {})
    start = record.get("init") or {}
    step = start.get("step")  # a file of weights has none
    facts = [record.get("data", {}).get("fingerprint"), step, start.get("parts"), step or start.get("sha256")]
    return json.dumps(facts, sort_keys=True)


def _name(first: ContenderEncoder, firsts: Sequence[ContenderEncoder]) -> str:
    """The name of the row of `first`: its recipe. If other rows have the same recipe, the name of the folder is added;
    if that is the same too, the folder's whole path."""
    recipe, folder = first.encoder.name, first.folder.resolve()
    same = [other.folder.resolve() for other in firsts if other is not first and other.encoder.name == recipe]
    if not same:
        return recipe
    return f"{recipe} ({folder if folder.name in {other.name for other in same} else folder.name})"


def _baselines(rows: Sequence[Contender], network: int | None) -> Iterator[Contender]:
    views: set[str] = set()
    networks: set[tuple[str, ...]] = set()
    for row in rows:
        first = row.members[0]
        pixels = raw_pixels(first.run_encoder.run, network)
        view = repr(pixels.view)
        if view not in views:
            views.add(view)
            member = ContenderEncoder(first.folder, pixels, first.run_encoder)
            yield Contender(f"raw pixels as {row.name} sees them", (member,), False, network=False)
        random = [
            random_encoder(member.run_encoder.run, member.run_encoder.run.seed, network) for member in row.members
        ]
        if (seen := (view, *(encoder.digest() for encoder in random))) not in networks:
            networks.add(seen)
            pairs = zip(row.members, random, strict=True)
            members = tuple(ContenderEncoder(member.folder, encoder, member.run_encoder) for member, encoder in pairs)
            yield Contender(f"random encoder of {row.name}", members, False)
