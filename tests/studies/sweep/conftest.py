"""What tests of sweeps share. The package is imported inside the fixtures, as in the folders above."""

from collections.abc import Iterator

import pytest


@pytest.fixture
def allow_tiny() -> Iterator[None]:
    """Runs of the tests' own backbone may be read."""
    from vantage.composition.codec import allowing

    with allowing("tiny"):
        yield


@pytest.fixture(scope="module")
def images_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file of 48 labeled images of 16 pixels."""
    from small_runs import write_images

    return write_images(tmp_path_factory.mktemp("images") / "images.npz")
