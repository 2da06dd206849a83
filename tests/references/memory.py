"""Memories as plain lists, one key at a time."""

import math


def queue(length: int, start: list[list[float]], batches: list[list[list[float]]]) -> list[list[float]]:
    """The newest `length` keys, oldest first, after appending every key of every batch in order."""
    keys_in_order = list(start)
    for batch in batches:
        for key in batch:
            keys_in_order.append(key)
            if len(keys_in_order) > length:
                keys_in_order.pop(0)
    return keys_in_order


def bank(rows: list[list[float]], image: list[int], keys: list[list[float]], old: float) -> list[list[float]]:
    """M ← norm(old · M + (1 − old) · mean of the image's keys), for each image once."""
    rows = [list(row) for row in rows]
    for number in set(image):
        mine = [key for i, key in zip(image, keys, strict=True) if i == number]
        mean = [sum(values) / len(mine) for values in zip(*mine, strict=True)]
        mixture = [old * was + (1 - old) * new for was, new in zip(rows[number], mean, strict=True)]
        length = math.sqrt(sum(value * value for value in mixture))
        rows[number] = [value / length for value in mixture]
    return rows


def slow(own: list[float], other: list[float], momentum: float) -> list[float]:
    """m · own + (1 − m) · other, number by number."""
    return [momentum * a + (1 - momentum) * b for a, b in zip(own, other, strict=True)]
