"""Images in a tar that are symbolic links: read as what they lead to in the tar, or counted."""

import tarfile
from pathlib import Path

import pytest
from tar_shards import png

from vantage.data import Tar, open_source
from vantage.errors import DataError
from vantage.training.images import open_images
from vantage.training.run import Data


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))


def _packed(folder: Path, links: dict[str, str], files: tuple[str, ...] = ("b/1.png", "b/2.png", "store/blob")) -> Path:
    """A tar of these links, and then the files, whose images are numbered in their order."""
    for number, name in enumerate(files):
        (folder / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "set" / name).write_bytes(png(number))
    with tarfile.open(folder / "t.tar", "w") as tar:
        for name, target in links.items():
            link = tarfile.TarInfo(f"./{name}")
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
        for name in files:
            tar.add(folder / "set" / name, name)
    return folder / "t.tar"


def test_links_within_a_tar_are_read_as_what_they_lead_to(tmp_path: Path) -> None:
    links = {"a/1.png": "../b/1.png", "a/3.png": "4.png", "a/4.png": "../store/blob", "b/5.png": "./2.png"}
    path = str(_packed(tmp_path, links))
    for _ in range(2):  # the second time from the cache
        source, line = open_images(Data(path))
        content = {source.name(number): source.file_bytes(number) for number in range(len(source))}  # pyright: ignore
        numbers = {"a/1.png": 0, "a/3.png": 2, "a/4.png": 2, "b/1.png": 0, "b/2.png": 1, "b/5.png": 1}
        assert content == {name: png(number) for name, number in numbers.items()}
        assert source.classes == ("a", "b") and "link" not in line


def test_links_to_what_is_not_in_a_tar_are_counted(tmp_path: Path) -> None:
    (tmp_path / "outside.png").write_bytes(png(7))
    links = {"a/1.png": str(tmp_path / "outside.png"), "a/2.png": "../../outside.png", "a/3.png": "a.png"}
    links |= {"a/4.png": "5.png", "a/5.png": "4.png", "note.txt": "nowhere"}
    source, line = open_images(Data(str(_packed(tmp_path, links))))
    assert len(source) == 2 and line.endswith("; 5 images are links to files that are not in the tar, so left out")
    path = _packed(tmp_path, {"a/1.png": "nowhere.png"}, ("blob",))
    with pytest.raises(
        DataError, match=r"2 other files\. 1 image is a link to a file that is not in the tar: pack the"
    ):
        open_source(path)


def test_the_later_of_two_members_of_one_name_counts_if_one_is_a_link(tmp_path: Path) -> None:
    source = open_source(_packed(tmp_path, {"b/1.png": "2.png", "b/3.png": "2.png"}), at_least=1)
    assert isinstance(source, Tar) and source.file_bytes(0) == png(0) and source.file_bytes(2) == png(1)
    assert source.dangling == 0
