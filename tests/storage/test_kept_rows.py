"""Rows kept in a file: the same as made, made once, nothing half, and memory for a few of them only."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from vantage.errors import DataError
from vantage.storage import arrays as module
from vantage.storage.arrays import cached_rows
from vantage.storage.rows_file import open_rows


class Maker:
    """Rows of random numbers, each the same whenever it is made; counts how many it made."""

    def __init__(self, *shape: int, fail_at: int | None = None) -> None:
        self.shape, self.fail_at, self.made = shape, fail_at, 0

    def __call__(self, numbers: Tensor) -> Tensor:
        self.made += len(numbers)
        if self.fail_at is not None and self.made > self.fail_at:
            raise KeyboardInterrupt
        rows = [torch.rand(self.shape, generator=torch.Generator().manual_seed(int(one))) for one in numbers]
        return torch.stack(rows)


@pytest.mark.parametrize("resident", [0, 1 << 20], ids=["read", "held"])
def test_rows_are_made_once_and_stay_the_same_to_the_bit(resident: int, tmp_path: Path) -> None:
    first, numbers = Maker(3, 2), torch.tensor([149, 0, 7, 7])
    rows = cached_rows(first, 150, tmp_path / "a.npy", resident)
    assert torch.equal(rows(numbers), Maker(3, 2)(numbers)) and first.made == 151  # one of them for the shape
    again = Maker(3, 2)
    cached = cached_rows(again, 150, tmp_path / "a.npy", resident)
    assert torch.equal(cached(numbers), rows(numbers)) and again.made == 0
    assert cached(torch.arange(0)).shape == (0, 3, 2)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.int64])
def test_numbers_keep_their_kind(dtype: torch.dtype, tmp_path: Path) -> None:
    whole = torch.arange(12).view(4, 3).to(dtype)
    for _ in range(2):
        rows = cached_rows(lambda numbers: whole[numbers], 4, tmp_path / "a.npy", 0)
        assert torch.equal(rows(torch.tensor([3, 1])), whole[[3, 1]]) and rows(torch.arange(1)).dtype == dtype


def test_what_is_broken_off_goes_on_and_leaves_nothing_half(tmp_path: Path) -> None:
    file, whole = tmp_path / "a.npy", tmp_path / "whole.npy"
    with pytest.raises(KeyboardInterrupt):
        cached_rows(Maker(4, fail_at=100), 200, file, 0)
    assert not file.exists()
    with (tmp_path / "a.npy.draft").open("ab") as draft:
        draft.write(b"torn")
    maker, reports = Maker(4), list[tuple[int, int]]()
    cached_rows(maker, 200, file, 0, lambda *counts: reports.append(counts))
    cached_rows(Maker(4), 200, whole, 0)
    assert maker.made == 1 + 200 - 64 and reports == [(128, 200), (192, 200), (200, 200)]
    assert file.read_bytes() == whole.read_bytes() and sorted(tmp_path.iterdir()) == [file, whole]


def test_a_note_that_a_kill_left_says_nothing_of_a_new_draft(tmp_path: Path) -> None:
    """It says that all rows are safe, before they are: a power cut would leave zeros in their place."""
    file, note, notes = tmp_path / "a.npy", tmp_path / "a.npy.draft.json", list[bool]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "finish", lambda draft, file: os.replace(draft, file))  # killed before the note is gone
        cached_rows(Maker(4), 9, file, 0)
    assert note.exists()
    file.unlink()

    def make(numbers: Tensor) -> Tensor:
        notes.append(note.exists())
        return Maker(4)(numbers)

    cached_rows(make, 9, file, 0)
    assert notes == [True, False], "the first row only gives the shape"
    assert not note.exists()


def test_a_damaged_file_is_made_again(tmp_path: Path) -> None:
    file = tmp_path / "a.npy"
    cached_rows(Maker(4), 9, file, 0)
    whole = file.read_bytes()
    for content in (b"", b"nothing", whole[:-1], whole + b"1", whole.replace(b"(9, 4)", b"(4, 9)")):
        file.write_bytes(content)
        maker = Maker(4)
        cached_rows(maker, 9, file, 0)
        assert maker.made == 10 and file.read_bytes() == whole


def test_a_file_that_is_cut_short_is_an_error(tmp_path: Path) -> None:
    rows = cached_rows(Maker(4), 9, tmp_path / "a.npy", 0)
    (tmp_path / "a.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:-1])
    with pytest.raises(DataError, match=r"a.npy changed while it was in use \(it was cut short\)"):
        rows(torch.tensor([8]))


def test_without_a_place_to_write_rows_are_held_or_made_each_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    in_memory, without_file = Maker(4), Maker(4)
    for resident, maker in ((1 << 20, in_memory), (0, without_file)):
        rows = cached_rows(maker, 70, tmp_path / "file" / "a.npy", resident)
        for _ in range(2):
            assert torch.equal(rows(torch.tensor([69, 3])), Maker(4)(torch.tensor([69, 3])))
    assert (in_memory.made, without_file.made) == (71, 5)


def test_half_of_the_disk_stays_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for spare, is_written in ((2 * 9 * 16 - 1, False), (2 * 9 * 16, True)):
        usage = SimpleNamespace(free=spare, total=1 << 40)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)  # noqa: B023
        cached_rows(Maker(4), 9, tmp_path / "a.npy", 0)
        assert (tmp_path / "a.npy").exists() == is_written


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc to tell memory in use")
def test_memory_is_that_of_a_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 4)
    row, count = torch.ones(1 << 18), 128  # 1 MiB each
    bytes_used: list[int] = []

    def count_rows(numbers: Tensor) -> Tensor:
        bytes_used.append(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE"))
        return row.expand(len(numbers), -1).clone()

    before = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    rows = cached_rows(count_rows, count, tmp_path / "a.npy", 0)
    for numbers in torch.arange(count).split(4):
        assert rows(numbers).shape == (len(numbers), 1 << 18)
        count_rows(numbers)
    assert (tmp_path / "a.npy").stat().st_size > 128 << 20
    assert max(bytes_used) - before < 48 << 20


def test_a_file_larger_than_the_memory_is_mapped(tmp_path: Path) -> None:
    file, count = tmp_path / "a.npy", 1 << 28  # a terabyte, of which nothing is on the disk
    with file.open("wb") as rows:
        np.lib.format.write_array_header_1_0(rows, {"descr": "<f4", "fortran_order": False, "shape": (count, 1024)})
        rows.truncate(rows.tell() + count * 4096)
    opened = open_rows(file, count)
    assert opened is not None
    mapped = opened.memory_map()
    mapped[-1] += 1
    assert mapped.shape == (count, 1024) and mapped[-1].sum() == 1024 and opened.part(count - 1, 1).sum() == 0


def test_the_note_that_a_killed_process_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was killed just after its draft had become the file."""
    with monkeypatch.context() as patch:
        patch.setattr(module, "finish", lambda draft, file: draft.replace(file))
        cached_rows(Maker(4), 200, tmp_path / "a.npy", 0)
    assert {path.name for path in tmp_path.iterdir()} == {"a.npy", "a.npy.draft.json"}
    again = Maker(4)
    cached_rows(again, 200, tmp_path / "a.npy", 0)
    assert again.made == 0 and [path.name for path in tmp_path.iterdir()] == ["a.npy"]
