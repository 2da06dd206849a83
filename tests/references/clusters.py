"""Clusterings as plain lists, one row at a time."""

from references import memory


def mean(rows: list[list[float]]) -> list[float]:
    """Their mean, number by number."""
    return [sum(values) / len(rows) for values in zip(*rows, strict=True)]


def distance(row: list[float], centroid: list[float]) -> float:
    """‖v − c‖²."""
    return sum((v - c) ** 2 for v, c in zip(row, centroid, strict=True))


def inner(row: list[float], centroid: list[float]) -> float:
    """−v·c, so that smaller is nearer as for a distance."""
    return -sum(v * c for v, c in zip(row, centroid, strict=True))


def nearest(row: list[float], centroids: list[list[float]], apart=distance) -> int:
    """The number of the nearest centroid."""
    far = [apart(row, centroid) for centroid in centroids]
    return far.index(min(far))


def lloyd(rows: list[list[float]], centroids: list[list[float]], iterations: int) -> list[int]:
    """Labels after `iterations` of k-means in which no cluster is left empty."""
    for _ in range(iterations):
        label = [nearest(row, centroids) for row in rows]
        centroids = [
            mean([row for row, own in zip(rows, label, strict=True) if own == k]) for k in range(len(centroids))
        ]
    return [nearest(row, centroids) for row in rows]


def online(
    rows: list[list[float]],
    label: list[int],
    centroids: list[list[float]],
    batches: list[tuple[list[int], list[list[float]]]],
    old: float,
    refresh: int,
    apart=distance,
) -> tuple[list[list[float]], list[int], list[list[float]]]:
    """InterCLR §3.1: rows move, their images take the nearest centroid, then centroids become means, if of any row."""
    rows, label, centroids = [list(row) for row in rows], list(label), [list(c) for c in centroids]
    for number, (image, keys) in enumerate(batches, 1):
        rows = memory.bank(rows, image, keys, old)
        for i in image:
            label[i] = nearest(rows[i], centroids, apart)
        if number % refresh == 0:
            for k in range(len(centroids)):
                members = [row for row, own in zip(rows, label, strict=True) if own == k]
                centroids[k] = mean(members) if members else centroids[k]
    return rows, label, centroids
