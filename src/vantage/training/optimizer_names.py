"""Optimizers by name."""

import re
from typing import Any

from vantage.composition.expression import read_value
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError
from vantage.training.optimizers import LARS, SGD, AdamW, Optimizer

__all__ = ["OPTIMIZERS", "optimizer_named"]

OPTIMIZERS: dict[str, tuple[type[Any], float]] = {"sgd": (SGD, 0.03), "adamw": (AdamW, 1e-3), "lars": (LARS, 0.3)}
"""Optimizers by name, each with the learning rate that suits it at a batch of 256: MoCo's for SGD, SimCLR's for LARS;
for AdamW our choice."""


def optimizer_named(name: str) -> tuple[Optimizer, float | None]:
    """The optimizer with this name and the learning rate that suits it at a batch of 256; `None` for one of your own.

    A name is one of `OPTIMIZERS`, MODULE:NAME for a part of your own, or a part with its settings, such as
    `SGD(momentum=0.8)`. Raises `UserError` for any other name.
    """
    plain = name.strip().lower()
    if plain in OPTIMIZERS:
        kind, rate = OPTIMIZERS[plain]
        return kind(), rate
    if re.fullmatch(r"[\w-]*", plain):
        raise UserError(
            f"there is no optimizer {name!r}{did_you_mean(plain, OPTIMIZERS)} (optimizers: {', '.join(OPTIMIZERS)},"
            " MODULE:NAME, or a part such as SGD(momentum=0.8))"
        )
    optimizer = read_value(name, Optimizer, "optimizer")
    return optimizer, next((rate for kind, rate in OPTIMIZERS.values() if type(optimizer) is kind), None)
