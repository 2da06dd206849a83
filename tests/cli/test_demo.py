"""The demonstration: what it claims, and that it judges itself."""

from pathlib import Path

import pytest

from vantage.cli.demo.demonstration import DemoResult, demo, demo_recipe, plan_demo, plan_for_any_machine
from vantage.errors import UserError
from vantage.planning.speed import Speed
from vantage.progress import QuietProgress

OTHERS = {"raw pixels": (40.0, 45.0), "random encoder": (50.0, 65.0)}


@pytest.mark.parametrize(
    ("knn", "linear", "won"), [(60.0, 70.0, True), (54.0, 70.0, False), (60.0, 64.0, False), (30.0, 30.0, False)]
)
def test_only_a_clear_win_is_called_one(knn: float, linear: float, won: bool):
    outcome = DemoResult(Path("run"), {**OTHERS, "trained encoder": (knn, linear)}, 1.0)
    assert outcome.won is won
    assert ("wins clearly" in "\n".join(outcome.lines())) is won


def test_a_folder_that_holds_a_run_is_refused(tmp_path: Path):
    (tmp_path / "settings.json").write_text("{}")
    with pytest.raises(UserError, match="already holds a run"):
        demo(tmp_path)


def test_the_run_is_planned_for_its_images_and_the_machine():
    fast, slow = (plan_demo(lambda run, source, seconds=2.0, step=step: Speed(step)) for step in (0.01, 0.2))
    assert fast.data.path == slow.data.path == "photographs:train" and fast.data.hold_out == 0.0
    assert fast.views == slow.views == demo_recipe().views
    assert 50 < slow.epochs * (2_592 // slow.batch_size) * 0.2 < 90


class Lines(QuietProgress):
    """Keeps the messages."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)


def test_a_slow_machine_gets_more_minutes_but_not_any_number():
    progress = Lines()
    run = plan_for_any_machine(progress, lambda run, source, seconds=2.0: Speed(4.0))
    assert run.monitoring.minutes > 1.5
    assert progress.lines[1:] == ["this machine is slow or busy, so training takes up to 3 minutes"]
    with pytest.raises(UserError, match="too slow or too busy: .* Try again when no other program is running"):
        plan_for_any_machine(progress, lambda run, source, seconds=2.0: Speed(60.0))


@pytest.mark.slow
def test_the_trained_encoder_wins_clearly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    outcome = demo(tmp_path / "run")
    assert outcome.won, outcome.lines()
    assert '<section id="map">' in outcome.page.read_text() and str(outcome.page) in "\n".join(outcome.lines())
