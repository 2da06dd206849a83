"""Two processes that look for unreadable images together, for `data/test_scan.py`."""

from pathlib import Path

import torch

from vantage import processes
from vantage.data import Folder, open_source, scan


def scan_twice(folder: Path) -> None:
    """Scan the images in `folder` by both processes, each with a cache of its own, then with one cache of the two
    emptied; write what was found and how many images this process decoded each time."""
    rank, decoded = processes.rank(), [0]
    image = Folder.image

    def counted(self: Folder, number: int) -> torch.Tensor:
        decoded[0] += 1
        return image(self, number)

    Folder.image = counted
    cache = folder / f"cache-{rank}"
    source = open_source(str(folder / "images"), cache=folder / f"index-{rank}")
    found: dict[str, list[int]] = {}
    for name in ("first", "second", "third"):
        decoded[0] = 0
        found[name] = [one.number for one in scan(source, 1, cache, together=True).bad]
        found[f"decoded {name}"] = decoded.copy()
        if name == "second" and rank:
            for file in cache.rglob("*.json"):
                file.unlink()
    torch.save({name: torch.tensor(value) for name, value in found.items()}, folder / f"{rank}.pt")
