"""The rungs that suit some images, and whether a run can be made at any of them."""

from vantage.data import Source
from vantage.errors import UserError
from vantage.machine.devices import uses_cuda
from vantage.planning.ladder import Rung, rungs, suitable_size
from vantage.planning.sizing import PlanOptions, check_parts, compose
from vantage.training.images import usual_size

__all__ = ["check_rungs", "rungs_for"]


def rungs_for(side: int, options: PlanOptions) -> list[Rung]:
    """The rungs for images with this short side, in pixels, on the device that the options choose."""
    run = options.recipe(suitable_size(side) if options.size is None else options.size)
    accelerator = options.changes(run).get("hardware.accelerator", run.hardware.accelerator)
    return rungs(side, uses_cuda(accelerator), options.size, options.keep_network)


def check_rungs(source: Source, options: PlanOptions) -> None:
    """Raises `UserError` if at every rung that suits these images, accumulated parts and processes cannot have equal
    shares of the groups of BatchNorm. Some images are decoded to learn their size; nothing is measured."""
    refusals = list[UserError]()
    for rung in rungs_for(usual_size(source)[0], options):
        try:
            run = compose(options, rung)
            check_parts(run, options.changes(run))
            return
        except UserError as problem:  # a path that the user set may exist on another rung
            refusals.append(problem)
    raise refusals[0]
