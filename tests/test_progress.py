"""What a person sees while a run works."""

import io

import pytest
from rich.console import Console

from vantage import progress
from vantage.progress import BarProgress, PlainProgress, Progress, QuietProgress, progress_for


@pytest.mark.parametrize("kind", [QuietProgress, PlainProgress, BarProgress])
def test_every_progress_warns_and_keeps_its_contract(kind: type, capsys: pytest.CaptureFixture[str]):
    progress = kind()
    assert isinstance(progress, Progress)
    progress.start("work", 10, 2)
    progress.advance(5, "going well")
    progress.line("a line")
    progress.warn("a danger")
    progress.stop()
    output = capsys.readouterr().err
    assert "warning: a danger" in output
    assert ("a line" in output) == (kind is not QuietProgress)


def test_lines_report_the_time_left_from_time_to_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    clock = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    plain = PlainProgress()
    plain.start("epochs", 100, 20)
    clock[0] += 2.5
    plain.advance(21)
    assert capsys.readouterr().err == ""
    clock[0] += 2.5
    plain.advance(24)
    assert capsys.readouterr().err == "epochs: 24 of 100, 1:03 left\n"  # the first one is not counted
    for seconds, line in ((5, False), (5, True), (15, False), (20, True), (29, False), (1, True)):
        clock[0] += seconds
        plain.advance(30)
        assert (capsys.readouterr().err != "") is line
    clock[0] += 40
    plain.advance(60, "loss 1.0")
    assert capsys.readouterr().err == "epochs: 60 of 100, 2:01 left, loss 1.0\n"
    clock[0] += 3600
    plain.advance(50)
    assert "1:46:49 left" in capsys.readouterr().err
    clock[0] += 60
    plain.advance(61, seconds_left=75.0)
    assert capsys.readouterr().err == "epochs: 61 of 100, 1:15 left\n"


def test_the_start_of_a_task_is_not_taken_for_its_pace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Its first part waits for processes that start. A part of half a minute says enough by itself."""
    clock, plain = [0.0], PlainProgress()
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    for seconds, line in ((9, ""), (30, "images: 1 of 100, 49:30 left\n")):
        plain.start("images", 100)
        clock[0] += seconds
        plain.advance(1)
        assert capsys.readouterr().err == line
        clock[0] += 1
        plain.advance(11)
        assert capsys.readouterr().err == ("" if line else "images: 11 of 100, 0:09 left\n")


def test_the_bar_shows_the_time_left_that_is_reported():
    bar = BarProgress()
    bar.start("epochs", 100)
    bar.advance(50, "loss 1.0", seconds_left=75.0)
    text = io.StringIO()
    Console(width=120, file=text).print(bar.bar.get_renderable())
    bar.stop()
    assert "1:15 left loss 1.0" in text.getvalue()


def test_work_that_may_be_none_is_reported_from_its_first_call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    clock, plain = [0.0], PlainProgress()
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with progress.counting(plain, "decoding images"):
        pass
    assert plain.name == ""
    with pytest.raises(ValueError), progress.counting(plain, "decoding images") as advance:
        for completed in (10, 20):
            advance(completed, 100)
            clock[0] += 40
        raise ValueError
    assert plain.name == "decoding images" and capsys.readouterr().err == "decoding images: 20 of 100, 5:20 left\n"


def test_work_that_begins_again_is_timed_anew(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """A plan decodes images once for each side of their squares, and tries a network between."""
    clock, plain = [0.0], PlainProgress()
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with progress.counting(plain, "decoding images") as advance:
        advance(100, 100)
        clock[0] += 60
        advance(10, 100)
        clock[0] += 4
        advance(50, 100)
    assert capsys.readouterr().err == "decoding images: 50 of 100, 0:05 left\n"


def test_other_work_with_more_parts_has_its_own_total(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Shards are indexed, then their images are checked: 3 parts, then 240."""
    clock, plain = [0.0], PlainProgress()
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with progress.counting(plain, "checking the images") as advance:
        advance(3, 3)
        advance(40, 240)
        clock[0] += 4
        advance(80, 240)
    assert capsys.readouterr().err == "checking the images: 80 of 240, 0:16 left\n"


def test_quiet_wins_over_the_terminal():
    assert isinstance(progress_for(quiet=True), QuietProgress)
