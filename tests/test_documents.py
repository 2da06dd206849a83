"""What is written stays true: documents run, public names are described, and the house rules hold in every file.

A file of the package has at most 250 lines, and a function at most 40.
"""

import ast
import doctest
import importlib
import importlib.util
import os
import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import types
import venv
import zipfile
from collections.abc import Container, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
SOURCE = REPOSITORY / "src"
FILES = sorted((SOURCE / "vantage").rglob("*.py"))
PAGES = [REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md")] + sorted((REPOSITORY / "docs").rglob("*.md"))
OTHER_PAGES = [REPOSITORY / name for name in ("CHANGELOG.md", "SECURITY.md", "benchmarks/README.md")]
MOST_LINES_OF_A_FILE = 250
MOST_LINES_OF_A_FUNCTION = 40
RUNS_CODE_ON_LOADING = {"pickle", "dill", "cloudpickle", "shelve", "marshal"}


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def short(file: Path) -> str:
    return str(file.relative_to(REPOSITORY))


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def long_functions(text: str) -> list[str]:
    """Functions of a source text that are longer than the house allows."""
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    lengths = ((node.name, (node.end_lineno or node.lineno) - node.lineno + 1) for node in functions)
    return [f"{name} has {length} lines" for name, length in lengths if length > MOST_LINES_OF_A_FUNCTION]


def imports(module: str, text: str, modules: Container[str]) -> set[str]:
    """The modules that a source text imports, also inside functions and only for types."""
    needed: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            needed |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = (f"{node.module}.{each.name}" for each in node.names)
            needed |= {name if name in modules else node.module for name in inside}
    return {name for name in needed - {module} if name in modules}


def circle(texts: Mapping[str, str]) -> list[str]:
    """Modules that import each other in a circle, given the source text of each; none if there is no circle."""
    order = TopologicalSorter({module: imports(module, text, texts) for module, text in texts.items()})
    try:
        order.prepare()
    except CycleError as error:
        return error.args[1]
    return []


def dangers(text: str) -> list[str]:
    """What in a source text could run code that it was given as data."""
    lines = []
    tree = ast.parse(text)
    for node in ast.walk(tree):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom) and node.module == "joblib":  # it runs processes, and loads pickles
            modules += ["pickle" for alias in node.names if alias.name in ("load", "numpy_pickle")]
        lines += [f"import of {name}" for name in modules if name.split(".")[0] in RUNS_CODE_ON_LOADING]
    for name, call in calls(tree):
        settings = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        unsafe_load = name == "torch.load" and settings.get("weights_only") != "True"
        runs = name in ("eval", "exec", "joblib.load")
        if runs or unsafe_load or settings.get("allow_pickle", "False") != "False":
            lines.append(f"line {call.lineno}: {ast.unparse(call)}")
    return lines


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """The Python examples of a page with the line each starts on."""
    text = page.read_text(encoding="utf-8")
    matches = re.finditer(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return [(text[: match.start()].count("\n") + 2, match.group(1)) for match in matches]


def readme_test_command() -> str:
    lines = (REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()
    (command,) = (line for line in lines if line.startswith("python3 -m venv") and "pytest" in line)
    return command


@pytest.fixture(scope="module")
def build() -> types.ModuleType:
    """The script that makes the documentation."""
    spec = importlib.util.spec_from_file_location("build_documentation", REPOSITORY / "docs" / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_modules_import_and_their_examples_run() -> None:
    examples = 0
    for file in FILES:
        if file.stem != "__main__":  # which is the program
            module = importlib.import_module(module_name(file))
            if ">>>" in file.read_text(encoding="utf-8"):
                result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
                assert result.failed == 0, short(file)
                examples += result.attempted
    assert examples > 20


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


def test_the_readme_has_a_recipe_that_runs() -> None:
    assert python_blocks(REPOSITORY / "README.md")


@pytest.mark.parametrize("page", [*PAGES, *OTHER_PAGES], ids=short)
def test_links_between_files_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_continuous_integration_runs_the_command_of_the_readme() -> None:
    process = subprocess.run(
        ["bash", str(REPOSITORY / ".ci" / "run"), "--show-test-command"], capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == readme_test_command()


def test_files_and_functions_keep_to_the_budget() -> None:
    texts = {short(file): file.read_text(encoding="utf-8") for file in FILES}
    assert [file for file, text in texts.items() if len(text.splitlines()) > MOST_LINES_OF_A_FILE] == []
    assert [(file, long) for file, text in texts.items() if (long := long_functions(text))] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Nor inside functions or only for types, which import-linter does not check within a room."""
    assert circle({module_name(file): file.read_text(encoding="utf-8") for file in FILES}) == []


def test_the_check_for_circles_finds_one_inside_a_function() -> None:
    later = "def f():\n    from room import one\n"
    assert circle({"room": "", "room.one": "import room.two", "room.two": later}) != []
    assert circle({"room": "from room.one import f", "room.one": "import room.two", "room.two": ""}) == []


def test_nothing_runs_code_that_came_as_data() -> None:
    faults = {short(file): dangers(file.read_text(encoding="utf-8")) for file in FILES}
    assert {file: lines for file, lines in faults.items() if lines} == {}


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "import torch\ntorch.load('x')",
        "import torch\ntorch.load('x', weights_only=False)",
        "import numpy as np\nnp.load('x', allow_pickle=True)",
        "import joblib\njoblib.load('x')",
        "from joblib import load",
        "eval('1')",
        "exec('x = 1')",
    ],
)
def test_the_check_for_code_in_data_finds_it(text: str) -> None:
    assert len(dangers(text)) == 1


def test_the_check_for_code_in_data_lets_the_harmless_through() -> None:
    assert (
        dangers("import torch\ntorch.load('x', weights_only=True)\nnetwork.eval()\nnp.load('x', allow_pickle=False)")
        == []
    )


def test_the_check_of_lengths_counts_lines() -> None:
    body = "    pass\n"
    assert long_functions("def fits():\n" + body * (MOST_LINES_OF_A_FUNCTION - 1)) == []
    assert long_functions("def long():\n" + body * MOST_LINES_OF_A_FUNCTION) == ["long has 41 lines"]


def test_no_file_name_is_a_drawer_for_everything() -> None:
    drawers = {"utils", "util", "common", "helpers", "misc", "base"}
    assert [short(file) for file in FILES if drawers & set(file.relative_to(SOURCE).with_suffix("").parts)] == []


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


def test_hooks_and_the_workflow_run_what_ci_runs() -> None:
    script = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    commands = re.findall(r'^stage "(?:lint|format|layers|types)" (.+)$', script.replace("$environment/bin/", ""), re.M)
    hooks = re.findall(r"entry: (.+)", (REPOSITORY / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert sorted(hooks) == sorted(command.replace('"', "").partition(" --pythonpath")[0] for command in commands)
    assert len(hooks) == 4
    workflow = (REPOSITORY / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert "run: bash .ci/run" in workflow


def test_the_tests_named_in_documents_exist():
    references = {match for page in PAGES for match in re.findall(r"`([\w/]+\.py)::(\w+)`", page.read_text())}
    assert len(references) > 30
    for file, name in sorted(references):
        text = (REPOSITORY / "tests" / file).read_text()
        assert re.search(rf"^def {name}\(", text, re.MULTILINE), f"{file} has no {name}"


def test_each_identity_of_the_list_has_a_test_that_bears_its_number():
    text = (REPOSITORY / "docs" / "identities.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \|(.+)$", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 31))
    for number, row in rows:
        test_names = re.findall(rf"::test_0?{number}_\w+`", row)
        assert test_names or (int(number) > 24 and "not built yet" in row), f"identity {number} has no test"
