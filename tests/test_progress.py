"""What a person sees while a run works."""

import pytest

from vantage import progress
from vantage.progress import BarProgress, PlainProgress, Progress, QuietProgress, progress_for


@pytest.mark.parametrize("kind", [QuietProgress, PlainProgress, BarProgress])
def test_every_teller_warns_and_keeps_its_contract(kind: type, capsys: pytest.CaptureFixture[str]):
    told = kind()
    assert isinstance(told, Progress)
    told.start("work", 10, 2)
    told.advance(5, "going well")
    told.line("a line")
    told.warn("a danger")
    told.stop()
    shown = capsys.readouterr().err
    assert "warning: a danger" in shown
    assert ("a line" in shown) == (kind is not QuietProgress)


def test_lines_tell_the_time_left_now_and_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    clock = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    told = PlainProgress()
    told.start("epochs", 100, 20)
    clock[0] += 10
    told.advance(30)
    assert capsys.readouterr().err == ""
    clock[0] += 30
    told.advance(40, "loss 1.0")
    assert capsys.readouterr().err == "epochs: 40 of 100, 2:00 left, loss 1.0\n"
    clock[0] += 3600
    told.advance(50)
    assert "1:41:07 left" in capsys.readouterr().err


def test_work_that_may_be_none_is_told_from_its_first_word_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    clock, told = [0.0], PlainProgress()
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with progress.counting(told, "decoding images"):
        pass
    assert told.what == ""
    with pytest.raises(ValueError), progress.counting(told, "decoding images") as advance:
        for done in (10, 20):
            advance(done, 100)
            clock[0] += 40
        raise ValueError
    assert told.what == "decoding images" and capsys.readouterr().err == "decoding images: 20 of 100, 2:40 left\n"


def test_quiet_wins_over_the_terminal():
    assert isinstance(progress_for(quiet=True), QuietProgress)
