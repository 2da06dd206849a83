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
import torch
import vantage
from vantage.curation import find_duplicates, find_representatives
from vantage.evaluate import KNN, evaluate
from vantage.evaluate.compare.comparison import compare
from vantage.frozen.export.backbone import export
from vantage.studies.analyse import Similarity, analyse
from vantage.studies.benefit import measure_benefit
from vantage.studies.sweep import Field, Fields, Study

numpy.save("images.npy", numpy.zeros((9, 8, 8, 3), numpy.uint8))
source = vantage.open_source("images.npy", cache="cache")
encoder = vantage.random_encoder(vantage.simclr(32))
for call in sys.argv[1:]:
    try:
        print(eval(call))
    except vantage.UserError as error:
        print(error)
"""
PATH = "'images.npy' is a path, not a source of images: give vantage.open_source('images.npy')"
ENCODER = "the encoder is 'runs/first': give vantage.load(RUN)"
EVERY_FIELD = """
import importlib
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass, replace

from vantage.composition.names import STUDIES, is_part
from vantage.errors import UserError
from vantage.recipes import RECIPES, VARIANTS

parts = {}


def collect(value):
    if is_dataclass(value):
        parts.setdefault(type(value), value)
        value = tuple(getattr(value, field.name) for field in fields(value))
    for inside in value if isinstance(value, tuple) else ():
        collect(inside)


recipes = (*RECIPES, *VARIANTS)
collect(tuple(recipe(size) for recipe in recipes for size in (32, 224)))
for module in map(importlib.import_module, (*STUDIES, "vantage.studies.benefit")):
    for kind in (getattr(module, name) for name in module.__all__):
        if is_part(kind) and all(f.default is not MISSING or f.default_factory is not MISSING for f in fields(kind)):
            with suppress(UserError):  # some parts have defaults that do not suit each other
                collect(kind())
calls = [lambda r=recipe, v=value: r(v) for recipe in recipes for value in ("32", None, 32.0, [32])]
calls += [
    lambda p=part, n=field.name, v=value: replace(p, **{n: v})
    for part in parts.values() for field in fields(part) if field.init for value in ("a", None, 0.5, [], ("a",))
]
for call in calls:
    with suppress(UserError):
        call()
print(len(parts), len(calls))
"""
"""Recipes and parts from their own packages: `import vantage` alone does not make them ready."""

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
    "vantage.train(vantage.simclr(32), None)": "the folder is None: give a path, such as 'runs/first'",
    "vantage.load(None)": "the folder is None: give that of a run, such as 'runs/first'",
    "vantage.resume(5)": "the folder is 5: give that of a run, such as 'runs/first'",
    "evaluate(None, KNN(k=2), source)": "the run is None: give its folder, or vantage.load(RUN)",
    "evaluate(encoder, KNN, source)": "the protocol is the type KNN: give a value, such as vantage.evaluate.KNN()",
    "evaluate(encoder, 'knn', source)": "the protocol is 'knn': give a value, such as vantage.evaluate.KNN()",
    "vantage.Work(cache='cache')": "the cache is 'cache': give a pathlib.Path",
    "vantage.Work(progress=True)": "the progress is True: give vantage.progress.progress_for()",
    "vantage.Work(device=torch.device('cpu'))": "the device is of type device: give a name, such as 'cpu' or 'cuda:0'",
    "vantage.train(vantage.simclr(32), 'out', True)": "the progress is True: give vantage.progress.progress_for()",
    "vantage.resume('out', None, True)": "the progress is True: give vantage.progress.progress_for()",
    "vantage.resume('out', vantage.progress.QuietProgress())": "the run is of type QuietProgress: give a value",
    "vantage.plan(source, 1, changes={'bathc_size': 8})": "there is no setting 'bathc_size'; did you mean batch_size?",
    "vantage.plan(source, 1, changes={'data.hold_uot': 0.0})": "there is no setting 'data.hold_uot'; did you mean data",
    "vantage.plan(source, 1, changes={'branches.9.query': 0})": "there is no setting 'branches.9'",
    "vantage.plan(source, 1, changes={'seed.first': 0})": "there is no setting 'seed.first'; did you mean seed?",
    "vantage.plan(source, 'ten')": "a plan for ten minutes was asked for: give a finite number of minutes above 0",
    "vantage.plan(source, 1, 'simclr')": "the recipe is 'simclr': give a function, such as vantage.moco_v2",
    "vantage.data.SourceSubset(source, numpy.arange(9) > 4)": "a subset got numbers of type torch.bool: give the whole",
    "vantage.data.SourceSubset(source, [0.5])": "a subset got numbers of type torch.float32: give the whole numbers",
    "KNN(k='a')": "KNN.k: expected a whole number, found 'a'",
    "vantage.Queue(length='a')": "Queue.length: expected a whole number, found 'a'",
    "vantage.RandomResizedCrop(32, 0.2)": "RandomResizedCrop.scale: expected 2 numbers, found 0.2",
    "vantage.moco_v2(size='32')": "the size of the images is '32': give a whole number of pixels, such as 32",
    "vantage.moco_v2_views('32')": "the size of the views is '32': give a whole number of pixels, such as 32",
    "analyse('similarity', ['runs/first'], source)": "the analysis is 'similarity': give a value, such as",
    "analyse(Similarity, ['runs/first'], source)": "the analysis is the type Similarity: give a value, such as",
    "analyse(Similarity(), 'runs/first', source)": "the list of runs is 'runs/first': give folders, such as",
    "analyse(Similarity(), ['runs/first'], 'images.npy')": PATH,
    "analyse(lambda *_: None, ['runs/first'], source)": "function has no name, so its results cannot be stored",
    "compare('runs/first', [KNN(k=2)], source)": "the list of runs is 'runs/first': give folders, such as",
    "compare(['runs/first'], KNN(k=2), source)": "the list of protocols is of type KNN: give values, such as",
    "Study('temperature', vantage.simclr(32))": "the sweep is 'temperature': give a value, such as",
    "Study(Field('temperature', ('0.1',)), vantage.simclr)": "the run is the function simclr: give a value, such as",
    "Field('temperature', (0.1, 0.2)).points(vantage.simclr(32))": "the values of temperature are (0.1, 0.2): give a",
    "Field('temperature', '0.1').points(vantage.simclr(32))": "the values of temperature are '0.1': give a tuple of",
    "Fields(('epochs', 'size'), ((1, 2),)).points(vantage.simclr(32))": "the values of epochs, size are ((1, 2),)",
    "vantage.random_encoder('simclr')": "the run is 'simclr': give a value, such as vantage.moco_v2()",
    "vantage.embed(encoder, torch.zeros(4, 3, 8, 8))": "the source is of type Tensor: give vantage.open_source(PATH)",
    "vantage.open_source(['a.png'])": "the path is of type list: give that of a folder or a file of images",
    "vantage.split('images.npy')": PATH,
    "vantage.split(source, 2.0)": "a share of 2.0 was to be held out for testing: give one between 0 and 1",
    "vantage.moco_v2(32).fit(source)": "images is of type Arrays: give a number",
    "vantage.moco_v2(32).rescale('a')": "batch_size is 'a': give a number",
    "vantage.recipes.ring_moco(32).fit(images=1e4)": "images is 10000.0: give a whole number",
    "vantage.moco_v2(32).fit(1000, '64')": "batch_size is '64': give a number",
    "vantage.recipes.local_aggregation(32).rescale(epochs=10.0)": "epochs is 10.0: give a whole number",
    "find_duplicates(encoder, source, limit='a')": "the limit is 'a': give a positive number",
    "find_representatives(encoder, source, 3, 'cluster')": "there is no choice of representatives by 'cluster'",
    "export('runs/first', 'torchvison', 'x.safetensors')": "there is no export to 'torchvison'; did you mean torch",
    "vantage.functional.info_nce(numpy.zeros((4, 4)), numpy.zeros((4, 4)))": "z1 is of type ndarray: give a tensor",
    "vantage.allowing(None).__enter__()": "a module is allowed by its name, such as 'my_parts', but found None",
    "vantage.plan(source, 1, vantage.simclr(32))": "the recipe is of type Run: give a function",
}


def run_script(script: str, folder: Path, *words: str) -> list[str]:
    """The lines that a script prints."""
    here = Path(__file__).resolve().parent.parent / "src"
    environment = os.environ | {"PYTHONPATH": str(here), "VANTAGE_CACHE": str(folder / "cache")}
    command = [sys.executable, "-c", script, *words]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert run.returncode == 0 and not (folder / "out").exists(), run.stderr
    return run.stdout.splitlines()


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return run_script(SCRIPT, tmp_path_factory.mktemp("script"), *CALLS)


@pytest.mark.parametrize(("number", "call"), list(enumerate(CALLS)), ids=list(CALLS))
def test_a_wrong_argument_is_answered_in_words(number: int, call: str, answers: list[str]) -> None:
    assert answers[number].startswith(CALLS[call])


@pytest.mark.slow
def test_no_field_of_another_type_and_no_size_ends_in_another_error(tmp_path: Path) -> None:
    parts, calls = map(int, run_script(EVERY_FIELD, tmp_path)[0].split())
    assert parts > 60 and calls > 1_000
