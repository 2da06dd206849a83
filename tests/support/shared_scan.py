"""Two processes that look for unreadable images, or decode all images, together: for `data/test_scan.py`."""

from pathlib import Path

import torch

from vantage import processes
from vantage.data import Folder, SourceSubset, open_source, resident, scan
from vantage.errors import DataError


def scan_twice(folder: Path) -> None:
    """Scan the images in `folder` by both processes, each with a cache of its own, then with one cache of the two
    emptied; write what was found and how many images this process decoded each time. Then scan them with one thread on
    one process and two on the other, as on machines with different numbers of cores."""
    rank, decoded = processes.rank(), _counting()
    cache = folder / f"cache-{rank}"
    source = open_source(str(folder / "images"), cache=folder / f"index-{rank}")
    found: dict[str, list[int]] = {}
    for name in ("first", "second", "third"):
        decoded.clear()
        found[name] = [one.number for one in scan(source, 1, cache, together=True).bad]
        found[f"decoded {name}"] = [len(decoded)]
        if name == "second" and rank:
            for file in cache.rglob("*.json"):
                file.unlink()
    found["other cores"] = [one.number for one in scan(source, 1 + rank, folder / f"new-{rank}", together=True).bad]
    torch.save({name: torch.tensor(value) for name, value in found.items()}, folder / f"{rank}.pt")


def decode_together(folder: Path) -> None:
    """Decode the images in `folder` by both processes, in blocks of 8; write the pixels and the numbers of the images
    that this process decoded. Then the same with three
    larger images, which only one process sees."""
    rank, decoded, resident._BLOCK = processes.rank(), _counting(), 8
    source = SourceSubset(open_source(str(folder / "images"), cache=folder / f"index-{rank}"), range(21))
    pixels = resident.decode_all(source, num_workers=1, cache=folder / "kept")
    own = sorted(decoded)
    again = resident.decode_all(source, num_workers=1, cache=folder / "kept")
    read, message = len(decoded) - len(own), ""
    try:
        resident.decode_all(open_source(str(folder / "images"), cache=folder / f"index-{rank}"), num_workers=1)
    except DataError as problem:
        message = str(problem)
    written = {"pixels": pixels, "again": again, "own": own, "read": read, "message": message}
    torch.save(written, folder / f"{rank}.pt")


def _counting() -> list[int]:
    """A list to which the number of each image is added that a folder decodes from now on."""
    decoded, image = list[int](), Folder.image

    def counted(self: Folder, number: int) -> torch.Tensor:
        decoded.append(number)
        return image(self, number)

    Folder.image = counted
    return decoded
