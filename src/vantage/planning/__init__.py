"""From images and minutes to a run: what fits this machine and this time."""

from vantage.planning.plan import plan

__all__ = ["plan"]
