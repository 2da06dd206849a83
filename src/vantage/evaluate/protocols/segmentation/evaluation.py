"""Judge a run by a protocol that looks at every pixel of images with masks, and keep the result beside it."""

from pathlib import Path

from vantage.data.sources.masked import MaskedImages, split_masked
from vantage.data.splits import check_apart
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.judge import Result, judged, keep, with_baselines
from vantage.evaluate.protocols.segmentation.segmentation import Segmentation
from vantage.evaluate.task import Task
from vantage.frozen.encoder import load

__all__ = ["evaluate_masked", "masked_task"]


def evaluate_masked(
    run_folder: Path,
    protocol: Segmentation,
    train: MaskedImages,
    test: MaskedImages | None = None,
    *,
    baselines: bool = False,
    network: int | None = None,
    work: Work | None = None,
    out: Path | None = None,
) -> Result:
    """Judge a run's newest checkpoint by images with masks; arguments and the file written as for `evaluate`.

    Without `test`, a fifth of all images, drawn with seed 0, is the test set. Both count the classes of `train`; open
    the test images with them. Raises `UserError` for a test set that is the training set or has other classes, and
    what the protocol raises.
    """
    work = work or Work()
    trained = load(run_folder, network)
    task = masked_task(protocol, train, test)
    encoders = with_baselines(trained, network) if baselines else [trained]
    return keep(judged(task, encoders, work), run_folder, out)


def masked_task(protocol: Segmentation, train: MaskedImages, test: MaskedImages | None = None) -> Task:
    """A protocol of images with masks, with the images of both sides as `evaluate_masked` has them."""
    if test is None:
        known, asked = split_masked(train)
        return Task(protocol, known, asked, f"a fifth of the same {len(train)} images, drawn with seed 0")
    if test.classes != train.classes:
        raise UserError("the test masks count other classes than the training masks: open them with the same list")
    check_apart(train, test)
    return Task(protocol, train, test, "a set of its own")
