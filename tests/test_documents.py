"""What is written stays true: documents run, public names are described, and the house rules hold in every file.

A file of the package has at most 250 lines, and a function at most 40.
"""

import ast
import doctest
import importlib
import importlib.util
import re
import subprocess
from collections.abc import Container, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from repository_files import FILES, OTHER_PAGES, PAGES, REPOSITORY, SOURCE, module_name, short

MOST_LINES_OF_A_FILE = 250
MOST_LINES_OF_A_FUNCTION = 40
RUNS_CODE_ON_LOADING = {"pickle", "dill", "cloudpickle", "shelve", "marshal"}


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


def test_hooks_and_the_workflow_run_what_ci_runs() -> None:
    script = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    commands = re.findall(r'^stage "(?:lint|format|layers|types)" (.+)$', script.replace("$environment/bin/", ""), re.M)
    hooks = re.findall(r"entry: (.+)", (REPOSITORY / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert sorted(hooks) == sorted(command.replace('"', "").partition(" --pythonpath")[0] for command in commands)
    assert len(hooks) == 4
    workflow = (REPOSITORY / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert "run: bash .ci/run" in workflow and "run: bash .ci/lowest" in workflow


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
