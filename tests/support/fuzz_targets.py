"""What is fuzzed: a good file, a way to damage it, and its reader."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Damage = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Target:
    """A good file, a way to damage it, and what a user does with it: `read` takes the file and the cache folder."""

    file: str
    content: bytes
    damage: Damage
    read: Callable[[Path, Path], object]
