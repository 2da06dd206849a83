"""What CONTRIBUTING promises: the package knows a part after one new file and one line in the index of its folder."""

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
SHORT = "--backbone convolutions --size 16 --batch-size 16 --epochs 1 --precision 32-true --quiet"


PACKAGE = Path("src") / "vantage"
PARTS = {
    "positive_rule": ("positives/near_images.py", "positives/__init__.py", "NearImages"),
    "estimator": ("estimators/smoothed.py", "estimators/__init__.py", "Smoothed"),
    "view_operation": ("views/operations/cover.py", "views/__init__.py", "Cover"),
    "protocol": ("evaluate/protocols/class_means.py", "evaluate/protocols/labeled.py", "ClassMeans"),
    "recipe": ("recipes/hard_moco.py", "recipes/methods.py", "hard_moco"),
}
"""The file of each tutorial, the index of its folder, and its name."""
KNOWS = {
    "positive_rule": ("-c", "import vantage; vantage.NearImages(floor=0.5)"),
    "estimator": ("-c", "import vantage; vantage.Smoothed(share=0.1)"),
    "view_operation": ("-c", "import vantage; vantage.Cover()"),
    "protocol": ("-m", "vantage.cli", "evaluate", "class-means", "--help"),
    "recipe": ("-m", "vantage.cli", "recipes", "hard_moco"),
}
"""What the package knows afterwards, as words for Python."""


def add_part(page: str, file: str, index: str, name: str, copy: Path, before: str = "\n__all__") -> None:
    """Put a tutorial's file into a copy of the package, and its line into the index, before this text."""
    shutil.copytree(REPOSITORY / PACKAGE, copy / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    text = (REPOSITORY / "docs" / "extend" / f"{page}.md").read_text()
    code = re.search(rf"^```python\n(# {Path(file).name}\n.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert code is not None
    (copy / PACKAGE / file).write_text(code.group(1))
    module = ".".join(("vantage", *Path(file).with_suffix("").parts))
    lines = (copy / PACKAGE / index).read_text()
    assert before in lines
    (copy / PACKAGE / index).write_text(lines.replace(before, f"from {module} import {name} as {name}\n{before}", 1))


def python(copy: Path, *words: str) -> None:
    """Run Python with the copy of the package."""
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "VANTAGE_CACHE": str(copy / "cache")}
    process = subprocess.run([sys.executable, *words], cwd=copy, env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr


@pytest.mark.slow
@pytest.mark.parametrize("page", PARTS)
def test_a_part_of_the_package_is_a_file_and_a_line(page: str, tmp_path: Path) -> None:
    add_part(page, *PARTS[page], tmp_path)
    python(tmp_path, *KNOWS[page])


@pytest.mark.slow
def test_a_sampler_of_the_package_is_a_file_and_a_line(tmp_path: Path) -> None:
    """`--set` knows it by its name alone."""
    add_part("negative_sampler", "negatives/not_too_near.py", "negatives/__init__.py", "NotTooNear", tmp_path)
    data = write_images(tmp_path / "images.npz")
    words = ["pretrain", "moco_v2", "--data", data, "--out", "run", *SHORT.split()]
    words += ["--set", "accelerator=cpu", "--set", "negatives=(OtherImages(), NotTooNear(0.8))"]
    python(tmp_path, "-m", "vantage.cli", *words)
    settings = json.loads((tmp_path / "run" / "settings.json").read_text())["run"]
    assert "NotTooNear" in json.dumps(settings["branches"][0]["negatives"])


@pytest.mark.slow
def test_a_source_of_the_package_is_a_file_and_a_name(tmp_path: Path) -> None:
    """Its name is a line in the table of `opening.py`; `--data` knows it then."""
    index = tmp_path / PACKAGE / "data/sources/opening.py"
    add_part("source", "data/sources/disks.py", "data/sources/opening.py", "Disks", tmp_path, "\n_Progress = ")
    table = "] = {\n"
    assert index.read_text().count(table) == 1
    index.write_text(index.read_text().replace(table, f'{table}    "disks:all": Disks,\n'))
    python(tmp_path, "-m", "vantage.cli", "pretrain", "simclr", "--data", "disks:all", "--out", "run", *SHORT.split())
    settings = json.loads((tmp_path / "run" / "settings.json").read_text())["run"]
    assert settings["data"]["path"] == "disks:all"
