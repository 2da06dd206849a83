"""What the command line prints of recipes and runs."""

import pytest

from vantage.cli import main
from vantage.cli.printing.failures import message_for
from vantage.cli.printing.summary import short, summary
from vantage.estimators import InfoNCE
from vantage.recipes import RECIPES, VARIANTS, moco_v2, simclr
from vantage.schedules import CosineByEpoch

pytestmark = pytest.mark.usefixtures("own_cache")


def test_recipes_are_listed_with_what_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes"]) == 0
    lines, _, others = capsys.readouterr().out.partition("\n\nother published settings:\n")
    assert others.split() == [recipe.__name__ for recipe in VARIANTS] and max(map(len, others.splitlines())) <= 100
    assert len(lines.splitlines()) + len(others.splitlines()) <= 40, "a screen"
    lines = lines.splitlines()
    assert main(["recipes", "ring-moco-decoupled"]) == 0
    assert "Decoupled(temperature=0.07)" in capsys.readouterr().out
    assert len(lines) == len(RECIPES) and all(
        any(f" {recipe.__name__} " in line for line in lines) for recipe in RECIPES
    )
    assert len(lines) <= 40 and max(map(len, lines)) <= 100 and len(lines[0]) > 60
    assert main(["recipes", "MoCo-v2", "--size", "32"]) == 0
    output = capsys.readouterr().out
    assert "2003.04297" in output and "memory=Queue(length=4096)" in output
    assert "branches.0.estimator.temperature=0.1\n    τ: what cosines are divided by." in output
    assert "branches.0.negatives=()" in output


def test_a_summary_names_every_part() -> None:
    rows = dict(summary(moco_v2(32).fit(40), 40))
    parts = "Queue(length=20) · OtherViews() · all negatives · InfoNCE(temperature=0.1)"
    assert rows["branch"] == f"{parts} · query view 0, key view 1"
    assert rows["views"].startswith("2 × RandomResizedCrop(size=32")
    assert rows["images"].startswith("40 from")
    assert {"branch 0", "branch 1"} <= dict(summary(simclr(224))).keys()
    assert short(CosineByEpoch(0.03)) == "CosineByEpoch(base=0.03)"
    assert short((InfoNCE(), InfoNCE())) == "2 × InfoNCE()"


def test_a_process_that_loses_another_points_to_it() -> None:
    """The other one has said what was wrong; this one's error is no bug."""
    message = "another process of this command has ended, which this one waited for: its own lines say why"
    for lost in (
        "[gloo/pair.cc:545] Read error [127.0.0.1]:22965: Connection reset by peer. This is",
        "Connection closed by peer [::1]",
    ):
        assert message_for(RuntimeError(lost)) == message
    assert message_for(RuntimeError("shape mismatch")) == ""
