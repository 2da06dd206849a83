"""Runs that others start from, each trained once. The package is imported inside the fixtures, as in other folders."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the images and runs lie."""
    from small_runs import write_images

    path = tmp_path_factory.mktemp("warm")
    write_images(path / "images.npz")
    return path


@pytest.fixture(scope="session")
def base(folder: Path) -> Callable[[str], tuple[Path, dict[str, Any]]]:
    """Runs of one epoch: the folder and the tensors of the last checkpoint."""
    from warm_runs import small, tensors

    from vantage.training.loop import train

    def train_once(recipe: str) -> tuple[Path, dict[str, Any]]:
        if not (folder / recipe).exists():
            train(small(recipe, folder), folder / recipe)
        return folder / recipe, tensors(folder / recipe)

    return train_once


@pytest.fixture(autouse=True)
def cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the tests' own."""
    monkeypatch.setenv("VANTAGE_CACHE", str(folder / "cache"))
