"""What a run writes about itself."""

import json
from pathlib import Path

import pytest

from vantage.errors import UserError
from vantage.storage import provenance as record
from vantage.storage.files import write_json
from vantage.storage.metrics import Metrics, read_metrics
from vantage.storage.provenance import provenance


def test_metrics_beyond_the_checkpoint_are_dropped_and_a_torn_line_too(tmp_path: Path):
    first = Metrics(tmp_path, 0)
    for step in (4, 8, 12):
        first.write({"step": step, "loss": step / 2})
    first.close()
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 16, "lo')
    assert [row["step"] for row in read_metrics(tmp_path)] == [4, 8, 12]
    again = Metrics(tmp_path, 8)
    again.write({"step": 12, "loss": 1.0})
    again.close()
    assert read_metrics(tmp_path) == [{"step": 4, "loss": 2.0}, {"step": 8, "loss": 4.0}, {"step": 12, "loss": 1.0}]


def test_files_are_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "facts.json"
    write_json(path, {"a": 1})

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(record.os, "fsync", full)
    with pytest.raises(UserError, match="No space left"):
        write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 1}


def test_provenance_names_what_numbers_depend_on():
    told = provenance("abc", 7)
    assert told["data"] == {"fingerprint": "abc", "images": 7}
    assert {"python", "torch", "torchvision"} <= told["versions"].keys() and told["hardware"]["cores"]
