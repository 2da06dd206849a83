"""Plan a run that suits the images, this machine and the minutes available."""

from vantage.planning.plan import plan

__all__ = ["plan"]
