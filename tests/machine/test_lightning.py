"""Lightning Fabric is imported without torchmetrics, in whose place it finds a version. Both packages are pretended."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from vantage.machine import lightning


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages that come before the real ones. One is torchmetrics 3.4, which is slow to import."""
    for name in ("lightning_fabric", "torchmetrics"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))  # so that what is imported here is forgotten
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(lightning, "version", lambda package: {"torchmetrics": "3.4"}[package])
    (tmp_path / "torchmetrics.py").write_text("__version__, SLOW = '3.4', True\n")
    return tmp_path


def imported(packages: Path, source: str) -> ModuleType:
    """Lightning Fabric, if this is what its `__init__` does."""
    (packages / "lightning_fabric.py").write_text(source)
    lightning.import_fabric()
    return sys.modules["lightning_fabric"]


def test_fabric_sees_the_version_of_torchmetrics_alone(packages: Path) -> None:
    fabric = imported(packages, "import torchmetrics\nSEEN = torchmetrics.__version__, hasattr(torchmetrics, 'SLOW')\n")
    assert fabric.SEEN == ("3.4", False)
    assert "torchmetrics" not in sys.modules, "whoever imports it later gets the whole"


def test_fabric_that_needs_more_of_torchmetrics_gets_it(packages: Path) -> None:
    assert imported(packages, "from torchmetrics import SLOW\n").SLOW


def test_torchmetrics_that_was_imported_before_stays(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = ModuleType("torchmetrics")
    monkeypatch.setitem(sys.modules, "torchmetrics", before)
    assert imported(packages, "import torchmetrics\n").torchmetrics is before
    assert sys.modules["torchmetrics"] is before
