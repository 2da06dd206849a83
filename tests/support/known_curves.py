"""Curves and features whose verdict and facts are known."""

from typing import Any

import torch
from torch import Tensor

WIDTH, BATCH = 64, 32


def curve(epochs: int = 20, **changes: Any) -> list[dict[str, Any]]:
    """The rows of a run that went well and leveled off. `changes` replaces a column by one value, or by a list."""
    rows = []
    for epoch in range(1, epochs + 1):
        remainder = 0.5**epoch
        row = {"epoch": epoch, "step": 10 * epoch, "loss": 2 + 2 * remainder, "accuracy": 0.9 - 0.6 * remainder}
        row |= {"alignment": 0.3 + remainder, "uniformity": -3.0, "deviation": 0.9, "rank": 40.0}
        rows.append(row | {name: one[epoch - 1] if isinstance(one, list) else one for name, one in changes.items()})
    return rows


def features() -> Tensor:
    """Forty unit vectors around four directions: 3 is a copy of 2, and 39 is far from all others."""
    chance = torch.Generator().manual_seed(0)
    center = torch.eye(12)[:4].repeat_interleave(10, 0)
    vector = center + 0.15 * torch.randn(40, 12, generator=chance)
    vector[3], vector[39] = 2 * vector[2], torch.eye(12)[9]
    return torch.nn.functional.normalize(vector, dim=1)
