"""What tests of training share. The package is imported inside the fixtures, as in the folder above."""

from pathlib import Path

import pytest


@pytest.fixture
def images_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Images, and a cache of the test's own."""
    from small_runs import write_images

    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    return write_images(tmp_path / "images.npz")
