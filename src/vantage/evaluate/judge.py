"""Judge an encoder by a protocol, and keep the result."""

import importlib.metadata
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.evaluate.result import Outcome, Result, keep, path_of, recorded
from vantage.evaluate.task import EvaluationProtocol, Task, task_of
from vantage.frozen.encoder import FrozenEncoder, load, random_encoder, raw_pixels

__all__ = ["evaluate", "judge", "judge_once", "result_of", "with_baselines"]

_LIBRARIES = ("torch", "torchvision", "numpy", "pillow", "scikit-learn", "timm", "vantage-ssl")


def evaluate(
    run: Path | FrozenEncoder,
    protocol: EvaluationProtocol,
    train: Source,
    test: Source | None = None,
    *,
    baselines: bool = False,
    network: int | None = None,
    work: Work | None = None,
    out: Path | None = None,
) -> Result:
    """Judge the newest checkpoint in a run's folder, or an encoder, by any protocol on any images that serve it.

    The result is written as JSON to `out`, or, of a folder, under its evaluations; the same evaluation replaces its
    file. Without `test`, a fifth of each class of `train` (where images have no class, a fifth of all), drawn with seed
    0, is the test set and the rest the training set. With `baselines`, raw pixels (where the protocol can judge them)
    and a random encoder of the same architecture, from the run's seed, are judged the same way. Test labels are
    counted, never used to choose. `network` counts which of the trained networks of a folder's run is judged.

    Raises `UserError` where the images do not serve the protocol (labels are missing, say) or the run has no usable
    checkpoint, `UnreadableImage` for an image that cannot be decoded.
    """
    encoder = load(run, network) if isinstance(run, Path) else run
    task = task_of(protocol, train, test)
    encoders = with_baselines(encoder, network, task) if baselines else [encoder]
    result = judge(task, encoders, work or Work())
    path = path_of(result, run, out) if isinstance(run, Path) else out
    return result if path is None else keep(result, path)


def with_baselines(encoder: FrozenEncoder, network: int | None, task: Task) -> list[FrozenEncoder]:
    """An encoder; raw pixels as it sees them, where the task can judge them; and a random encoder of the same
    architecture from the run's seed."""
    pixels = [] if task.pixels else [raw_pixels(encoder.run, network)]
    return [encoder, *pixels, random_encoder(encoder.run, encoder.run.seed, network)]


def judge(task: Task, encoders: Sequence[FrozenEncoder], work: Work) -> Result:
    """What a protocol finds out about each encoder, of which the run's comes first."""
    outcomes = {encoder.name: task.protocol(encoder, task.train, task.test, work) for encoder in encoders}
    return result_of(task, encoders[0], outcomes, work)


def judge_once(
    task: Task,
    encoder: FrozenEncoder,
    work: Work,
    folder: Path,
    path: Path | None = None,
    beside: FrozenEncoder | None = None,
    report: Callable[[bool], None] = lambda known: None,
) -> Outcome:
    """The outcome that a run's folder has a record of (`path`, or any file of its evaluations), or one judged and
    recorded now; `report` hears which it is, before anything is judged.

    A baseline's outcome may also stand in the record of the encoder `beside` which it was judged.
    """
    empty = result_of(task, encoder, {}, work)
    records = sorted((folder / "evaluations").glob(f"{empty.protocol}-v{empty.version}-*.json"))
    records = records if path is None else [path]
    outcome = recorded(records, encoder.name, empty)
    if outcome is None and beside is not None and beside is not encoder:
        outcome = recorded(records, encoder.name, result_of(task, beside, {}, work))
    report(outcome is not None)
    if outcome is None:
        outcome = task.protocol(encoder, task.train, task.test, work)
        result = replace(empty, outcomes={encoder.name: outcome})
        keep(result, path_of(result, folder, path))
    return outcome


def result_of(task: Task, encoder: FrozenEncoder, outcomes: dict[str, Outcome], work: Work) -> Result:
    """What came out, with all that is needed to obtain it again."""
    protocol: Any = task.protocol
    versions = {name: _version(name) for name in (*_LIBRARIES, *task.tools)}
    return Result(
        protocol=protocol.name,
        version=protocol.version,
        settings=asdict(protocol),
        outcomes=outcomes,
        test_split=task.test_split,
        view=repr(encoder.view),
        checkpoint=encoder.checkpoint.name if encoder.checkpoint else "",
        encoder=encoder.digest(),
        train=task.train.fingerprint(),
        test=task.test.fingerprint(),
        device=work.resolved_device().type,
        resident_bytes=work.resident_bytes,
        libraries={"python": platform.python_version()} | versions,
    )


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:  # run from a checkout
        return "not installed"
