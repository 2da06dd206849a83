"""Cells that measure themselves: toys, and experiments on image sets that train no run."""
