"""What a run reports at the end of an epoch: a row of numbers, what they say in words, and the accuracy of kNN."""

import math
from typing import Any

from vantage.processes.sharing import by_first
from vantage.progress import Progress
from vantage.storage.metrics import Metrics
from vantage.training.session import Session
from vantage.training.watching.branches import epoch_lines
from vantage.training.watching.missed import report_missed
from vantage.training.watching.monitor import warning
from vantage.training.watching.probe import knn_so_far

__all__ = ["end_epoch", "is_shown"]

_SECONDS_BETWEEN_LINES = 10.0


def end_epoch(
    session: Session, metrics: Metrics | None, epoch: int, step: int, seconds: float, progress: Progress
) -> None:
    """Write the row of an epoch (from 0) that ended after `step` steps and this time of training, and report it. All
    processes call it; only the first has `metrics`. Raises `DataError` if too many images could not be read."""
    report_missed(session.feed.images, len(session.source), progress)
    numbers = session.monitor.read()
    session.monitor.reset()
    row: dict[str, Any] = {"epoch": epoch + 1, "step": step, **numbers}
    row |= {"learning_rate": session.learning_rate(step - 1), "seconds": round(seconds, 3)}
    collapse = warning(numbers, session.learner.networks.width)
    if collapse:
        row["warning"] = collapse
    every = session.run.monitoring.knn_every
    if every and (epoch + 1) % every == 0:
        row["knn"] = _validate(session)
        progress.line(f"epoch {epoch + 1}: kNN {row['knn']:.1f} % on labeled training images")
    row |= {f"adapted.{number}": value for number, value in enumerate(session.learner.adaptive_values())}
    by_first(lambda: metrics and metrics.write(row))
    if is_shown(epoch + 1, session.run.epochs, seconds):
        for line in epoch_lines(epoch + 1, numbers):
            progress.line(line)
    if collapse:
        progress.warn(collapse)


def is_shown(epoch: int, epochs: int, seconds: float) -> bool:
    """Whether the numbers of an epoch (from 1) are printed, after so many seconds of training: those of the first and
    the last one, and of short epochs about every ten seconds. All are written to the run's folder."""
    every = max(1, math.ceil(_SECONDS_BETWEEN_LINES * epoch / max(seconds, 1e-9)))
    return epoch in (1, epochs) or epoch % every == 0


def _validate(session: Session) -> float:
    """kNN accuracy, the same on all processes, since adaptive schedules may follow it."""
    images = session.feed.decoded(session.source)
    accuracy = knn_so_far(session.learner, session.run, images, session.fabric.device)
    session.learner.after_validation(accuracy)
    return accuracy
