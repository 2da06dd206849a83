"""What tests of the command line share. The package is imported inside the fixtures, as in the folder above."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from stubbed_training import TrainingStub


@pytest.fixture
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own, and lines of 100 columns."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def port() -> Iterator[int]:
    """A port of this computer on which a process of the test can listen, and that no other process gets meanwhile."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as whoever listens there does
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty images of 40 pixels in two folders."""
    from stubbed_training import make_images

    return make_images(tmp_path_factory.mktemp("images"))


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> "TrainingStub":
    """The stub, in the place of training."""
    from stubbed_training import TrainingStub

    stub = TrainingStub()
    monkeypatch.setattr(
        "vantage.planning.speed.measure_speed", lambda run, source, seconds=2.0, progress=None: stub.speed
    )
    monkeypatch.setattr("vantage.training.loop.train", stub.train)
    monkeypatch.setattr("vantage.training.loop.resume", stub.resume)
    return stub
