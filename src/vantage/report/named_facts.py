"""The facts of everything that a report can show: runs, and weights from elsewhere."""

from collections.abc import Sequence
from pathlib import Path

from vantage.errors import UserError
from vantage.facts.results import recorded_results
from vantage.facts.run_facts import RunFacts, facts_of
from vantage.frozen.encoder import load
from vantage.frozen.outside import OutsideWeights, home_of, outside_weights

__all__ = ["named_facts"]


def named_facts(runs: Sequence[Path]) -> list[RunFacts]:
    """The facts of runs' folders and of weights such as `torchvision:resnet18=FILE`, in the order given.

    Raises `UserError` if a folder holds no run, weights do not fit their network, or something is named twice.
    """
    weights = [outside_weights(run) for run in runs]
    files = [one.file.resolve() for one in weights if one is not None]
    if len(set(files)) < len(files):
        raise UserError("a file of weights is named twice: name each file once")
    folders = [run for run, one in zip(runs, weights, strict=True) if one is None]
    of_folders = iter(facts_of(folders) if folders or not runs else [])
    names = [one.name for one in weights if one is not None]
    return [
        next(of_folders) if one is None else _facts(run, one, unique=names.count(one.name) == 1)
        for run, one in zip(runs, weights, strict=True)
    ]


def _facts(path: Path, weights: OutsideWeights, unique: bool) -> RunFacts:
    home, encoder = home_of(path), load(path)
    name = weights.name if unique else str(path)
    results = recorded_results(home)
    return RunFacts(name, home, encoder.run, [], [], encoder.width, weights.file.name, results, str(path))
