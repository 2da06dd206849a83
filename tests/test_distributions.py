"""What is published: the wheel, the source distribution, and the citation."""

import importlib
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from repository_files import FILES, OTHER_PAGES, PAGES, REPOSITORY, SOURCE, short


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel, built by the environment that is here; nothing is downloaded."""
    folder = tmp_path_factory.mktemp("packed")
    build_distributions(REPOSITORY, folder)
    return folder


def build_distributions(source: Path, folder: Path, *words: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder), *words]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


@pytest.mark.slow
def test_the_wheel_holds_the_whole_package(distributions: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {str(file.relative_to(SOURCE)) for file in FILES} | {"vantage/py.typed"} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.slow
def test_the_source_distribution_holds_what_builds_tests_and_documents_it(distributions: Path) -> None:
    (archive,) = distributions.glob("*.tar.gz")
    with tarfile.open(archive) as archive_file:
        names = {name.partition("/")[2] for name in archive_file.getnames()}
    expected = {"pyproject.toml", "README.md", "LICENSE", "CITATION.cff", "docs/build.py", "docs/conf.py"}
    assert expected | {short(file) for file in [*FILES, *PAGES, *OTHER_PAGES]} <= names
    assert not any("_build" in name or "__pycache__" in name for name in names)


@pytest.mark.slow
def test_a_wheel_of_the_source_distribution_works_in_a_new_environment(distributions: Path, tmp_path: Path) -> None:
    """It also holds the files of the wheel that is built from the checkout."""
    (archive,), (first,) = distributions.glob("*.tar.gz"), distributions.glob("*.whl")
    with tarfile.open(archive) as archive_file:
        archive_file.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    build_distributions(source, tmp_path / "wheel", "-t", "wheel")
    (wheel,) = (tmp_path / "wheel").glob("*.whl")
    assert set(zipfile.ZipFile(wheel).namelist()) == set(zipfile.ZipFile(first).namelist())
    venv.create(tmp_path / "new", with_pip=False, symlinks=True)
    python = tmp_path / "new" / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    (site,) = (tmp_path / "new").glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    program = "import vantage; print(vantage.__file__); print(vantage.moco_v2(size=32).recipe)"
    alone = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}  # no PYTHONPATH that leads to the checkout
    process = subprocess.run(
        [python, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path, env=alone
    )
    assert process.stdout.splitlines() == [str(site / "vantage" / "__init__.py"), "moco_v2"]
    console = subprocess.run([tmp_path / "new/bin/vantage", "--version"], capture_output=True, text=True, env=alone)
    assert console.returncode == 0 and vantage_version() in console.stdout


def vantage_version() -> str:
    return importlib.import_module("vantage").__version__


def test_the_citation_names_this_version_and_the_four_papers() -> None:
    text = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    assert f"version: {settings['project']['version']}\n" in text
    assert settings["project"]["version"] == vantage_version()
    papers = {"2009.14776", "2010.02037", "2008.11702", "2005.10243"}
    assert set(re.findall(r"arXiv:(\d{4}\.\d{5})", text)) == papers
