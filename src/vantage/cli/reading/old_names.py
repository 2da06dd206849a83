"""Option names of earlier versions and other programs, so that an error can suggest the current name."""

from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher

from vantage.composition.suggest import did_you_mean

__all__ = ["suggest_option"]

EVERYWHERE = ("--quiet", "--import", "--help")
"""Flags that every verb accepts."""

_FLAGS = {
    "data.place": "data",
    "place": "data",
    "data": "sets",
    "data.path": "data",
    "data.on-bad-image": "on-bad-image",
    "data.workers": "num-workers",
    "workers": "num-workers",
    "rate.peak": "learning-rate",
    "rate": "learning-rate",
    "rates": "learning-rates",
    "backbone-rate": "backbone-learning-rate",
    "head-rate": "head-learning-rate",
    "head-rates": "head-learning-rates",
    "falls": "milestones",
    "lr": "learning-rate",
    "base-lr": "learning-rate",
    "optimizer.lr": "learning-rate",
    "batch": "batch-size",
    "bs": "batch-size",
    "max-epochs": "epochs",
    "hardware.devices": "devices",
    "hardware.nodes": "nodes",
    "nnodes": "nodes",
    "num-nodes": "nodes",
    "gpus": "devices",
    "device": "devices",
    "hardware.precision": "precision",
    "fp16": "precision",
    "amp": "precision",
    "format": "to",
    "output": "out",
    "output-dir": "out",
    "arch": "backbone",
    "widths": "backbone",
    "seeds": "repetitions",
}
"""Other names of flags."""

_VERBS = {"resume": "resume", "resume-from": "resume", "ckpt-path": "resume"}
"""Options of other programs that are verbs here."""

_LENGTHS = ("--minutes", "--epochs")
"""Options that a run takes when it begins, and not when it is resumed."""

_FIELDS = {
    "rate": "learning_rate",
    "peak": "base",
    "lr": "base",
    "at_epochs": "milestones",
    "batch": "batch_size",
    "place": "path",
    "workers": "num_workers",
    "spare": "exclude",
    "first_moment": "beta1",
    "second_moment": "beta2",
    "epsilon": "eps",
    "trust": "trust_coefficient",
    "tau": "temperature",
    "temp": "temperature",
    "wd": "weight_decay",
    "queue_size": "length",
    "moco_k": "length",
}
"""Other names of fields."""

_SLIP = 0.85
"""Similarity from which an unknown flag is a known one with a slip, such as --dat for --data."""


def _current_names(flag: str) -> tuple[str, str]:
    """The flag that a name may stand for, and the path of the field, under their current names."""
    plain = flag.lstrip("-")
    parts = plain.replace("-", "_").split(".")
    path = ".".join(_FIELDS.get(part, part) for part in parts)
    return f"--{_FLAGS.get(plain, plain)}", "data.max_images" if path == "data.images" else path


def suggest_option(
    flag: str, values: Sequence[str], flags: Sequence[str], settable: Callable[[], Iterable[str]], verb: str
) -> str:
    """A suggestion for an unknown flag: a known flag, a path for `--set`, or a command. `settable` gives the paths;
    it may have to import torch, so it is called only if no flag is meant for certain."""
    if other := _VERBS.get(flag.lstrip("-")):
        return f"; did you mean vantage {other} RUN?"
    if verb == "resume" and flag in _LENGTHS:
        more = f"vantage pretrain --init RUN --data PATH {flag} {next(iter(values), 'N')}"
        return f": a run keeps its length; {more} goes on in a new run from its networks"
    name, path = _current_names(flag)
    for near in (name, f"{name}s"):
        if near in flags:
            return f"; did you mean {near}?"
    near = did_you_mean(flag, (*flags, *EVERYWHERE))
    if near and "." not in flag and _likeness(flag[2:], [one[2:] for one in flags]) >= _SLIP:
        return near
    paths = list(settable()) if "--set" in flags else []
    if ".no_" in path and (yes := path.replace(".no_", ".")) in paths:
        return f"; did you mean --set {yes}=False?"
    ends = [one for one in paths if one == path or one.endswith(f".{path}")]
    if not ends and (
        not near or _likeness(path, paths) > _likeness(path, [one[2:].replace("-", "_") for one in flags])
    ):
        ends = did_you_mean(path, paths).removeprefix("; did you mean ").removesuffix("?").split()[:1]
    if ends:
        return f"; did you mean --set {ends[0]}={','.join(values) or 'True'}?"
    return near or f" (see vantage {verb} --help)"


def _likeness(word: str, names: Iterable[str]) -> float:
    """Similarity of a word to the most similar of the names, compared as a whole or by their last parts."""
    pairs = [(word, one) for one in names] + [(word.rpartition(".")[2], one.rpartition(".")[2]) for one in names]
    return max((SequenceMatcher(None, *pair).ratio() for pair in pairs), default=0.0)
