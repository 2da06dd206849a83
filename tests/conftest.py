"""What every test file shares. Nothing of the package is imported here: pytest installs the shape checks first."""

import functools
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import checking
import hypothesis
import jaxtyping
import pytest
import torch
from xdist.scheduler import LoadScopeScheduling

jaxtyping.jaxtyped = checking.jaxtyped  # pyright: ignore[reportAttributeAccessIssue]

# Many tiny tensors: a second thread costs more than it gives, and the suite may run in several processes.
torch.set_num_threads(1)

# The same examples on every run, so that red stays red at the next try; `--hypothesis-profile thorough` looks further.
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
    """Folder of real images beside the checkout; a test that asks for it is skipped where there is none."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"real images are not here: no folder {folder}")
    return folder


@pytest.fixture(scope="session", autouse=True)
def own_parts() -> Iterator[None]:
    """Runs of the tests use parts of the tests' own modules."""
    from vantage import allowing

    with allowing("tiny", "test_ranking"):
        yield


@pytest.fixture(autouse=True)
def seed_torch() -> None:
    """Torch's default generator starts each test at the same place, whatever ran before."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs take no fewer threads, however busy this machine is."""
    from vantage.machine import load

    monkeypatch.setattr(load, "taken_cores", functools.wraps(load.taken_cores)(lambda *_: 0))


class ByFile(LoadScopeScheduling):
    """Tests of a file that share a fixture go to one process, so that it is made once; other tests go one by one."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if _shares(file) else nodeid


@functools.cache
def _shares(file: str) -> bool:
    text = (REPOSITORY / file).read_text(encoding="utf-8")
    return 'scope="module"' in text or "\n@cache\n" in text


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """pytest-xdist's own groups (`--dist=loadgroup`) are not seen under pytest 9.2, whose `nodeid` it cannot change."""
    return ByFile(config, log)


def pytest_collection_finish() -> None:
    """What was imported by now stays, so the garbage collector need not look at it again."""
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests that need a GPU where there is none."""
    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("gpu"):  # `keywords` holds the names of folders too
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device, and torch sees none here"))
