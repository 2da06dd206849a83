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
TRAINED = {
    "negative_sampler": ("negatives/not_too_near.py", "negatives/__init__.py", "NotTooNear"),
    "source": ("data/sources/disks.py", "data/sources/opening.py", "Disks"),
}
"""The same of those that a training shows."""
KNOWS = """
import vantage
from vantage.cli import main
vantage.NearImages(floor=0.5), vantage.Smoothed(share=0.1), vantage.Cover()
assert main(["evaluate", "class-means", "--help"]) == main(["recipes", "hard_moco"]) == 0
"""
"""What the package knows afterwards."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package that has the parts of all tutorials."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(REPOSITORY / PACKAGE, folder / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    for page, part in (PARTS | TRAINED).items():
        add_part(page, *part, folder, "\n_Progress = " if page == "source" else "\n__all__")
    return folder


def add_part(page: str, file: str, index: str, name: str, copy: Path, before: str) -> None:
    """Put a tutorial's file into a copy of the package, and its line into the index, before this text."""
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
def test_a_part_of_the_package_is_a_file_and_a_line(copy: Path) -> None:
    python(copy, "-c", KNOWS)


@pytest.mark.slow
def test_a_sampler_of_the_package_is_a_file_and_a_line(copy: Path) -> None:
    """`--set` knows it by its name alone."""
    data = write_images(copy / "images.npz")
    words = ["pretrain", "moco_v2", "--data", data, "--out", "sampled", *SHORT.split()]
    words += ["--set", "accelerator=cpu", "--set", "negatives=(OtherImages(), NotTooNear(0.8))"]
    python(copy, "-m", "vantage.cli", *words)
    settings = json.loads((copy / "sampled" / "settings.json").read_text())["run"]
    assert "NotTooNear" in json.dumps(settings["branches"][0]["negatives"])


@pytest.mark.slow
def test_a_source_of_the_package_is_a_file_and_a_name(copy: Path) -> None:
    """Its name is a line in the table of `opening.py`; `--data` knows it then."""
    index = copy / PACKAGE / "data/sources/opening.py"
    table = "] = {\n"
    assert index.read_text().count(table) == 1
    index.write_text(index.read_text().replace(table, f'{table}    "disks:all": Disks,\n'))
    python(copy, "-m", "vantage.cli", "pretrain", "simclr", "--data", "disks:all", "--out", "run", *SHORT.split())
    settings = json.loads((copy / "run" / "settings.json").read_text())["run"]
    assert settings["data"]["path"] == "disks:all"
