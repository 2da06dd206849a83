"""What is fuzzed: a good file, a way to damage it, and its reader."""

import json
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tiny import ALLOW

from vantage.composition.codec import allowing
from vantage.storage.files import digest_of_file
from vantage.training.folder import checkpoint

__all__ = ["Damage", "Target", "of_file", "sealing"]

Damage = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Target:
    """A good file, a way to damage it, and what a user does with it: `read` takes the file and the cache folder."""

    file: str
    content: bytes
    damage: Damage
    read: Callable[[Path, Path], object]


def of_file(file: Path, folder: Path, damage: Damage, read: Callable[[Path, Path], object]) -> Target:
    """The target of a file that lies below `folder`."""
    return Target(str(file.relative_to(folder)), file.read_bytes(), damage, read)


def sealing(step: Path, read: Callable[[], None]) -> Callable[[Path, Path], None]:
    """A reader of files of the run that has the checkpoint `step`. Whoever can write to a folder can also compute the
    seal, so a damaged checkpoint gets one that fits it; both of its files are put back."""
    facts, tensors = ((step / name).read_bytes() for name in ("facts.json", "tensors.safetensors"))

    def read_sealed(file: Path, cache: Path) -> None:
        if file.parent == step:
            _seal(step, facts if file.name.startswith("tensors") else file.read_bytes())
        try:
            with allowing(*ALLOW):
                read()
        finally:
            if file.parent == step:
                (step / "facts.json").write_bytes(facts)
                (step / "tensors.safetensors").write_bytes(tensors)

    return read_sealed


def _seal(step: Path, facts: bytes) -> None:
    """Write facts with the digest of the tensors, and a seal; if they cannot be sealed, leave what is there."""
    with suppress(ValueError, TypeError, RecursionError):
        content = json.loads(facts)
        if isinstance(content, dict):
            content.pop("sha256", None)
            content["tensors.safetensors"] = digest_of_file(step / "tensors.safetensors")
            content["sha256"] = checkpoint._seal(content)
            (step / "facts.json").write_text(json.dumps(content))
