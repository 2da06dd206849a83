"""What CONTRIBUTING promises: a part of the package is one new file and one line in the index of its folder."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_runs import write_images

REPOSITORY = Path(__file__).resolve().parent.parent
PAGE = REPOSITORY / "docs" / "extend" / "negative_sampler.md"
SHORT = "--backbone convolutions --size 16 --batch-size 16 --epochs 1 --precision 32-true --quiet"


@pytest.mark.slow
def test_a_sampler_of_the_package_is_a_file_and_a_line(tmp_path: Path) -> None:
    """The tutorial's file in a copy of the package; `--set` then knows it by its name alone."""
    shutil.copytree(
        REPOSITORY / "src" / "vantage", tmp_path / "src" / "vantage", ignore=shutil.ignore_patterns("__pycache__")
    )
    folder = tmp_path / "src" / "vantage" / "negatives"
    code = re.search(r"^```python\n(# not_too_near\.py\n.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert code is not None
    (folder / "not_too_near.py").write_text(code.group(1))
    index = (folder / "__init__.py").read_text()
    line = "from vantage.negatives.not_too_near import NotTooNear as NotTooNear\n"
    (folder / "__init__.py").write_text(index.replace("\n__all__", f"{line}\n__all__"))
    data = write_images(tmp_path / "images.npz")
    words = ["pretrain", "moco_v2", "--data", data, "--out", "run", *SHORT.split()]
    words += ["--set", "accelerator=cpu", "--set", "negatives=(OtherImages(), NotTooNear(0.8))"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src"), "VANTAGE_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "vantage.cli", *words]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    settings = json.loads((tmp_path / "run" / "settings.json").read_text())["run"]
    assert "NotTooNear" in json.dumps(settings["branches"][0]["negatives"])
