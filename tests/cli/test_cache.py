"""`vantage cache`: what it shows, what it removes and what it leaves."""

import errno
import os
from pathlib import Path

import pytest

from vantage.cli import main
from vantage.storage.cache_size import in_use


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Features, the index of a tar, and a download."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("VANTAGE_CACHE_SIZE", "5GB")
    sizes = {f"features/{'a' * 32}.npy": 1_500_000, f"features/{'b' * 32}.npy": 500_000, f"tars/{'c' * 32}.json": 2_000}
    for name, size in {**sizes, "sets/MNIST": 10}.items():
        (tmp_path / "cache" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "cache" / name).write_bytes(bytes(size))
    return tmp_path / "cache"


def test_it_shows_the_bound_and_the_size_of_every_kind(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        f"{cache}: 2.0 MB of at most 5.0 GB",
        "2.0 KB 1 in tars decompressed tars, and where images lie in tars",
        "2.0 MB 2 in features features of frozen encoders",
    ]


def test_it_removes_all_but_what_is_in_use_or_downloaded(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with in_use(cache / "features" / f"{'b' * 32}.npy"):
        assert main(["cache", "--clear"]) == 0
    output = capsys.readouterr()
    assert "removed 1.5 MB; files in use: 1" in output.err and f"{cache}: 500.0 KB of at most" in output.out
    assert main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out == f"{cache}: 0.0 KB of at most 5.0 GB\n"
    assert [file.name for file in cache.rglob("*") if file.is_file()] == ["MNIST"]


def test_it_says_why_nothing_is_removed_from_a_cache_that_is_read_only(
    cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_file, kept = os.open, cache / "features" / f"{'a' * 32}.npy"

    def read_only(path: object, flags: int, *rest: int, dir_fd: int | None = None) -> int:
        if flags & os.O_RDWR and str(path).startswith(str(cache)) and path != kept:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return open_file(path, flags, *rest, dir_fd=dir_fd)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", read_only)
    with in_use(kept):
        assert main(["cache", "--clear"]) == 0
    note = "removed 0.0 KB; files in use: 1; files that cannot be removed (Read-only file system): 2"
    assert note in " ".join(capsys.readouterr().err.split())
    assert main(["cache", "--clear"]) == 0
    assert "removed 1.5 MB; files that cannot be removed (Read-only" in " ".join(capsys.readouterr().err.split())


def test_another_folder(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.rename(cache, cache.with_name("lab"))
    assert main(["cache", str(cache.with_name("lab"))]) == 0 and "2.0 MB of at most" in capsys.readouterr().out
    assert main(["cache"]) == 0 and capsys.readouterr().out == f"{cache}: 0.0 KB of at most 5.0 GB\n"
    assert main(["cache", str(cache)]) == 2 and "is not a folder: name a cache" in capsys.readouterr().err


def test_a_bound_that_is_no_size_ends_a_verb_before_its_work(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VANTAGE_CACHE_SIZE", "much")
    for words in ("cache", "pretrain --data photographs:train"):
        assert main(words.split()) == 2
        message = "vantage: VANTAGE_CACHE_SIZE is 'much': give a size in KB, MB, GB or TB, such as 20GB\n"
        assert capsys.readouterr().err.endswith(message)
