"""Judge a run by a protocol, and keep the result beside it."""

import importlib.metadata
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vantage.data.sources.source import Source
from vantage.data.splits import train_and_test
from vantage.encoding import Work
from vantage.evaluate.outcome import EvaluationProtocol, Outcome
from vantage.evaluate.task import Task
from vantage.frozen.encoder import FrozenEncoder, load, random_encoder, raw_pixels
from vantage.storage.cache import hash_of
from vantage.storage.files import write_result

__all__ = [
    "Result",
    "evaluate",
    "file_name",
    "judged",
    "keep",
    "labeled_task",
    "place_of",
    "result_of",
    "with_baselines",
]

_LIBRARIES = ("torch", "torchvision", "numpy", "pillow", "scikit-learn", "timm", "vantage-ssl")


@dataclass(frozen=True)
class Result:
    """All that is needed to understand an accuracy, and to obtain it again."""

    protocol: str
    """Name of the protocol."""
    version: int
    """Version of the protocol's meaning."""
    settings: dict[str, Any]
    """Every setting of the protocol."""
    outcomes: dict[str, Outcome]
    """What came out, by encoder: the recipe's name first, then "raw pixels" and "random encoder" where they were
    asked for."""
    test_split: str
    """Where the test images come from."""
    view: str
    """How images are seen."""
    checkpoint: str
    """Name of the checkpoint."""
    encoder: str
    """Hash of the backbone."""
    train: str
    """Fingerprint of the training images."""
    test: str
    """Fingerprint of the test images."""
    device: str
    """Kind of device."""
    resident_bytes: int
    """Bytes up to which training images may lie in memory, where their crops are drawn otherwise than when they are
    streamed; which of both it was is told with each outcome (`Outcome.how`)."""
    libraries: dict[str, str]
    """Versions."""

    def lines(self) -> list[str]:
        """The measures in words, a line for each encoder."""
        return [f"{name}: {_words(outcome)}" for name, outcome in self.outcomes.items()]


def evaluate(
    run_folder: Path,
    protocol: EvaluationProtocol,
    train: Source,
    test: Source | None = None,
    *,
    baselines: bool = False,
    network: int | None = None,
    work: Work | None = None,
    out: Path | None = None,
) -> Result:
    """Judge a run's newest checkpoint, and write the result as JSON: to `out`, or under `run_folder`/evaluations.

    Without `test`, a fifth of each class of `train`, drawn with seed 0, is the test set and the rest the training
    set. With `baselines`, raw pixels and a random encoder of the same
    architecture, from the run's seed, are judged the same way. Test
    labels are counted, never used to choose. The same evaluation asked for again replaces its file.

    Raises `UserError` where labels are missing or the run has no usable checkpoint, `UnreadableImage` for an image
    that cannot be decoded.
    """
    work = work or Work()
    trained = load(run_folder, network)
    task = labeled_task(protocol, train, test)
    encoders = with_baselines(trained, network) if baselines else [trained]
    return keep(judged(task, encoders, work), run_folder, out)


def labeled_task(protocol: EvaluationProtocol, train: Source, test: Source | None = None) -> Task:
    """A protocol of one labeled set, with its images as `train_and_test` has them."""
    return Task(protocol, *train_and_test(train, test))


def with_baselines(trained: FrozenEncoder, network: int | None) -> list[FrozenEncoder]:
    """A run's encoder, raw pixels as it sees them, and a random encoder of the same architecture from the run's
    seed."""
    return [trained, raw_pixels(trained.run, network), random_encoder(trained.run, trained.run.seed, network)]


def judged(task: Task, encoders: Sequence[FrozenEncoder], work: Work) -> Result:
    """What a protocol finds out about each encoder, of which the run's comes first."""
    outcomes = {encoder.name: task.protocol(encoder, task.train, task.test, work) for encoder in encoders}
    images = (task.train, task.test, task.test_split)
    return result_of(task.protocol, encoders[0], *images, outcomes, work, task.tools)


def keep(result: Result, run_folder: Path, out: Path | None = None) -> Result:
    """Write a result as JSON, to `out` or under `run_folder`/evaluations; the same evaluation replaces its file."""
    write_result(place_of(result, run_folder, out), json.dumps(asdict(result), indent=1), "the result")
    return result


def place_of(result: Result, run_folder: Path, out: Path | None = None) -> Path:
    """The file that a result is kept in."""
    return out or run_folder / "evaluations" / file_name(result)


def result_of(
    protocol: EvaluationProtocol,
    trained: FrozenEncoder,
    train: Source,
    test: Source,
    kind: str,
    outcomes: dict[str, Outcome],
    work: Work,
    tools: Sequence[str] = (),
) -> Result:
    """What came out, with all that is needed to obtain it again; `tools` are libraries beside those of every
    protocol."""
    return Result(
        protocol=protocol.name,
        version=protocol.version,
        settings=_settings(protocol),
        outcomes=outcomes,
        test_split=kind,
        view=repr(trained.view),
        checkpoint=trained.checkpoint.name if trained.checkpoint else "",
        encoder=trained.digest(),
        train=train.fingerprint(),
        test=test.fingerprint(),
        device=work.resolved_device().type,
        resident_bytes=work.resident_bytes,
        libraries={"python": platform.python_version()} | {name: _version(name) for name in (*_LIBRARIES, *tools)},
    )


def _settings(protocol: Any) -> dict[str, Any]:
    return asdict(protocol)


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:  # run from a checkout
        return "not installed"


def file_name(result: Result) -> str:
    """A name that depends on all that the result depends on, but not on what came out."""
    same = {key: value for key, value in asdict(result).items() if key not in ("outcomes", "libraries")}
    key = hash_of([json.dumps([same, sorted(result.outcomes)], sort_keys=True).encode()])
    return f"{result.protocol}-v{result.version}-{result.checkpoint}-{key[:8]}.json"


def _words(outcome: Outcome) -> str:
    told = ", ".join(_measure(name, value) for name, value in outcome.measures.items())
    return f"{told} of {outcome.test_images} test images"


def _measure(name: str, value: float) -> str:
    """A number beside a number is parted from it, as in: precision at 10: 28.40 %."""
    between = ": " if name[-1].isdigit() and (" " in name or "=" in name) else " "
    return f"{name}{between}{value:.2f}{'' if '(' in name else ' %'}"
