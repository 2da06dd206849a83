"""For every verb, a value that does not fit is answered with what the field takes; so is a misspelled flag."""

import re
from typing import Any

import pytest

from vantage.cli import main
from vantage.errors import UserError
from vantage.evaluate import SVM, LowShot, LowShotChosen


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        ("svm RUN --cost 1 2", "evaluate svm has no option --cost; did you mean --costs?"),
        ("lowshot RUN --shot 1 2", "evaluate lowshot has no option --shot; did you mean --shots?"),
        ("lowshot-cv RUN --cost 1 2", "did you mean --costs?"),
        ("linear RUN --rate 1 2", "evaluate linear has no option --rate; did you mean --learning-rates?"),
        ("detection RUN --batch 2", "evaluate detection has no option --batch; did you mean --batch-size?"),
        ("detection RUN --rate 0.1", "evaluate detection has no option --rate; did you mean --learning-rate?"),
        ("linear RUN --rates 1 2", "evaluate linear has no option --rates; did you mean --learning-rates?"),
        ("transfer RUN --by svm --cost 1 2", "evaluate transfer has no option --cost; did you mean --set costs=1,2?"),
        ("transfer RUN --data X", "evaluate transfer has no option --data; did you mean --sets?"),
        (
            "svm RUN --costs intrclr",
            "--costs: expected interclr, vissl or numbers, found intrclr; did you mean interclr",
        ),
        ("svm RUN --costs=visl", "--costs: .* found visl; did you mean vissl"),
        ("lowshot RUN --costs 1 b", "--costs: expected interclr, vissl or numbers, found .1, b."),
        ("lowshot RUN --shots 1,2,x", "--shots: expected whole numbers, found 1,2,x"),
        ("transfer RUN --by lowshot --shots one", "no option --shots; did you mean --set shots=one?"),
        ("transfer RUN --by lowshot --set shots=one", "shots: expected whole numbers, found one"),
        ("finetune RUN --network first", "--network: expected a whole number, found first"),
        ("knn --k five RUN", "--k: expected a whole number, found five .see vantage evaluate knn --help"),
        ("knn RUN --k 20 30", "has no use for '30': --k takes one value"),
        ("knn RUN --baselines yes", "has no use for 'yes': --baselines takes no value"),
        ("knn RUN --baselines=yes", "--baselines.* takes no value, found .yes"),
        ("knn RUN other", "has no use for 'other': options are written --name value"),
        ("detection RUN --schedule VOC", "found VOC; did you mean voc.*"),
        ("detection RUN --schedule 2y", "--schedule: expected 1x, 2x, 6x or voc, found 2y; did you mean"),
    ],
)
def test_every_verb_says_what_does_not_fit(words: str, pattern: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data", "X"] if not words.startswith("transfer") else []
    assert main(["evaluate", *words.split(), *data]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and re.search(pattern, message), message


@pytest.mark.parametrize("kind", [SVM, LowShot, LowShotChosen])
def test_values_that_fit_arrive(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = []

    def skip(run: Any, *_: Any) -> None:
        raise UserError("that will do")

    def record(self: Any) -> None:
        costs.append(self.costs)

    monkeypatch.setattr("vantage.frozen.encoder.load", skip)
    monkeypatch.setattr(kind, "__post_init__", record)
    for words in ("--costs 1 2.5", "--costs=vissl", "--costs vissl"):
        assert main(["evaluate", kind.name, "RUN", "--data", "X", *words.split()]) == 2
        assert costs[-1] == ((1.0, 2.5) if "1" in words else "vissl")
