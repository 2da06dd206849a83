"""Evaluate an encoder by a protocol, and record the result."""

import importlib.metadata
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from vantage.composition.field_types import expect
from vantage.composition.own_code import own_code
from vantage.data.sources.source import Source, refuse_path, stamp_of
from vantage.encoders.modes import in_evaluation
from vantage.encoding import Work
from vantage.evaluate.result import Outcome, Result, checked, find_outcome, path_of, save
from vantage.evaluate.task import EvaluationProtocol, Task, task_of
from vantage.evaluate.try_encoder import try_encoder
from vantage.frozen.encoder import FrozenEncoder, load, random_encoder, raw_pixels
from vantage.frozen.outside import home_of
from vantage.machine.usual_torch import usual_torch
from vantage.processes.sharing import true_on_all
from vantage.storage.cache import hash_of

__all__ = ["evaluate", "judge", "judge_once", "result_of", "with_baselines"]

_LIBRARIES = ("torch", "torchvision", "numpy", "pillow", "scikit-learn", "timm", "vantage-ssl")


@usual_torch()
def evaluate(
    run: Path | str | FrozenEncoder,
    protocol: EvaluationProtocol,
    train: Source,
    test: Source | None = None,
    *,
    baselines: bool = False,
    network: int | None = None,
    work: Work | None = None,
    out: Path | str | None = None,
) -> Result:
    """Evaluate an encoder, or the newest checkpoint in a run's folder, by any protocol on images that suit it.

    The result is written as JSON to `out`. If `out` is omitted, it is written to the evaluations in the run's folder,
    or nowhere for a `FrozenEncoder`. Repeating an evaluation overwrites its file. If `test` is omitted, a fifth of each
    class of `train` (or of all images, if they do not have one class each), drawn with seed 0, is the test set and the
    rest is the training set. With `baselines`, raw pixels (if the protocol can evaluate them) and a random encoder of
    the same architecture, initialized with the run's seed, are evaluated in the same way. Test labels are used only to
    score, never to choose. `network` is the number of the network to evaluate, if the run trained several.

    Raises `UserError` if the images do not suit the protocol (labels are missing, say), the run has no usable
    checkpoint, or the network refuses a view of the first image, and `UnreadableImage` for an image that cannot be
    decoded.
    """
    refuse_path(train, test)
    run = Path(run) if isinstance(run, str) else run
    file = None if out is None else Path(out)
    expect(run, Path | FrozenEncoder, "the run", "its folder, or vantage.load(RUN)")
    encoder = load(run, network) if isinstance(run, Path) else run
    task = task_of(protocol, train, test)
    encoders = with_baselines(encoder, network, task) if baselines else [encoder]
    result = judge(task, encoders, work or Work())
    path = path_of(result, run, file) if isinstance(run, Path) else file
    return result if path is None else save(result, path)


def with_baselines(encoder: FrozenEncoder, network: int | None, task: Task) -> list[FrozenEncoder]:
    """The encoder and its baselines: raw pixels through its view, if the task can evaluate them, and a random encoder
    of the same architecture, initialized with the run's seed."""
    pixels = [] if task.pixels else [raw_pixels(encoder.run, network)]
    return [encoder, *pixels, random_encoder(encoder.run, encoder.run.seed, network)]


@usual_torch()
def judge(task: Task, encoders: Sequence[FrozenEncoder], work: Work) -> Result:
    """Evaluate each encoder by the task's protocol; the first one is the run's own."""
    for encoder in encoders:
        try_encoder(encoder, task.train)
    outcomes = {encoder.name: _outcome(task, encoder, work) for encoder in encoders}
    return result_of(task, encoders[0], outcomes, work)


@usual_torch()
def judge_once(
    task: Task,
    encoder: FrozenEncoder,
    work: Work,
    folder: Path,
    path: Path | None = None,
    beside: FrozenEncoder | None = None,
    report: Callable[[bool], None] = lambda from_record: None,
) -> Outcome:
    """The outcome that is recorded in a run's folder (in `path`, or else in any file of its evaluations). Without a
    record, the encoder is evaluated and its outcome recorded. `report` is called before, with whether there is a
    record.

    A baseline's outcome may also be in the record of the run's own encoder, which `beside` names.
    """
    empty = result_of(task, encoder, {}, work)
    pattern = f"{empty.protocol}-v{empty.version}-*.json"
    records = [path] if path is not None else sorted((home_of(folder) / "evaluations").glob(pattern))
    outcome = find_outcome(records, encoder.name, empty)
    if outcome is None and beside is not None and beside is not encoder:
        outcome = find_outcome(records, encoder.name, result_of(task, beside, {}, work))
    if not true_on_all(outcome is not None):
        outcome = None
    report(outcome is not None)
    if outcome is None:
        try_encoder(encoder, task.train)
        outcome = _outcome(task, encoder, work)
        result = replace(empty, outcomes={encoder.name: outcome})
        save(result, path_of(result, folder, path))
    return outcome


def _outcome(task: Task, encoder: FrozenEncoder, work: Work) -> Outcome:
    with in_evaluation(encoder.backbone):  # a loop of the caller's own may have left it in training mode
        return checked(task.protocol(encoder, task.train, task.test, work), task.protocol.name)


def result_of(task: Task, encoder: FrozenEncoder, outcomes: dict[str, Outcome], work: Work) -> Result:
    """The outcomes, with everything needed to repeat the evaluation."""
    protocol: Any = task.protocol
    code = own_code(protocol)
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
        files=hash_of([stamp_of(task.train), stamp_of(task.test)]),
        code=hash_of(code) if code else "",
    )


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:  # run from a checkout
        return "not installed"
