"""Waiting threads sleep soon, in a process of the command line that has not loaded torch yet."""

import os
import subprocess
import sys

import pytest

FIRST = (
    "import os, sys; from vantage.machine.openmp import sleep_soon;"
    " print(sleep_soon(), os.environ.get('GOMP_SPINCOUNT'))"
)
AFTER_TORCH = f"import torch; {FIRST}"
VERB = """
import os, sys
from vantage.cli import main
assert "torch" not in sys.modules
main(["recipes", "--quiet"])
print(os.environ.get("GOMP_SPINCOUNT"))
"""


def last_line(program: str, **variables: str) -> str:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("GOMP_", "OMP_WAIT", "KMP_"))}
    return subprocess.run(
        [sys.executable, "-c", program], env=own | variables, capture_output=True, text=True, check=True
    ).stdout.splitlines()[-1]


@pytest.mark.slow
def test_it_takes_effect_before_torch_is_loaded_and_not_after() -> None:
    assert last_line(FIRST) == "True 5000"
    assert last_line(AFTER_TORCH) == "False None"


@pytest.mark.parametrize("name", ["GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME"])
def test_the_users_own_setting_stands(name: str) -> None:
    assert last_line(FIRST, **{name: "7"}).split() == ["False", "7" if name == "GOMP_SPINCOUNT" else "None"]


@pytest.mark.slow
def test_every_verb_sets_it() -> None:
    assert last_line(VERB) == "5000"
