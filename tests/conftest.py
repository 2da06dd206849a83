"""What all test files share. The package must not be imported here, since pytest installs the shape checks first."""

import functools
import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import checking
import hypothesis
import jaxtyping
import pytest
from xdist.scheduler import LoadScopeScheduling

jaxtyping.jaxtyped = checking.jaxtyped  # pyright: ignore[reportAttributeAccessIssue]

# Scripts start background jobs that ignore Ctrl-C, which tests send to themselves and to others.
signal.signal(signal.SIGINT, signal.default_int_handler)

# One thread, also in the processes that tests start: tensors are tiny, a second thread costs more than it gains, and
# the tests may run in several processes. OpenMP reads this when torch is loaded.
os.environ["OMP_NUM_THREADS"] = "1"

# The same examples in every run, so that a failure repeats; `--hypothesis-profile thorough` tries more of them.
hypothesis.settings.register_profile("vantage", deadline=None, max_examples=25, derandomize=True, database=None)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=500, database=None)
hypothesis.settings.load_profile("vantage")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real images beside the checkout; a test that uses it is skipped if there is none."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"real images are not here: no folder {folder}")
    return folder


@pytest.fixture(scope="session", autouse=True)
def own_parts() -> Iterator[None]:
    """Allow runs to use parts from the tests' own modules."""
    from vantage import allowing

    with allowing("tiny", "test_ranking"):
        yield


@pytest.fixture(autouse=True)
def seed_torch() -> None:
    """Seed torch's default generator before each test, so that the order of tests does not matter."""
    import torch

    torch.default_generator.manual_seed(0)  # `torch.manual_seed` takes a millisecond where there is no GPU


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count no core as busy, so that runs use all threads even on a busy machine."""
    from vantage.machine import load

    monkeypatch.setattr(load, "taken_cores", functools.wraps(load.taken_cores)(lambda *_: 0))


@pytest.fixture
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure the speed of a run by its first steps: a plan looks for up to ten seconds, which most tests need not."""
    from vantage.planning import speed

    take_steps = speed._steps
    monkeypatch.setattr(speed, "_steps", lambda session, batches, _: take_steps(session, batches, 0.01))


class ByFile(LoadScopeScheduling):
    """Tests of a file that share a fixture go to one process, so that it is made once; other tests go one by one."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if _shares(file) else nodeid

    def _reschedule(self, node: Any) -> None:
        """Forget what a process has done: pytest-xdist counts all that it ever got after each test."""
        work = self.assigned_work[node]
        for scope in [scope for scope, tests in work.items() if all(tests.values())]:
            del work[scope]
        super()._reschedule(node)


@functools.cache
def _shares(file: str) -> bool:
    text = (REPOSITORY / file).read_text(encoding="utf-8")
    return 'scope="module"' in text or "\n@cache\n" in text


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """Use `ByFile`: the groups of pytest-xdist (`--dist=loadgroup`) have no effect under pytest 9.2, where it cannot
    change a `nodeid`."""
    return ByFile(config, log)


def pytest_collection_finish() -> None:
    """Exclude all imported objects, which stay alive, from further garbage collections."""
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests that need a GPU if there is none."""
    import torch

    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("gpu"):  # `keywords` holds the names of folders too
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device, and torch sees none here"))
