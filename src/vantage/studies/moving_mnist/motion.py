"""Straight motion in a square, reflected at its walls.

b: clips   t: frames
"""

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["digit_positions", "reflect"]


def reflect(place: Float[Tensor, "*s"], room: float) -> Float[Tensor, "*s"]:
    """Where a coordinate is that moves freely along the line, if there are walls at 0 and `room` instead.

    Each wall turns the motion round, so the coordinate runs up and down with period 2 · room.
    """
    return room - (place.remainder(2 * room) - room).abs()


def digit_positions(
    start: Float[Tensor, "b 2"], direction: Float[Tensor, "b"], frames: int, speed: float, room: float
) -> Float[Tensor, "b t 2"]:
    """Where a digit is in each frame, as x and y of its upper left corner in pixels.

    Frame 1 is at `start`; from frame to frame it moves by `speed` pixels in `direction` (radians), and a wall turns
    round the part of the velocity that meets it. A start that is uniform in [0, room]² is uniform in every frame.
    """
    velocity = speed * torch.stack([direction.cos(), direction.sin()], 1)
    time = torch.arange(frames, dtype=start.dtype, device=start.device)
    return reflect(start[:, None] + time[:, None] * velocity[:, None], room)
