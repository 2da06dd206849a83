"""Parts as data: walk a composition, fit it to a data set, save it, read it back, and change values by their paths."""

from vantage.composition.codec import allowing

__all__ = ["allowing"]
