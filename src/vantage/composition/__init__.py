"""Parts as data: walk a composition, fit it to a data set, save it, read it back, change a value by its path."""

from vantage.composition.codec import allowing

__all__ = ["allowing"]
