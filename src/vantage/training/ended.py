"""How far a stored run has come."""

from pathlib import Path

from vantage.storage.provenance import first_images
from vantage.training.folder import checkpoint, settings
from vantage.training.folder.same_run import refuse_conflicts
from vantage.training.run import Run
from vantage.training.session import check_belongs, refuse_edited

__all__ = ["continues", "last_step"]


def continues(step: int | None, steps: int) -> str:
    """The line that says where a resumed run continues; None stands for no checkpoint."""
    if step == steps:
        return f"all {steps:,} steps are done already"
    at = "there is no checkpoint yet: starting at the first step" if step is None else f"continuing at step {step:,}"
    return f"{at} of {steps:,}"


def last_step(run: Run, folder: Path, newest: Path) -> int | None:
    """The last step of a run, if its newest checkpoint was written after it. None if steps are left, or if it is not
    recorded on how many images the run began. The images themselves are not needed.

    Raises `UserError` if `run` is not the one in the folder, or if the checkpoint is damaged or not of this run.
    """
    refuse_conflicts(settings.read(folder), run)
    first = first_images(folder)
    if first is None:
        return None
    check_belongs(newest, run, first["images"])
    facts = checkpoint.load(newest)[1]
    with checkpoint.restoring(newest):
        refuse_edited(facts, run)
    steps = run.epochs * run.steps_per_epoch(first["images"])
    return steps if facts["step"] == steps else None
