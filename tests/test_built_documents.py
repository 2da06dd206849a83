"""The documentation that `docs/build.py` makes: every public name is described and on a page."""

import importlib
import importlib.util
import re
import runpy
import subprocess
import sys
import types
from pathlib import Path

import pytest
from repository_files import REPOSITORY


@pytest.fixture(scope="module")
def build() -> types.ModuleType:
    """The script that makes the documentation."""
    spec = importlib.util.spec_from_file_location("build_documentation", REPOSITORY / "docs" / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_every_public_name_is_documented(build: types.ModuleType) -> None:
    assert [name for module in build.public_modules() for name in build.undocumented(module)] == []


def test_the_check_of_docstrings_finds_what_is_missing(
    build: types.ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "carelessly_written.py").write_text(
        '"""A module."""\n'
        "from dataclasses import dataclass\n"
        "from torch import nn\n"
        "def bare(): ...\n"
        "def _private(): ...\n"
        "@dataclass\n"
        "class Part:\n"
        '    """A part."""\n'
        "    count: int\n"
        "    size: int = 1\n"
        '    """Pixels."""\n'
        "    def method(self): ...\n"
        "@dataclass\n"
        "class Bare:\n"
        "    _hidden: int = 0\n"
        "class Network(nn.Module):\n"
        '    """A network."""\n'
        "    def forward(self): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    missing = [name.removeprefix("carelessly_written.") for name in build.undocumented("carelessly_written")]
    assert sorted(missing) == ["Bare", "Network.forward", "Part.count", "Part.method", "bare"]


@pytest.mark.slow
def test_every_public_module_and_name_is_on_a_page(build: types.ModuleType, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", str(REPOSITORY / "docs" / "build.py"), "--out", str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    entries = build.entries(tmp_path)
    assert list(build.absent(entries)) == []
    assert list(build.absent(entries - {"vantage.negatives.band.Ring", "vantage.records"})) == [
        "vantage.negatives.band.Ring",
        "vantage.records",
    ]
    assert (tmp_path / "searchindex.js").is_file()
    for page in ("index", "docs/architecture", "CONTRIBUTING", "CHANGELOG", "benchmarks/README", "api/vantage.records"):
        text = (tmp_path / f"{page}.html").read_text(encoding="utf-8")
        assert re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="https?://[^"]+"', text) == [], "needs a network"


def test_docstrings_in_markdown_become_what_sphinx_reads() -> None:
    from docutils.core import publish_parts

    settings = runpy.run_path(str(REPOSITORY / "docs" / "conf.py"))
    text = """Sums `a * b` of `Ring`s; a*b*c, |x| and x_ are no markup, *this* is.

    loss = a ** b

* one `item`
  of two lines
- another

>>> 1 + 1
2
"""
    lines = settings["restructured"](text.splitlines())
    markup = "\n".join(lines).replace(":py:obj:", "")
    html = publish_parts(markup, writer="html5", settings_overrides={"report_level": 1, "halt_level": 1})["body"]
    assert "a*b*c, |x| and x_ are no markup, <em>this</em> is" in html
    assert "loss = a ** b" in html and html.count("<li>") == 2 and "&gt;&gt;&gt;" in html
    assert ":py:obj:`Ring`\\ s" in "\n".join(lines) and "``a * b``" in "\n".join(lines)
