"""What is given to a function of `vantage` by mistake is answered in words, not by an error deep in the library.

In a process of its own: in tests, beartype checks all arguments first, which it does not do for users.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from pathlib import Path

import numpy
import vantage
from vantage.curation import find_duplicates
from vantage.evaluate import KNN, evaluate
from vantage.studies.benefit import measure_benefit

numpy.save("images.npy", numpy.zeros((9, 8, 8, 3), numpy.uint8))
source = vantage.open_source("images.npy")
for call in sys.argv[1:]:
    try:
        print(eval(call))
    except vantage.UserError as error:
        print(error)
"""
PATH = "'images.npy' is a path, not a source of images: give vantage.open_source('images.npy')"
ENCODER = "the encoder is 'runs/first': give vantage.load(RUN)"
CALLS = {
    "vantage.embed('runs/first', source)": ENCODER,
    "vantage.embed(vantage.random_encoder(vantage.simclr(32)), Path('images.npy'))": PATH,
    "find_duplicates('runs/first', source)": ENCODER,
    "evaluate('runs/first', KNN(k=2), 'images.npy')": PATH,
    "evaluate('runs/first', KNN(k=2), source, 'images.npy')": PATH,
    "measure_benefit('runs/first', 'images.npy', None, 'out')": PATH,
    "vantage.train(vantage.simclr(32), 'out', source='images.npy')": PATH,
    "vantage.train('simclr', 'out')": "the run is 'simclr': give a value, such as vantage.moco_v2().fit(images=10_000)",
    "vantage.train(vantage.simclr, 'out')": "the run is the function simclr: give a value, such as vantage.moco_v2()",
    "vantage.plan(source, 'ten')": "a plan for ten minutes was asked for: give a finite number of minutes above 0",
    "vantage.plan(source, 1, 'simclr')": "the recipe is 'simclr': give a function, such as vantage.moco_v2",
    "vantage.plan(source, 1, vantage.simclr(32))": "the recipe is of type Run: give a function",
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("script")
    here = Path(__file__).resolve().parent.parent / "src"
    environment = os.environ | {"PYTHONPATH": str(here), "VANTAGE_CACHE": str(folder / "cache")}
    command = [sys.executable, "-c", SCRIPT, *CALLS]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert run.returncode == 0 and not (folder / "out").exists(), run.stderr
    return run.stdout.splitlines()


@pytest.mark.parametrize(("number", "call"), list(enumerate(CALLS)), ids=list(CALLS))
def test_a_wrong_argument_is_answered_in_words(number: int, call: str, answers: list[str]) -> None:
    assert answers[number].startswith(CALLS[call])
