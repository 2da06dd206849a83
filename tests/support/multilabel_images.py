"""Images that show several classes, some of them marked as difficult."""

import numpy as np
import torch

from vantage.data import Arrays


class Several(Arrays):
    """Images whose marks are given."""

    def __init__(self, pixels: np.ndarray, mark: torch.Tensor) -> None:
        super().__init__(pixels, np.zeros(len(pixels), int), "several")
        self.pixels, self.mark, self.classes = pixels, mark, tuple(f"class {n}" for n in range(mark.shape[1]))  # pyright: ignore

    def marks(self) -> torch.Tensor:
        return self.mark

    def fingerprint(self) -> str:
        return f"{super().fingerprint()} {self.mark.tolist()}"


def several(count: int, seed: int) -> Several:
    """Squares whose color channels show which of three classes an image has: any number of them, some difficult."""
    chance = np.random.default_rng(seed)
    mask = chance.random((count, 3)) < 0.4
    color = 70 + 90 * mask + chance.normal(0, 50, (count, 3))
    pixels = color[:, None, None, :] + chance.normal(0, 20, (count, 32, 32, 3))
    mark = torch.from_numpy(np.where(mask, 1, -1).astype(np.int8))
    mark[torch.from_numpy(chance.random((count, 3)) < 0.1) & (mark == 1)] = 0
    return Several(pixels.clip(0, 255).astype(np.uint8), mark)
