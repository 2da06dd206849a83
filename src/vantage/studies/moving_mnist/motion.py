"""Straight motion in a square, reflected at its walls.

b: clips   t: frames   s: any shape
"""

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["digit_positions", "reflect"]


def reflect(place: Float[Tensor, "*s"], room: float) -> Float[Tensor, "*s"]:
    """Fold a coordinate that moves freely along the line into [0, room], as if walls reflected it.

    Each wall reverses the motion, so the coordinate moves back and forth with period 2 · room.
    """
    return room - (place.remainder(2 * room) - room).abs()


def digit_positions(
    start: Float[Tensor, "b 2"], direction: Float[Tensor, "b"], frames: int, speed: float, room: float
) -> Float[Tensor, "b t 2"]:
    """The digit's position in each frame: x and y of its upper left corner, in pixels.

    Frame 1 is at `start`. Each frame moves it by `speed` pixels in `direction` (radians); a wall reverses the velocity
    component that is perpendicular to it. If the start is uniform in [0, room]², so is the position in every frame.
    """
    velocity = speed * torch.stack([direction.cos(), direction.sin()], 1)
    time = torch.arange(frames, dtype=start.dtype, device=start.device)
    return reflect(start[:, None] + time[:, None] * velocity[:, None], room)
