"""What is fuzzed: a good file, how it is damaged, and who reads it."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Damage = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Target:
    """A good file, how it is damaged, and what a person does with it: `read` takes the file and the cache."""

    file: str
    content: bytes
    damage: Damage
    read: Callable[[Path, Path], object]
