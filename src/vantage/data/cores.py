"""How many processors there are for this process; free of heavy imports, so that the command line's help is quick."""

import os

__all__ = ["CORES"]

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""Processors that this process may use."""
