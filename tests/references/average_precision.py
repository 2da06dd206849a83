"""Average precision by a loop over all recalls."""


def by_loop(score: list[float], positive: list[bool]) -> float:
    """At each positive's recall the best precision of any threshold that reaches this recall; their mean."""
    total = sum(positive)
    points = []
    for threshold in set(score):
        hits = [p for s, p in zip(score, positive, strict=True) if s >= threshold]
        points.append((sum(hits) / total, sum(hits) / len(hits)))
    area = 0.0
    for number in range(1, total + 1):
        area += max(precision for recall, precision in points if recall >= number / total - 1e-12)
    return area / total
