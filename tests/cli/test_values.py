"""A value that does not fit is told in terms of what the field takes, for every verb; so is a misspelled flag."""

import re
from typing import Any, Literal

import pytest

from vantage.cli import main
from vantage.cli.values import misfit
from vantage.errors import UserError
from vantage.evaluate import SVM, LowShot, LowShotChosen

COSTS = Literal["interclr", "vissl"] | tuple[float, ...]


@pytest.mark.parametrize(
    ("annotation", "words", "told"),
    [
        (int, "3", ""),
        (int, "-3", ""),
        (int, "3.5", "expected a whole number"),
        (int, "", "expected a whole number, found nothing"),
        (float, "1e-3", ""),
        (float, "x", "expected a number"),
        (int | None, "None", ""),
        (int | None, "2", ""),
        (int | None, "two", "expected a whole number or None"),
        (tuple[int, ...], "", ""),
        (tuple[int, ...], "1 2 3", ""),
        (tuple[int, ...], "1,2", "expected whole numbers with spaces between; write spaces, not commas"),
        (tuple[float, float], "0.5 1", ""),
        (tuple[float, float], "0.5", "expected 2 numbers, found 1"),
        (tuple[float, float], "0.5 1 2", "expected 2 numbers, found 3"),
        (tuple[float, float], "0.5 a", "expected 2 numbers"),
        (Literal["skip", "stop"], "stop", ""),
        (Literal["skip", "stop"], "stopp", "expected skip or stop; did you mean stop?"),
        (Literal["", "meta-dataset"], "metadataset", "expected meta-dataset; did you mean meta-dataset?"),
        (Literal[18, 34, 50], "35", "expected 18, 34 or 50"),
        (COSTS, "vissl", ""),
        (COSTS, "1 2", ""),
        (COSTS, "interclt", "expected interclr, vissl or numbers with spaces between; did you mean interclr?"),
        (COSTS, "1 b", "expected interclr, vissl or numbers with spaces between"),
        (COSTS, "interclr vissl", "expected interclr, vissl or numbers with spaces between, found 2"),
        (tuple[tuple[int, ...], ...], "anything", ""),  # tyro's own words tell of these
    ],
)
def test_what_is_expected(annotation: Any, words: str, told: str) -> None:
    assert misfit(annotation, words.split()) == told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("svm RUN --cost 1 2", "evaluate svm has no option --cost; did you mean --costs?"),
        ("lowshot RUN --shot 1 2", "evaluate lowshot has no option --shot; did you mean --shots?"),
        ("lowshot-cv RUN --cost 1 2", "did you mean --costs?"),
        ("linear RUN --rate 1 2", "evaluate linear has no option --rate; did you mean --rates?"),
        ("transfer RUN --by svm --cost 1 2", "evaluate transfer has no option --cost; did you mean --costs?"),
        ("transfer RUN --data X", "evaluate transfer has no option --data; did you mean --sets?"),
        ("svm RUN --costs intrclr", "--costs intrclr: expected interclr, vissl or numbers .* did you mean interclr"),
        ("svm RUN --costs=visl", "--costs visl: .* did you mean vissl"),
        ("lowshot RUN --costs 1 b", "--costs 1 b: expected interclr, vissl or numbers"),
        ("lowshot RUN --shots 1,2,4", "--shots 1,2,4: expected whole numbers .*; write spaces, not commas"),
        ("transfer RUN --by lowshot --shots one", "--shots one: expected whole numbers with spaces between"),
        ("finetune RUN --network first", "--network first: expected a whole number or None"),
        ("knn --k five RUN", "--k five: expected a whole number .see vantage evaluate knn --help"),
        ("knn RUN --k 20 30", "does not know what '30' is for: --k takes one value"),
        ("knn RUN --baselines yes", "does not know what 'yes' is for: --baselines is written alone, without a value"),
        ("knn RUN --baselines=yes", "--baselines is written alone"),
        ("knn RUN other", "does not know what 'other' is for: every option begins with --name"),
        ("detection RUN --schedule 2y", "--schedule 2y: expected 1x, 2x, 6x or voc; did you mean 2x?"),
    ],
)
def test_every_verb_tells_what_does_not_fit(words: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data", "X"] if not words.startswith("transfer") else []
    assert main(["evaluate", *words.split(), *data]) == 2
    heard = capsys.readouterr().err
    assert heard.count("\n") == 1 and re.search(told, heard), heard


@pytest.mark.parametrize("kind", [SVM, LowShot, LowShotChosen])
def test_values_that_fit_arrive(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    arrived = []

    def kept(run: Any, *_: Any) -> None:
        raise UserError("that will do")

    def made(self: Any) -> None:
        arrived.append(self.costs)

    monkeypatch.setattr("vantage.frozen.encoder.load", kept)
    monkeypatch.setattr(kind, "__post_init__", made)
    for words in ("--costs 1 2.5", "--costs=vissl", "--costs vissl"):
        assert main(["evaluate", kind.name, "RUN", "--data", "X", *words.split()]) == 2
        assert arrived[-1] == ((1.0, 2.5) if "1" in words else "vissl")
