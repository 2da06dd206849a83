"""How many steps an epoch has, for schedules that count epochs and were put into a run after `Run.fit`."""

from dataclasses import replace

from vantage.errors import quantity
from vantage.progress import Progress
from vantage.schedules.epochs import with_steps_per_epoch
from vantage.training.run import Run

__all__ = ["count_epochs", "counted_at_start"]


def count_epochs(run: Run, images: int) -> Run:
    """The run, whose schedules count epochs of `images` images, also those that replaced others after it was fitted."""
    steps = max(1, run.steps_per_epoch(images))
    branches, encoders = with_steps_per_epoch((run.branches, run.encoders), steps)
    return replace(run, branches=branches, encoders=encoders)


def counted_at_start(run: Run, images: int, saved: Run | None, progress: Progress) -> Run:
    """The run as it is trained on `images` images, with a line about schedules that counted other epochs. A run that
    was saved with such schedules, as by earlier versions, goes on with them."""
    counted_run = count_epochs(run, images)
    if counted_run == run or (saved is not None and count_epochs(saved, images) != saved):
        return run
    if saved is None:
        steps = run.steps_per_epoch(images)
        progress.line(
            f"an epoch has {quantity(steps, 'step')} here; schedules that were replaced after Run.fit count these"
        )
    return counted_run
