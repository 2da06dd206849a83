"""Results that are kept: once made, not made again; what is damaged or of other settings is refused in a folder."""

from pathlib import Path

import pytest

from vantage.errors import UserError
from vantage.storage.results import CachedResults, ResultsFile, differences


def results_file(folder: Path, **about: object) -> ResultsFile[float]:
    return ResultsFile(
        folder / "rows.json",
        about or {"entry": "one"},
        "study",
        lambda row: row["value"] + 0.0,
        lambda one: {"value": one},
    )


def test_results_stay_in_the_folder_of_their_settings(tmp_path: Path) -> None:
    first = results_file(tmp_path / "new")
    assert "a row" not in first and list(first) == []
    first.add("a row", 1.5)
    assert results_file(tmp_path / "new")["a row"] == 1.5 and list(results_file(tmp_path / "new")) == ["a row"]
    with pytest.raises(UserError, match="holds another study: entry is 'one' there, 'two' was asked for; name another"):
        results_file(tmp_path / "new", entry="two")
    with pytest.raises(UserError, match="entry is 'one' there, None was asked for, and 1 more differ"):
        results_file(tmp_path / "new", other=(1, 2))
    results_file(tmp_path / "begun").write()
    results_file(tmp_path / "begun", entry="two").add("a row", 1.5)
    with pytest.raises(UserError, match="entry is 'two' there, 'one' was asked for"):
        results_file(tmp_path / "begun")


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"schema": 1, "rows": [{}]}', '{"schema": 1, "rows": [{"key": "a", "value": "x"}]}']
)
def test_damaged_results_are_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(text)
    with pytest.raises(UserError, match="rows.json is damaged"):
        results_file(tmp_path)


def test_a_folder_of_something_else_and_a_later_version_are_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").touch()
    with pytest.raises(UserError, match="is not empty and holds no study"):
        results_file(tmp_path)
    (tmp_path / "rows.json").write_text('{"schema": 99, "rows": []}')
    with pytest.raises(UserError, match="written by another version"):
        results_file(tmp_path)


def test_a_first_result_that_a_kill_left_unfinished_does_not_block_the_same_call(tmp_path: Path) -> None:
    (tmp_path / "rows.json.unfinished").write_text('{"schema": 1, "ro')
    results_file(tmp_path).add("a row", 1.5)
    assert results_file(tmp_path)["a row"] == 1.5 and [path.name for path in tmp_path.iterdir()] == ["rows.json"]
    (tmp_path / "rows.json").rename(tmp_path / "other.json.unfinished")
    with pytest.raises(UserError, match="is not empty and holds no study"):
        results_file(tmp_path)


def test_a_cache_is_used_if_it_can_be(tmp_path: Path) -> None:
    file = tmp_path / "cache" / "a.json"
    for content in ("", "[1]", "{"):
        CachedResults(file).add("a", [1, 2.5])
        assert "a" in CachedResults(file) and CachedResults(file)["a"] == [1, 2.5]
        file.write_text(content)
        assert "a" not in CachedResults(file)
    (tmp_path / "file").write_text("")
    without_file = CachedResults(tmp_path / "file" / "a.json")
    without_file.add("a", 1)
    assert without_file["a"] == 1


def test_differences_are_found_by_path() -> None:
    before = {"a": [1, {"b": 2}], "c": 3}
    assert differences(before, {"a": [1, {"b": 2}], "c": 3}) == []
    assert differences(before, {"a": [1, {"b": 4}], "d": 5}) == [("a.1.b", 2, 4), ("c", 3, None), ("d", None, 5)]
    assert differences(before, {"a": [1], "c": 3}) == [("a", [1, {"b": 2}], [1])]
