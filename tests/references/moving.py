"""Colorful Moving MNIST as the slowest loops, in float64, from arXiv 2005.10243, section 4.1 and appendix B.4."""

import math

from torch import Tensor


def walk(start: tuple[float, float], direction: float, frames: int, speed: float, room: float) -> list[list[float]]:
    """One frame after the other; at a wall the rest of the way is gone backwards, and the velocity turns round."""
    position = [float(start[0]), float(start[1])]
    velocity = [speed * math.cos(direction), speed * math.sin(direction)]
    path = [list(position)]
    for _ in range(frames - 1):
        for axis in (0, 1):
            position[axis] += velocity[axis]
            while not 0.0 <= position[axis] <= room:
                wall = 0.0 if position[axis] < 0.0 else room
                position[axis] = 2 * wall - position[axis]
                velocity[axis] = -velocity[axis]
        path.append(list(position))
    return path


def composite(digit: Tensor, background: Tensor, x: int, y: int) -> Tensor:
    """Pixel by pixel the lighter one, in every channel."""
    frame = background.clone()
    for row in range(digit.shape[0]):
        for column in range(digit.shape[1]):
            for channel in range(3):
                brightness = int(background[channel, y + row, x + column])
                frame[channel, y + row, x + column] = max(int(digit[row, column]), brightness)
    return frame


def contrast(first: Tensor, second: Tensor, temperature: float) -> float:
    """Intra-batch InfoNCE: each vector against the other side's, its own the positive; mean over both directions."""
    total = 0.0
    for queries, keys in ((first.double(), second.double()), (second.double(), first.double())):
        for i in range(len(queries)):
            terms = [float(queries[i] @ keys[j]) / temperature for j in range(len(keys))]
            total -= terms[i] - math.log(sum(math.exp(term) for term in terms))
    return total / (2 * len(first))
