"""Protocols of a user's own: what they lack is named before any work, and what they measure is kept or refused."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from tiny import ALLOW, cpu_work, images, saved_run, tiny_run

from vantage.composition.codec import allowing
from vantage.data import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate import EvaluationProtocol, Outcome, Result, evaluate
from vantage.evaluate.compare.comparison import compare
from vantage.evaluate.task import check_protocol
from vantage.frozen.encoder import FrozenEncoder


def outcome(**values: Any) -> Outcome:
    """An outcome that holds anything; in tests its types are checked when it is made."""
    made = Outcome({"top-1": 50.0}, 30, 12, {})
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


OUTCOMES = {
    "numpy": outcome(measures={"top-1": np.float32(50)}, chosen={"k": np.int64(3)}),
    "torch": outcome(measures={"top-1": torch.tensor(50.0)}, details={"by class": np.arange(3)}),
    "dict": {"top-1": 50.0},
    "nothing": outcome(measures={}),
    "text": outcome(measures={"top-1": "50"}),
    "set": outcome(details={"seen": {1, 2}}),
}


@dataclass(frozen=True)
class Own:
    """A protocol with one of these outcomes."""

    name: ClassVar[str] = "own"
    version: ClassVar[int] = 1
    kind: str = "numpy"

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Any:
        """The outcome."""
        return OUTCOMES[self.kind]


class WithoutVersion:
    """A protocol that lacks something."""

    name: ClassVar[str] = "own"

    def __call__(self, *_: Any) -> None:
        """Evaluate nothing."""


class NoDataclass(WithoutVersion):
    """A protocol whose settings cannot be known."""

    version: ClassVar[int] = 1


@dataclass(frozen=True)
class Elsewhere(NoDataclass):
    """A protocol whose results would lie elsewhere."""

    name: ClassVar[str] = "../own"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a small run."""
    saved_run(tmp_path / "run", tiny_run())
    return tmp_path / "run"


def result_of(protocol: EvaluationProtocol, run: Path) -> Result:
    """The result of a run."""
    with allowing(*ALLOW):
        return evaluate(run, protocol, images(30, 0), images(12, 1), work=cpu_work(run.parent))


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_numbers_of_numpy_and_torch_are_kept(kind: str, run: Path) -> None:
    """They were lost after the evaluation, in a TypeError."""
    result = result_of(Own(kind), run)
    assert type(result.outcomes["moco_v2"].measures["top-1"]) is float
    (file,) = (run / "evaluations").glob("own-*.json")
    (record,) = json.loads(file.read_text())["outcomes"].values()
    assert record["measures"] == {"top-1": 50.0} and record["details"] == (
        {"by class": [0, 1, 2]} if kind == "torch" else {}
    )


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("dict", "own returns a dict: return a vantage.evaluate.Outcome"),
        ("nothing", r"own measures {}: give at least one measure, and a number for each"),
        ("text", r"own measures {'top-1': '50'}: give at least one measure"),
        ("set", r"the outcome of own cannot be saved \(Object of type set is not JSON serializable\): give numbers"),
    ],
)
def test_what_cannot_be_a_result_is_refused(kind: str, words: str, run: Path) -> None:
    with pytest.raises(UserError, match=words):
        result_of(Own(kind), run)


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        (WithoutVersion(), "WithoutVersion is not a protocol, as vantage.evaluate.KNN is: it has no version"),
        (NoDataclass(), "NoDataclass is not a dataclass, so its settings cannot be recorded: add @dataclass"),
        (Elsewhere(), "Elsewhere.name is '../own', which files are named by"),
        (Own, "the protocol is the type Own: give a value, such as vantage.evaluate.KNN"),
        ("knn", "the protocol is 'knn': give a value"),
    ],
)
def test_what_a_protocol_lacks_is_named(protocol: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        check_protocol(protocol)


def test_a_comparison_refuses_them_too(run: Path) -> None:
    with allowing(*ALLOW), pytest.raises(UserError, match="own returns a dict"):
        compare([run], [Own("dict")], images(30, 0), images(12, 1), cpu_work(run.parent))
