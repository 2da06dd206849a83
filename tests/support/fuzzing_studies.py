"""The files that studies read back: a lab's cells, marks and numbers, a comparison with pretraining, and the rows of a
paper's table."""

import itertools
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import mutations
import numpy as np
from fuzz_targets import Target, of_file
from tiny import ALLOW, cpu_work, images, saved_run, tiny_run

from vantage.composition.codec import allowing
from vantage.errors import UserError
from vantage.evaluate import KNN
from vantage.recipes import moco_v2
from vantage.storage.provenance import hardware, versions
from vantage.storage.results import ResultsFile
from vantage.studies.benefit import BenefitPlan, Budget, comparison, sentences
from vantage.studies.benefit.result import ClassifierResult
from vantage.studies.benefit.verdict import markdown
from vantage.studies.lab import Cell, Claim, Entry, LabFolder, Untrained, WorkOrder, judge_claims, numbers_in, smoke
from vantage.studies.lab.judging.predicates import Beats
from vantage.studies.lab.making.collecting import collect, write_collected
from vantage.studies.lab.making.compositions import arm_chain
from vantage.studies.lab.making.results import complete_seeds, outdated, read_results
from vantage.studies.lab.measures.vectors import ProtocolAccuracy
from vantage.studies.lab.page.page import page
from vantage.studies.lab.two_cores import base
from vantage.studies.moving_mnist import InfoMinTable4, RowMeasures
from vantage.studies.moving_mnist.rows import INFORMATION, stored_measures
from vantage.studies.moving_mnist.table_4_report import table_4_report

__all__ = ["of_studies"]

_BASE, _BY = base(moco_v2(32)), (ProtocolAccuracy((KNN(k=5),)),)
_CLAIM = Claim("1", "the base is above raw pixels", "§1", (Beats("base", "pixels"),), (), "knn")
_CELLS = (Cell("base", _BASE, _BY), Cell("pixels", Untrained(_BASE, pixels=True), _BY))
ENTRY = smoke(Entry("an-entry", "A", "Table 1", "a base and its floor", claims=(_CLAIM,), cells=_CELLS))
SEEDS = (0, 1)


def of_studies(folder: Path) -> dict[str, Target]:
    """The targets; writes the files that they need to `folder`."""
    return _a_lab(folder) | _a_comparison(folder) | _a_table(folder)


def _a_lab(folder: Path) -> dict[str, Target]:
    """A lab as after two seeds; nothing is trained, since a cell's numbers say all that is read of it."""
    maker = WorkOrder((ENTRY,), SEEDS, folder / "lab", (), True, "cpu").maker()
    lab, computer, pieces = maker.lab, {"hardware": hardware(), "versions": versions()}, [*maker.pieces(ENTRY, SEEDS)]
    dependencies = {(piece.cell.name, piece.seed): maker.dependencies(piece) for piece in pieces}
    run_keys = {seed: maker.run_key(ENTRY.cell("base").experiment, seed) for seed in SEEDS}  # pyright: ignore
    maker.dependencies = lambda piece: dependencies[piece.cell.name, piece.seed]  # computed once
    maker.run_key = lambda arm, seed: run_keys[seed]
    for number, piece in enumerate(pieces):
        keys = [maker.run_key(arm, piece.seed) for arm in arm_chain(piece.cell.experiment)]
        for key in keys:
            lab.finish(key, {"key": key}, 12.5)
        lab.keep(maker.dependencies(piece), {"knn": 50.0 + number}, 3.5, computer, dict.fromkeys(keys, 12.5))
    (numbers,) = write_collected(maker, (ENTRY,), SEEDS, folder / "numbers")

    def collect_cells(file: Path, cache: Path) -> None:
        """What the lab does with its own cells, and another lab with cells that it takes in."""
        lab.check()
        shutil.rmtree(folder / "mine", ignore_errors=True)
        LabFolder(folder / "mine").take_in(lab.folder)
        collect(maker, ENTRY, SEEDS)

    def seconds(file: Path, cache: Path) -> None:
        assert lab.is_trained(file.parent.name)
        lab.seconds(file.parent.name)

    def read_numbers(file: Path, cache: Path) -> None:
        judge_claims(ENTRY, numbers_in(file.parent, ENTRY))
        outdated(file.parent, ENTRY)
        complete_seeds(file.parent, ENTRY)
        page((ENTRY,), file.parent)
        collect(maker, ENTRY, SEEDS[:1], earlier=read_results(file))

    cell = next(file for file in sorted((lab.folder / "cells").iterdir()) if b"trained" in file.read_bytes())
    done = next(lab.folder.glob("runs/*/done.json"))
    return {
        kind: of_file(file, folder, mutations.damage_tree, read)
        for kind, file, read in (
            ("lab's cell", cell, collect_cells),
            ("lab's mark", done, seconds),
            ("lab's numbers", numbers, read_numbers),
        )
    }


def _a_comparison(folder: Path) -> dict[str, Target]:
    """A comparison with pretraining whose classifiers are all kept. None is trained: what is missing is put back."""
    saved_run(folder / "compared" / "run", tiny_run())
    out, plan = folder / "compared" / "out", BenefitPlan((0.25, 1.0), (0, 1), Budget(1, 16, (0.05,), (1e-2,)))
    with allowing(*ALLOW):
        ours = comparison._Comparison(
            *(folder / "compared" / "run", images(60, 0), None, out, plan, (), None, cpu_work(folder / "compared"))
        )
    chance = np.random.default_rng(0)

    def made(job: Any) -> ClassifierResult:
        right = chance.integers(0, 256, -(-len(ours.data.test) // 8), np.uint8).tobytes().hex()
        return ClassifierResult(job.way.name, job.share, job.images, job.seed, right, {"learning_rate": 0.05}, 1.5)

    good = {comparison._key(job): made(job) for job in ours.jobs}

    def put_back(jobs: list[Any], budget: Budget, results: "ResultsFile[ClassifierResult]") -> None:
        for job in jobs:
            results.add(comparison._key(job), good[comparison._key(job)])

    ours._make, ours._plan_budget = put_back, lambda jobs, budget, seconds: budget or plan.budget  # pyright: ignore
    out.mkdir()
    ours.result(None)

    def read(file: Path, cache: Path) -> None:
        ours.previous = comparison.read_json(file)
        with suppress(UserError):
            ours._previous_budget()
        result = ours.result(None)
        sentences(result)
        markdown(result)
        result.csv()

    return {"benefit's results": of_file(out / "benefit.json", folder, mutations.damage_tree, read)}


def _a_table(folder: Path) -> dict[str, Target]:
    identity, table = {"entry": "infomin-table-4", "settings": {}, "images": {"digits": "a" * 32}}, InfoMinTable4()
    names = ("digit", "background", "location", INFORMATION)
    rows = stored_measures(folder / "table", identity)
    for row in table.rows:
        rows.add(
            f"{row.name}, seed 0", RowMeasures(row.name, 0, dict(zip(names, itertools.count(3.5), strict=False)), 1.5)
        )

    def read(file: Path, cache: Path) -> None:
        again = stored_measures(file.parent, identity)
        measures = {row.name: [again[key].measures] for row in table.rows if (key := f"{row.name}, seed 0") in again}
        report = table_4_report(measures, ())
        report.markdown()
        report.csv()

    return {"table's rows": of_file(folder / "table" / "rows.json", folder, mutations.damage_tree, read)}
