"""What every test file shares. Nothing of the package is imported here: pytest installs the shape checks first."""

from collections.abc import Iterator
from pathlib import Path

import checking
import hypothesis
import jaxtyping
import pytest
import torch

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
def seeded() -> None:
    """Torch's default generator starts each test at the same place, whatever ran before."""
    torch.manual_seed(0)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests that need a GPU where there is none."""
    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("gpu"):  # `keywords` holds the names of folders too
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device, and torch sees none here"))
