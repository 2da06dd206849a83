"""Each judgment of a comparison once: from the record that a run's folder holds, or made now and recorded."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.changed import Changed, changed
from vantage.evaluate.compare.contenders import Contender, Member
from vantage.evaluate.judge import Result, keep, result_of
from vantage.evaluate.outcome import EvaluationProtocol, Outcome
from vantage.evaluate.task import Task

__all__ = ["Judge", "Refused", "named"]


class Refused(UserError):
    """What a protocol refused within a comparison."""

    def __init__(self, message: str, protocol: EvaluationProtocol) -> None:
        super().__init__(message)
        self.protocol = protocol


class Judge:
    """Judges one encoder after the other, or reads what came out before; `told` hears which, with how many of `count`
    are done."""

    def __init__(self, work: Work, told: Callable[[str], None], count: int) -> None:
        self.work, self.told, self.count, self.done = work, told, count, 0

    def __call__(self, task: Task, row: Contender, member: Member) -> tuple[Outcome, ...]:
        """An outcome for each trial. Raises `Refused` for what the protocol refuses; errors of images and others of a
        kind of their own stay as they are."""
        trials, outcomes = task.each_trial(), []
        for number, protocol in enumerate(trials, 1):
            words = _briefly(task.protocol) + (f", trial {number} of {len(trials)}" if len(trials) > 1 else "")
            outcomes.append(self._outcome(replace(task, protocol=protocol), words, row, member))
        return tuple(outcomes)

    def _outcome(self, task: Task, words: str, row: Contender, member: Member) -> Outcome:
        self.done += 1
        empty = _empty(task, member.encoder, self.work)
        known = _recorded(member.folder, member.encoder.name, empty)
        if known is None and member.encoder is not member.own:  # as `evaluate` records baselines: beside the run's own
            known = _recorded(member.folder, member.encoder.name, _empty(task, member.own, self.work))
        read = ", read from its record" if known is not None else ""
        self.told(f"{self.done} of {self.count}: {row.name}, seed {member.own.run.seed}, by {words}{read}")
        if known is not None:
            return known
        try:
            outcome = task.protocol(member.encoder, task.train, task.test, self.work)
        except UserError as problem:
            if type(problem) is not UserError:
                raise
            raise Refused(str(problem), task.protocol) from problem
        keep(replace(empty, outcomes={member.encoder.name: outcome}), member.folder)
        return outcome


def named(protocol: str, settings: Sequence[Changed]) -> str:
    """A protocol, with what tells it from the same protocol by default."""
    return " ".join((protocol, *map(str, settings)))


def _briefly(protocol: EvaluationProtocol) -> str:
    """A protocol in a line of progress."""
    settings = changed(protocol)
    return named(protocol.name, settings) if len(settings) < 4 else f"{protocol.name} with {len(settings)} settings"


def _empty(task: Task, encoder: Any, work: Work) -> Result:
    """The result without what came out."""
    return result_of(task.protocol, encoder, task.train, task.test, task.test_split, {}, work, task.tools)


def _recorded(folder: Path, encoder: str, empty: Result) -> Outcome | None:
    """What the run's folder holds of the same evaluation, whatever came out."""
    asked = _facts(asdict(empty))
    for file in sorted((folder / "evaluations").glob(f"{empty.protocol}-v{empty.version}-*.json")):
        try:
            record = json.loads(file.read_text())
            if _facts(record) == asked and encoder in record["outcomes"]:
                return Outcome(**record["outcomes"][encoder])
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue  # not a record of ours: judged anew
    return None


def _facts(record: dict[str, Any]) -> Any:
    """All that decides an outcome, as plain data."""
    return json.loads(json.dumps({key: value for key, value in record.items() if key != "outcomes"}))
