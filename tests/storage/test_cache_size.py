"""The bound on a cache: what goes first, what stays, and that nobody who uses a file notices."""

import fcntl
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import vantage
from vantage.errors import UserError
from vantage.storage.arrays import cache_rows, draft_of, filled
from vantage.storage.cache import cache_folder, hash_of
from vantage.storage.cache_size import KINDS, VARIABLE, cache_files, in_use, make_room, most_bytes, remove
from vantage.storage.rows_file import open_rows
from vantage.storage.state import StateFile


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of at most 1 MB."""
    monkeypatch.setenv(VARIABLE, "1MB")
    return tmp_path / "cache"


def add(cache: Path, number: int, size: int = 300_000, kind: str = "features", ending: str = ".npy") -> Path:
    """A file that was last used at a time that grows with its number."""
    file = cache / kind / f"{hash_of([bytes([number])])}{ending}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(bytes(size))
    os.utime(file, (0, 1000 + number))
    return file


def there(*files: Path) -> list[bool]:
    return [file.exists() for file in files]


def new(cache: Path) -> Path:
    return cache / "decoded" / f"{hash_of([b'new'])}.npy"


def test_the_least_recently_used_go_until_the_new_file_fits(cache: Path) -> None:
    files = [
        add(cache, 2),
        add(cache, 0, kind="tars", ending=".tar"),
        add(cache, 1, kind="linear", ending=".safetensors"),
    ]
    make_room(new(cache), 100_000)
    assert there(*files) == [True, True, True]
    make_room(new(cache), 100_001)
    assert there(*files) == [True, False, True]
    make_room(new(cache), 1_000_000)
    assert there(*files) == [False, False, False]
    make_room(new(cache), 5_000_000)  # more than the bound, which nothing can help
    make_room(add(cache, 3), 900_000)  # the file itself is replaced, and neither goes nor counts
    assert there(add(cache, 3)) == [True]


def test_a_file_that_is_opened_counts_as_used(cache: Path) -> None:
    files = [add(cache, number) for number in range(3)]
    in_use(files[0]).close()
    make_room(new(cache), 300_000)
    assert there(*files) == [True, False, True]


def test_rows_in_use_stay_and_can_be_read_even_if_they_are_removed_by_hand(cache: Path) -> None:
    expected = torch.rand(100, 7)
    file = cache / "features" / f"{hash_of([b'rows'])}.npy"
    rows = cache_rows(file, (100, 7), torch.float32, {}, lambda start: expected[start:].split(64))
    assert rows is not None
    make_room(new(cache), 1_000_000)
    assert there(file) == [True]
    other_process = pickle.loads(pickle.dumps(rows))  # between our own processes, never from a file
    file.unlink()
    assert torch.equal(other_process.part(0, 100), expected)
    assert torch.equal(rows(torch.tensor([99, 3])), expected[[99, 3]]) and torch.equal(rows.part(1, 5), expected[1:6])
    assert torch.equal(rows.memory_map(), expected)


def test_rows_are_whole_if_the_system_reads_less_than_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does beyond 2 GiB."""
    expected, read = torch.rand(10, 7), os.preadv
    rows = cache_rows(tmp_path / "a.npy", (10, 7), torch.float32, {}, lambda start: expected[start:].split(64))
    monkeypatch.setattr(os, "preadv", lambda number, buffers, start: read(number, [buffers[0][:13]], start))
    assert (
        rows is not None
        and torch.equal(rows.part(2, 8), expected[2:])
        and torch.equal(rows(torch.tensor([9])), expected[9:])
    )


def test_a_memory_map_alone_keeps_its_file(cache: Path) -> None:
    file = cache / "features" / f"{hash_of([b'rows'])}.npy"
    cache_rows(file, (100, 7), torch.float32, {}, lambda start: torch.ones(100, 7)[start:].split(64))
    rows = open_rows(file, 100)
    assert rows is not None
    mapped = rows.memory_map()
    del rows
    make_room(new(cache), 1_000_000)
    assert there(file) == [True] and float(mapped.sum()) == 700
    del mapped
    make_room(new(cache), 1_000_000)
    assert there(file) == [False]


def test_a_draft_that_is_being_filled_stays_and_an_abandoned_one_goes_with_its_note(cache: Path) -> None:
    file = cache / "features" / f"{hash_of([b'rows'])}.npy"
    draft, others = draft_of(file), [add(cache, number) for number in range(3)]

    def parts(start: int):
        assert there(*others) == [False, True, True]  # to make room for the 200 kB of these rows
        yield torch.ones(100, 500)[start:50]
        make_room(new(cache), 1_000_000)
        assert there(draft, *others) == [True, False, False, False]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), filled(draft, (100, 500), torch.float32, {}, parts, sparing=True):
        pass
    assert there(draft, draft.with_name(f"{draft.name}.json")) == [True, True]
    make_room(new(cache), 1_000_000)
    assert list(draft.parent.iterdir()) == []


@pytest.mark.parametrize("name", ["0123abcd", "unfinished"])
def test_what_is_written_under_a_temporary_name_stays_for_a_day(cache: Path, name: str) -> None:
    young, old = add(cache, 1, ending=f".npy.{name}"), add(cache, 2, ending=f".tar.{name}")
    os.utime(young)
    make_room(new(cache), 1_000_000)
    assert there(young, old) == [True, False]


def test_what_is_small_or_not_ours_stays(cache: Path, tmp_path: Path) -> None:
    small = [add(cache, 1, ending=ending) for ending in (".json", ".npy.draft.json", "-bad-images.txt")]
    small.append(add(cache, 1, kind="shards"))
    foreign = [cache / "features" / name for name in ("a.npy", f"{'A' * 32}.npy", f"{'a' * 32}.npy.bak", f"{'a' * 32}")]
    foreign += [
        cache / "sets" / f"{'a' * 32}.tar",
        cache / f"{'a' * 32}.npy",
        cache / "features" / "b" / f"{'a' * 32}.npy",
    ]
    outside = [tmp_path / "a.npy", tmp_path / "maps" / f"{'a' * 32}.npy", tmp_path / "report" / f"{'a' * 32}.npy"]
    for file in (*foreign, *outside):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(600_000))
    link = cache / "features" / f"{'b' * 32}.npy"
    link.symlink_to(outside[0])
    (cache / "maps").symlink_to(tmp_path / "maps")
    folder = cache / "features" / f"{'c' * 32}.npy"
    folder.mkdir()
    goes = add(cache, 9)
    make_room(new(cache), 1_000_000)
    make_room(tmp_path / "report" / f"{'d' * 32}.npy", 1_000_000)
    assert all(there(*small, *foreign, *outside, link, folder)) and not goes.exists()
    for file in cache_files(cache):
        assert remove(file)
    assert not any(there(*small)) and all(there(*foreign, *outside, link, folder))


def test_a_locked_file_is_kept_for_its_user_in_another_process(cache: Path) -> None:
    file, program = add(cache, 0), "import sys; from vantage.storage.cache_size import *; from pathlib import Path\n"
    program += "file = in_use(Path(sys.argv[1])); print(flush=True); sys.stdin.read()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program, str(file)], **pipes) as user:
        assert user.stdin and user.stdout and user.stdout.readline()
        make_room(new(cache), 1_000_000)
        assert file.exists()
        user.stdin.close()
    make_room(new(cache), 1_000_000)
    assert not file.exists()


def test_two_processes_make_room_at_once(cache: Path) -> None:
    for number in range(200):
        add(cache, number, 10_000)
    program = "import sys; from vantage.storage.cache_size import make_room; from pathlib import Path\n"
    program += "print(flush=True); sys.stdin.read(); make_room(Path(sys.argv[1]), 500_000)"
    command = [sys.executable, "-c", program, str(new(cache))]
    both = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    for one in both:
        assert one.stdout and one.stdout.readline()
    for one in both:
        assert one.stdin
        one.stdin.close()
    for one in both:
        assert one.stdout
        one.stdout.close()
        one.wait()
    assert [one.returncode for one in both] == [0, 0]
    left = [int(file.used) - 1000 for file in cache_files(cache)]
    assert 0 < len(left) <= 50 and min(left) >= 150


def test_a_file_that_another_process_removed_or_replaced_meanwhile(cache: Path) -> None:
    removed, replaced = add(cache, 0), add(cache, 1)
    files = {file.path: file for file in cache_files(cache)}
    removed.unlink()
    assert remove(files[removed])
    with replaced.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        assert not remove(files[replaced])
    assert remove(files[replaced])


def test_a_cache_that_cannot_be_listed_is_no_error(cache: Path) -> None:
    make_room(new(cache), 1_000_000)
    cache.write_text("")
    make_room(new(cache), 1_000_000)
    StateFile(cache / "linear" / f"{'a' * 32}.safetensors").write({"a": torch.ones(1)}, {})
    assert cache_files(cache) == []


def test_a_state_makes_room_and_is_read_again(cache: Path) -> None:
    files = [add(cache, number) for number in range(3)]
    state = StateFile(cache / "linear" / f"{'a' * 32}.safetensors")
    for value in range(2):  # the second replaces the first
        state.write({"a": torch.full((90_000,), float(value))}, {"epochs": value})
        assert there(*files, state.file) == [False, True, True, True]
    os.utime(state.file, (0, 0))
    assert (kept := state.read("epochs")) is not None and float(kept.tensors["a"].sum()) == 90_000
    make_room(new(cache), 300_000)
    assert there(*files, state.file) == [False, False, True, True]


@pytest.mark.parametrize("text", ["20", "GB", "-1GB", "20 gigabytes", "1e3GB", "nanGB", "1,5GB", f"{'9' * 400}GB"])
def test_a_bound_that_is_no_size_is_refused_before_any_work(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(UserError, match=f"VANTAGE_CACHE_SIZE is '{text}': give a size .* such as 20GB"):
        cache_folder()


def test_a_user_without_a_home_is_asked_for_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose user the system does not know; it ended in a traceback."""
    for name in ("HOME", "VANTAGE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    with pytest.raises(UserError, match="you have no home folder.*VANTAGE_CACHE=FOLDER"):
        cache_folder()


def test_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"20GB": 20 * 10**9, "1.5 tb": 1_500 * 10**9, "0MB": 0, "300KB": 300_000}
    for text, size in sizes.items():
        monkeypatch.setenv(VARIABLE, text)
        assert most_bytes(tmp_path) == size
    monkeypatch.setenv(VARIABLE, "")
    for total, size in ((10**12, 20 * 10**9), (10**11, 10**10), (0, 20 * 10**9)):
        usage = SimpleNamespace(total=total)
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)  # noqa: B023
        assert most_bytes(tmp_path / "is" / "not" / "there") == size


def test_every_subfolder_that_the_code_names_is_known() -> None:
    source = "\n".join(file.read_text() for file in Path(vantage.__file__).parent.rglob("*.py"))
    names = set(re.findall(r'cache(?: or cache_folder\(\)\))? / "(\w+)"', source))
    names |= set(re.findall(r'cache_folder\(\)\) / "(\w+)"', source))
    assert names - {"sets"} == set(KINDS)
