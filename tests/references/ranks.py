"""Bands of ranks as the slowest obvious lists, in exact fractions."""

from fractions import Fraction


def ring(cosine: list[float], keep: str, drop: str, relative: bool = True) -> list[int]:
    """CNCE section 4 and methods.md 2.8: sort descending, keep ranks [i, o), o = ⌊p_o n⌋, i = ⌊p_i o⌋ or ⌊p_i n⌋.

    Shares are decimals, so that ⌊.29 · 100⌋ is 29. At least one stays of any. Gives columns.
    """
    order = sorted(range(len(cosine)), key=lambda column: (-cosine[column], column))
    outer = max(Fraction(keep) * len(order) // 1, min(1, len(order)))
    inner = min(Fraction(drop) * (outer if relative else len(order)) // 1, max(outer - 1, 0))
    return sorted(order[inner:outer])
