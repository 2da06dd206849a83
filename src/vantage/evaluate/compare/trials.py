"""The trials of a comparison, each evaluated once: read from the record in a run's folder, or made and recorded."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from vantage.composition.changes import SettingChange, changes
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.compare.contenders import Contender, ContenderEncoder
from vantage.evaluate.judge import judge_once
from vantage.evaluate.result import Outcome
from vantage.evaluate.task import EvaluationProtocol, Task

__all__ = ["Refusal", "Trials", "title"]


class Refusal(UserError):
    """A protocol's refusal within a comparison."""

    def __init__(self, message: str, protocol: EvaluationProtocol) -> None:
        super().__init__(message)
        self.protocol = protocol


class Trials:
    """Evaluates one encoder after another; `report` is called with a line that names it, and its number out of
    `count`."""

    def __init__(self, work: Work, report: Callable[[str], None], count: int) -> None:
        self.work, self.report, self.count, self.number = work, report, count, 0

    def __call__(self, task: Task, row: Contender, member: ContenderEncoder) -> tuple[Outcome, ...]:
        """An outcome for each trial. A plain `UserError` of the protocol is raised as a `Refusal`; its subclasses,
        such as `UnreadableImage`, pass unchanged."""
        protocols, outcomes = task.each_trial(), []
        for number, protocol in enumerate(protocols, 1):
            trial = f", trial {number} of {len(protocols)}" if len(protocols) > 1 else ""
            line = f"{row.name}, seed {member.run_encoder.run.seed}, by {_briefly(task.protocol)}{trial}"
            outcomes.append(self._outcome(replace(task, protocol=protocol), line, member))
        return tuple(outcomes)

    def _outcome(self, task: Task, line: str, member: ContenderEncoder) -> Outcome:
        self.number += 1

        def report(from_record: bool) -> None:
            self.report(f"{self.number} of {self.count}: {line}{', read from its record' if from_record else ''}")

        try:
            return judge_once(task, member.encoder, self.work, member.folder, beside=member.run_encoder, report=report)
        except UserError as problem:
            if type(problem) is not UserError:
                raise
            raise Refusal(str(problem), task.protocol) from problem


def title(protocol: str, settings: Sequence[SettingChange]) -> str:
    """A protocol, with its settings that differ from the default."""
    return " ".join((protocol, *map(str, settings)))


def _briefly(protocol: EvaluationProtocol) -> str:
    """The name of a protocol in a line of progress."""
    settings = changes(protocol)
    return title(protocol.name, settings) if len(settings) < 4 else f"{protocol.name} with {len(settings)} settings"
