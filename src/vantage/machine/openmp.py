"""OpenMP threads that wait for each other go to sleep soon, so that other programs can use their cores.

At the end of every parallel loop, GNU's OpenMP lets a thread spin for about a tenth of a second before it sleeps. If
another program takes a core, the others spin for a thread that is not running, and training falls to a fraction of its
speed (`benchmarks/threads.py`).
"""

import os
import sys

__all__ = ["sleep_soon"]

_SPINS = "5000"  # a fraction of a millisecond: it costs a quiet machine one percent; fewer spins cost more
_VARIABLES = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME")


def sleep_soon() -> bool:
    """Let threads that wait sleep after 5,000 spins; returns whether it took effect.

    OpenMP reads its variables once, when torch is loaded, so call this before. Does nothing after that, or if the
    user has set `GOMP_SPINCOUNT`, `OMP_WAIT_POLICY` or `KMP_BLOCKTIME`. The variable is inherited by worker processes.
    """
    if "torch" in sys.modules or any(name in os.environ for name in _VARIABLES):
        return False
    os.environ["GOMP_SPINCOUNT"] = _SPINS
    return True
