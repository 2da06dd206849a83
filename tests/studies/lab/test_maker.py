import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vantage.encoders import Convolutions
from vantage.errors import UserError
from vantage.evaluate import KNN
from vantage.recipes import moco_v2
from vantage.storage.cache import digest
from vantage.studies.lab import Cell, Claim, Entry, Untrained, WorkOrder, collect, make_all, missing_pieces, smoke
from vantage.studies.lab.experiments.toys import NegativeSpread
from vantage.studies.lab.judging.predicates import Beats
from vantage.studies.lab.making.collecting import write_collected
from vantage.studies.lab.making.compositions import composition
from vantage.studies.lab.making.cost import estimate_workload, forward_passes
from vantage.studies.lab.making.maker import Maker, Piece
from vantage.studies.lab.making.results import complete_seeds, numbers_in, read_results
from vantage.studies.lab.making.store import LabFolder
from vantage.studies.lab.measures.vectors import ProtocolAccuracy
from vantage.studies.lab.two_cores import base, branch

pytestmark = pytest.mark.slow

BASE = base(moco_v2(32))
NEAREST = (ProtocolAccuracy((KNN(k=5),)),)
ENTRY = smoke(
    Entry(
        "an-entry",
        "A",
        "Table 1",
        "a base and its branch",
        claims=(Claim("1", "the branch is above its base", "§1", (Beats("branch", "base"),), (), "knn"),),
        cells=(
            Cell("base", BASE, NEAREST),
            Cell("branch", branch(moco_v2(32), BASE), NEAREST),
            Cell("random", Untrained(BASE), NEAREST),
            Cell("pixels", Untrained(BASE, pixels=True), NEAREST),
            Cell("toy", NegativeSpread((0.0,), (4,))),
        ),
    )
)


@pytest.fixture(scope="module")
def order(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkOrder]:
    """The entry, made with one seed."""
    order = WorkOrder((ENTRY,), (0,), tmp_path_factory.mktemp("lab"), (), True, "cpu")
    assert make_all(order)
    yield order


def test_what_is_done_is_not_done_again(order: WorkOrder, monkeypatch: pytest.MonkeyPatch) -> None:
    maker = order.maker()
    assert missing_pieces(maker, order.entries, (0,)) == []
    monkeypatch.setattr("vantage.training.loop.train", None)
    assert make_all(order)
    assert {p.seed for p in missing_pieces(maker, order.entries, (0, 1))} == {1}


def test_what_another_process_has_made_is_not_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process makes all other cells while this one makes its first, and reading results takes a while."""
    toys = tuple(Cell(f"toy {number}", NegativeSpread((0.0,), (number,))) for number in (4, 8, 12))
    order = WorkOrder((replace(ENTRY, cells=toys, claims=()),), (0,), tmp_path, (), True, "cpu")
    make, read, lines = Maker.make, LabFolder.result, list[str]()

    def make_all_at_once(maker: Maker, piece: Piece) -> bool | None:
        other = order.maker()
        return all([make(other, one) for one in other.pieces(order.entries[0], (0,))]) and make(maker, piece)

    def read_slowly(lab: LabFolder, about: Any) -> Any:
        time.sleep(0.02)
        return read(lab, about)

    monkeypatch.setattr(Maker, "make", make_all_at_once)
    monkeypatch.setattr(LabFolder, "result", read_slowly)
    assert make_all(order, report=lines.append)
    assert [line.partition(",")[0] for line in lines] == ["toy 4"]


def test_what_was_stopped_goes_on_to_the_same_numbers(order: WorkOrder, tmp_path: Path) -> None:
    other = replace(order, lab=tmp_path / "copy")
    shutil.copytree(order.lab, other.lab)
    maker = other.maker()
    piece = next(piece for piece in maker.pieces(ENTRY, (0,)) if piece.cell.name == "branch")
    before = maker.numbers(piece)
    folder = maker.lab.run(maker.run_key(piece.cell.experiment, 0))  # type: ignore
    shutil.rmtree(sorted((folder / "checkpoint").glob("step-*"))[-1])  # as if it had been stopped at the step before
    (folder / "done.json").unlink()
    (other.lab / "cells" / f"{digest(maker.dependencies(piece))}.json").unlink()
    assert missing_pieces(maker, other.entries, (0,)) == [piece] and make_all(other)
    assert maker.numbers(piece) == before


def test_a_branch_begins_at_its_base(order: WorkOrder) -> None:
    maker = order.maker()
    arm = ENTRY.cell("branch").experiment
    record = json.loads((maker.lab.run(maker.run_key(arm, 0)) / "provenance.json").read_text())[0]  # type: ignore
    assert maker.run_key(arm.start, 0) in record["init"]["from"]  # type: ignore
    assert {"networks.query.backbone", "optimizer", "memory of branch 0"} & set(record["init"]["parts"])


def test_the_key_follows_everything_that_decides(order: WorkOrder) -> None:
    maker = order.maker()
    pieces = list(maker.pieces(ENTRY, (0, 1)))
    keys = [digest(maker.dependencies(piece)) for piece in pieces]
    same = len(set(keys)) == len(keys) - 1  # raw pixels are the same for every seed
    assert same
    arm = BASE
    other = replace(arm, run=replace(arm.run, batch_size=32))
    assert composition(arm) != composition(other)
    assert composition(replace(arm, run=replace(arm.run, seed=3))) == composition(arm)


def test_only_the_cells_that_are_asked_for_are_missing(order: WorkOrder) -> None:
    maker = order.maker()
    todo = missing_pieces(maker, order.entries, (0, 1), cells=("branch",))
    assert todo and {(piece.cell.name, piece.seed) for piece in todo} == {("branch", 1)}


def test_what_is_at_its_default_does_not_enter_the_key() -> None:
    content = composition(BASE)["run"]
    assert "accumulate" not in content and content["epochs"] == 4 and content["learning_rate"] == {
        "part": "StepDecay", "base": 0.03, "milestones": []
    }  # fmt: skip


def test_a_part_of_another_version_is_another_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    before = composition(BASE)
    monkeypatch.setattr(Convolutions, "version", 2, raising=False)
    assert composition(BASE) != before


def test_numbers_are_collected_and_read_back(order: WorkOrder, tmp_path: Path) -> None:
    maker = order.maker()
    (path,) = write_collected(maker, order.entries, (0, 1), tmp_path)
    assert write_collected(maker, order.entries, (0, 1), tmp_path) == []
    numbers = numbers_in(tmp_path, ENTRY)
    assert set(numbers) == {cell.name for cell in ENTRY.cells} and set(numbers["base"]["knn"]) == {0}
    changed_entry = replace(
        ENTRY, cells=(replace(ENTRY.cells[0], experiment=replace(BASE, images="cifar-10")), *ENTRY.cells[1:])
    )
    assert "base" not in numbers_in(tmp_path, changed_entry)  # made otherwise by now
    assert collect(maker, ENTRY, (7,)) is None or "base" not in collect(maker, ENTRY, (7,))["cells"]  # type: ignore
    path.write_text("{")
    with pytest.raises(UserError, match="no results of the lab"):
        numbers_in(tmp_path, ENTRY)


def test_seeds_of_two_labs_share_a_file_of_numbers(order: WorkOrder, tmp_path: Path) -> None:
    maker = order.maker()
    write_collected(maker, order.entries, (0,), tmp_path)
    before = read_results(tmp_path / "an-entry.json")
    other = replace(order, lab=tmp_path / "lab").maker()
    assert {piece.seed for piece in missing_pieces(other, order.entries, (0, 1), tmp_path)} == {1}
    for seed in (0, 1):
        assert other.make(next(piece for piece in other.pieces(ENTRY, (seed,)) if piece.cell.name == "toy"))
    (path,) = write_collected(other, order.entries, (0, 1), tmp_path)
    after = read_results(path)
    assert complete_seeds(tmp_path, ENTRY) == {0}
    assert numbers_in(tmp_path, ENTRY)["base"]["knn"] == {0: before["cells"]["base"]["measures"]["knn"]["0"]}
    assert before["seconds"] <= after["seconds"] < before["seconds"] + 5 and len(after["made_on"]) == 1


def test_the_cells_of_a_seed_come_from_one_lab(order: WorkOrder, tmp_path: Path) -> None:
    write_collected(order.maker(), order.entries, (0,), tmp_path)
    path = tmp_path / "an-entry.json"
    ours = path.read_text()
    elsewhere = json.loads(ours)
    for cell in elsewhere["cells"].values():
        for row in cell["measures"].values():
            row["0"] += 1.0
    fewer = {**elsewhere, "cells": {"base": elsewhere["cells"]["base"]}}
    path.write_text(json.dumps(elsewhere))
    assert write_collected(replace(order, lab=tmp_path / "lab").maker(), order.entries, (0,), tmp_path) == []
    for file in (elsewhere, fewer):  # this lab has all cells of the seed
        path.write_text(json.dumps(file))
        assert write_collected(order.maker(), order.entries, (0,), tmp_path) == [path]
        assert json.loads(path.read_text())["cells"] == json.loads(ours)["cells"]


def test_baselines_that_a_file_lacks_may_come_from_another_lab(order: WorkOrder, tmp_path: Path) -> None:
    """They are not trained. Nothing else of a lab with fewer networks enters the file, however many baselines it has,
    and a lab with more networks leaves the file the baselines that it lacks."""
    (path,) = write_collected(order.maker(), order.entries, (0,), tmp_path)
    whole = read_results(path)
    name = next(cell.name for cell in ENTRY.cells if isinstance(cell.experiment, Untrained))
    other = replace(order, lab=tmp_path / "lab").maker()
    made = [piece for piece in other.pieces(ENTRY, (0,)) if piece.cell.name in (name, "toy")]
    assert all(map(other.make, made))
    file = {**whole, "cells": {**whole["cells"]}}
    del file["cells"][name], file["cells"]["toy"]
    path.write_text(json.dumps(file))
    assert write_collected(other, order.entries, (0,), tmp_path) == [path]
    assert read_results(path)["cells"] == {**file["cells"], name: whole["cells"][name]}
    path.write_text(json.dumps({**whole, "cells": {one: whole["cells"][one] for one in ("base", "pixels")}}))
    assert write_collected(other, order.entries, (0,), tmp_path) == [path]
    assert set(read_results(path)["cells"]) == {"toy", name, "pixels"}


def test_a_cell_that_is_added_later_adds_its_own_seconds(
    order: WorkOrder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collecting = "vantage.studies.lab.making.collecting"
    monkeypatch.setattr(f"{collecting}._seconds", lambda maker, cell, seed, result: {digest(result["about"]): 100.0})
    for cells, seconds in ((ENTRY.cells[1:], 400), (ENTRY.cells, 500)):
        (path,) = write_collected(order.maker(), (replace(ENTRY, claims=(), cells=cells),), (0,), tmp_path)
        assert read_results(path)["seconds"] == seconds


def test_a_cell_is_collected_when_all_its_measures_are_done(order: WorkOrder, tmp_path: Path) -> None:
    halves = (*NEAREST, ProtocolAccuracy((KNN(k=3),)))
    entry = replace(ENTRY, cells=(replace(ENTRY.cells[0], measures=halves), *ENTRY.cells[1:]))
    maker = order.maker()
    assert "base" not in (collect(maker, entry, (0,)) or {})["cells"]
    assert {(p.cell.name, p.seed) for p in missing_pieces(maker, (entry,), (0,), tmp_path)} == {("base", 0)}


def test_costs_are_printed_before(order: WorkOrder) -> None:
    maker = order.maker()
    todo = missing_pieces(maker, order.entries, (1,))
    cost = estimate_workload(maker, todo, lambda arm: 1_000.0)
    assert (
        cost.runs == 2 and cost.views == 2 * 80 and cost.seconds > 0 and "2 training runs of 160 images" in cost.words()
    )
    from vantage.recipes import instance_discrimination, jcl

    assert (forward_passes(instance_discrimination(32)), forward_passes(moco_v2(32)), forward_passes(jcl(32))) == (
        3.0,
        4.0,
        8.0,
    )
