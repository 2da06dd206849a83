"""Damage to what studies and long trainings keep that once ended in a traceback."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from fuzz_targets import Target
from fuzzing_kept import of_kept
from fuzzing_studies import of_studies
from safetensors.torch import save_file
from torch import nn

from vantage.errors import UserError
from vantage.storage.cache import digest
from vantage.storage.state import StateFile, restore, tensors_of
from vantage.studies.lab import LabFolder

Change = Callable[[Any], Any]


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Target]]]:
    folder = tmp_path_factory.mktemp("kept")
    yield folder, of_studies(folder) | of_kept(folder)


@pytest.fixture
def read(every: tuple[Path, dict[str, Target]]) -> Callable[[str, Change], None]:
    """Reads a target whose JSON is changed."""
    folder, targets = every

    def read_changed(kind: str, change: Change) -> None:
        target, file = targets[kind], folder / targets[kind].file
        tree = json.loads(target.content)
        change(tree)
        file.write_text(json.dumps(tree))
        try:
            target.read(file, folder / "cache")
        finally:
            file.write_bytes(target.content)

    return read_changed


@pytest.mark.parametrize(
    "change",
    [
        {"right": 5}, {"right": 1.5}, {"right": []}, {"right": "xy"}, {"right": ""}, {"seconds": "long"},
        {"labels": "a"}, {"labels": 999}, {"seed": 9}, {"way": "other"}, {"share": None}, {"chosen": []},
    ],
    ids=str,
)  # fmt: skip
def test_a_classifier_that_is_not_what_was_kept(change: dict[str, Any], read: Callable[[str, Change], None]) -> None:
    with pytest.raises(UserError, match="benefit.json is damaged.*name another folder"):
        read("benefit's results", lambda tree: tree["rows"][3].update(change))


@pytest.mark.parametrize("epochs", [2.5, "1", None, [], 0, -1, float("inf")])
def test_a_comparison_whose_epochs_are_no_number_of_them(epochs: Any, read: Callable[[str, Change], None]) -> None:
    with pytest.raises(UserError, match="budget.epochs is .* there, 1 was asked for"):
        read("benefit's results", lambda tree: tree["budget"].update(epochs=epochs))


@pytest.mark.parametrize("measures", [{"digit": float("inf")}, {"digit": 10**400}, {"digit": 1.0}, [], {"digit": "x"}])
def test_rows_of_a_table_without_their_numbers(measures: Any, read: Callable[[str, Change], None]) -> None:
    with pytest.raises(UserError, match="name another folder"):
        read("table's rows", lambda tree: tree["rows"][0].update(measures=measures))


def test_a_row_with_an_endless_seed(read: Callable[[str, Change], None]) -> None:
    with pytest.raises(UserError, match="is damaged"):
        read("table's rows", lambda tree: tree["rows"][0].update(seed=float("inf")))


@pytest.mark.parametrize(
    "change",
    [{"by": []}, {"by": 5}, {"measures": {"knn": {"9" * 5000: 1.0}}}, {"measures": {"knn": {"0": 10**400}}}],
    ids=["by a list", "by a number", "a seed too long", "a number too large"],
)
def test_numbers_of_a_lab_that_are_none(change: dict[str, Any], read: Callable[[str, Change], None]) -> None:
    with pytest.raises(UserError, match="holds no results of the lab"):
        read("lab's numbers", lambda tree: tree["cells"]["base"].update(change))


def test_numbers_of_a_lab_that_no_float_adds_up(read: Callable[[str, Change], None]) -> None:
    with pytest.raises(UserError, match="holds no results of the lab"):
        read("lab's numbers", lambda tree: tree["cells"]["base"]["measures"].update(knn={"0": 1e308, "1": 1e308}))


def test_a_cell_that_was_made_on_nothing_is_collected(read: Callable[[str, Change], None]) -> None:
    read("lab's cell", lambda tree: tree.update(made_on={}))


def test_a_cell_about_something_endless_is_not_taken_in(tmp_path: Path) -> None:
    theirs = LabFolder(tmp_path / "theirs")
    theirs.keep({"seed": 0}, {"knn": 1.0}, 1.0, {})
    (file,) = (theirs.folder / "cells").iterdir()
    assert file.stem == digest({"seed": 0})
    file.write_text(file.read_text().replace('"seed": 0', '"seed": Infinity'))
    assert LabFolder(tmp_path / "mine").take_in(theirs.folder) == (0, 1)


def test_an_optimizer_that_lacks_a_slot(read: Callable[[str, Change], None], every: tuple[Path, Any]) -> None:
    """Adam would stop at its next step."""
    folder, targets = every
    target = targets["learning's tensors"]
    content = target.content.replace(b'1.exp_avg"', b'1.exp_xyz"', 1)
    assert content != target.content
    (folder / target.file).write_bytes(content)
    with pytest.raises(UserError, match="lacks what the others have"):
        target.read(folder / target.file, folder / "cache")


@pytest.mark.parametrize("facts", [{}, {"epochs": "2"}, {"epochs": -1}, {"epochs": 2.0}, {"epochs": True}])
def test_a_state_without_its_facts_is_none(facts: Any, tmp_path: Path) -> None:
    state = StateFile(tmp_path / "state.safetensors")
    state.write({"a": torch.zeros(2)}, facts)
    assert state.read("epochs") is None
    save_file({"a": torch.zeros(2)}, state.file, {"facts": json.dumps([facts])})
    assert state.read("epochs") is None
    state.write({"a": torch.zeros(2)}, {"epochs": 2, "losses": [1.5, "low"]})
    assert state.read("epochs") is not None and state.read("losses") is None


@pytest.mark.parametrize(("old", "new"), [("1.exp_avg", "1.other"), ("1.exp_avg", "exp_avg"), ("1.step", "7.step")])
def test_a_state_with_other_slots_changes_nothing(old: str, new: str) -> None:
    network = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(network.parameters(), 0.1)
    network(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    tensors = tensors_of({"network": network}, optimizer)
    wrong = {name.replace(f"optimizer.{old}", f"optimizer.{new}", 1): value for name, value in tensors.items()}
    assert wrong.keys() != tensors.keys() and not restore({"network": network}, optimizer, wrong)
    assert restore({"network": network}, optimizer, tensors)
    for step in (torch.zeros(2, 3), torch.tensor(-1e30), torch.tensor(-1.0), torch.tensor(float("nan"))):
        assert not restore({"network": network}, optimizer, {**tensors, "optimizer.0.step": step})
    optimizer.step()
