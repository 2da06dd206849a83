"""What a mistyped word may have meant."""

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean"]

_ELSEWHERE = {
    "lr": "peak",
    "base-lr": "peak",
    "learning-rate": "peak",
    "tau": "temperature",
    "temp": "temperature",
    "wd": "weight-decay",
    "bs": "batch",
    "batch-size": "batch",
    "max-epochs": "epochs",
    "num-workers": "workers",
    "queue-size": "length",
    "moco-k": "length",
    "gpus": "devices",
    "fp16": "precision",
    "amp": "precision",
    "output": "out",
    "data": "sets",
    "output-dir": "out",
}
"""What other programs call our fields, by the last part of a name."""


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """`; did you mean X?` for the nearest known words, whole or by their last part; else `otherwise`."""
    known = list(known)
    last = _ELSEWHERE.get(_last(word), _last(word))
    near = [name for name in known if _last(name) == last]
    near = near or difflib.get_close_matches(word, known, 1, 0.75)
    if not near:
        ends = difflib.get_close_matches(last, {_last(name) for name in known}, 1, 0.75)
        near = [name for name in known if ends and _last(name) == ends[0]]
    if not near and len(word.lstrip("-")) > 2:
        near = [name for name in known if name.lstrip("-").startswith(word.lstrip("-"))]
    if not near:  # the dashes that all flags have make none alike
        plain = {name.lstrip("-"): name for name in known}
        near = [plain[name] for name in difflib.get_close_matches(word.lstrip("-"), plain, 1, 0.5)]
    if not near:
        return otherwise
    more = f" (or {len(near) - 2} more)" if len(near) > 2 else ""
    return f"; did you mean {' or '.join(near[:2])}{more}?"


def _last(name: str) -> str:
    return name.lstrip("-").rpartition(".")[2]
