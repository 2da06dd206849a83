"""What a run writes about itself."""

import json
from pathlib import Path
from typing import Any

import pytest

from vantage.errors import UserError
from vantage.machine.devices import has_bf16
from vantage.storage import provenance as record
from vantage.storage.files import append, write_json
from vantage.storage.metrics import Metrics, read_metrics
from vantage.storage.provenance import provenance


def test_metrics_beyond_the_checkpoint_are_dropped_and_a_torn_line_too(tmp_path: Path):
    first = Metrics(tmp_path, 0)
    for step in (4, 8, 12):
        first.write({"step": step, "loss": step / 2})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 16, "lo')
    assert [row["step"] for row in read_metrics(tmp_path)] == [4, 8, 12]
    again = Metrics(tmp_path, 8)
    again.write({"step": 12, "loss": 1.0})
    assert read_metrics(tmp_path) == [{"step": 4, "loss": 2.0}, {"step": 8, "loss": 4.0}, {"step": 12, "loss": 1.0}]


def test_rows_of_earlier_versions_have_the_present_names_also_where_a_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 4, "rate": 0.5}\n')
    Metrics(tmp_path, 4).write({"step": 8, "learning_rate": 0.25})
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert rows == read_metrics(tmp_path) == [{"step": 4, "learning_rate": 0.5}, {"step": 8, "learning_rate": 0.25}]


def test_tensorboard_reads_the_numbers_and_drops_those_that_a_resumed_run_writes_again(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    first = Metrics(tmp_path, 0)
    for step in (4, 8, 12):
        first.write({"step": step, "epoch": step // 4, "loss": step / 2, "rank": 1.5})
    Metrics(tmp_path, 8).write({"step": 12, "loss": 1.0})
    events = EventAccumulator(str(tmp_path / "events")).Reload()
    assert events.Tags()["scalars"] == ["loss", "rank"]
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(4, 2.0), (8, 4.0), (12, 1.0)]
    assert [event.step for event in events.Scalars("rank")] == [4, 8]


def test_bytes_are_appended_all_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows"
    append(path, b"first\n")
    append(path, b"second\n")
    assert path.read_bytes() == b"first\nsecond\n"
    open_file = Path.open

    def full(self: Path, *mode: Any, **options: Any) -> Any:
        """A file that has room for three bytes, and then for none."""
        file = open_file(self, *mode, **options)
        room = [3]

        class Full:
            def __enter__(self) -> "Full":
                return self

            def __exit__(self, *_: object) -> None:
                file.close()

            def write(self, content: bytes) -> int:
                if not room:
                    raise OSError(28, "No space left on device")
                return file.write(content[: room.pop()])

            seek, truncate = file.seek, file.truncate

        return Full()

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(Path, "open", full)
        append(path, b"third\n")
    assert path.read_bytes() == b"first\nsecond\n"


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
    content = provenance("abc", 7)
    assert content["data"] == {"fingerprint": "abc", "images": 7} and content["folder"] == str(Path.cwd())
    assert {"python", "torch", "torchvision"} <= content["versions"].keys() and content["hardware"]["cores"]
    assert content["hardware"]["bfloat16"] == has_bf16(on_cuda=False)
