import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from lab_entries import entry_of
from repository_files import REPOSITORY

from vantage.errors import UserError
from vantage.recipes import moco_v2
from vantage.studies.analyse.classes import AugmentationMap, AugmentationMaps
from vantage.studies.lab import Cell, Entry, WorkOrder, make_all, page, publish, smoke, write_map
from vantage.studies.lab.making.maps import map_file, read_map
from vantage.studies.lab.making.results import key_of_cell
from vantage.studies.lab.measures.class_structure import ClassSimilarity
from vantage.studies.lab.page.maps import draw_map, map_in_words
from vantage.studies.lab.two_cores import base, branch

BASE = base(moco_v2(32))
BY = (ClassSimilarity(16, 2),)
ENTRY = Entry(
    "an-entry",
    "A",
    "Figure 1",
    "a base and its branch",
    claims=(),
    cells=(Cell("base", BASE, BY), Cell("branch", branch(moco_v2(32), BASE), BY)),
    map_of=("base", "branch"),
)


@pytest.mark.slow
def test_a_map_is_laid_out_once_and_read_back(tmp_path: Path) -> None:
    order = WorkOrder((smoke(ENTRY),), (3,), tmp_path / "lab", (), True, "cpu")
    maker, (entry,), results = order.maker(), order.entries, tmp_path / "results"
    assert write_map(maker, entry, (3,), results) is None, "nothing is trained yet"
    assert make_all(order)
    assert write_map(maker, entry, (2, 3), results) == map_file(results, entry)
    assert write_map(maker, entry, (3,), results) is None, "the file has it"
    maps = read_map(results, entry)
    assert maps is not None and [one.name for one in maps.maps] == ["base", "branch"]
    record = json.loads(map_file(results, entry).read_text())
    assert record["seed"] == 3 and len(record["classes"]) == len(set(record["labels"])) and record["made_on"]
    for one in maps.maps:
        assert one.place.shape == (len(record["labels"]), 8, 2)
        assert float(one.place.min()) >= 0 and float(one.place.max()) <= 1
    assert not torch.equal(maps.maps[0].place, maps.maps[1].place)
    changed = replace(entry, cells=(replace(entry.cells[0], experiment=entry.cells[1].experiment), entry.cells[1]))
    assert read_map(results, changed) is None

    publish((entry,), results, tmp_path / "page.md")
    picture = tmp_path / "images" / "claims" / "an-entry-map.svg"
    assert f"](images/claims/{picture.name})" in page((entry,), results)
    assert map_in_words(maps) in picture.read_text()
    publish((changed,), results, tmp_path / "page.md")
    assert not picture.exists() and picture.name not in (tmp_path / "page.md").read_text()


def test_published_maps_name_their_classes_in_words() -> None:
    """Those of Tiny ImageNet's folders are numbers, such as n01443537; its list of classes has the words."""
    maps = [json.loads(file.read_text()) for file in (REPOSITORY / "benchmarks/results/claims/maps").glob("*.json")]
    assert maps and not [name for one in maps for name in one["classes"] if any(map(str.isdigit, name))]


def test_a_map_is_drawn_with_its_words() -> None:
    place = torch.rand(4, 3, 2)
    maps = AugmentationMaps(
        tuple(AugmentationMap(name, torch.tensor([0, 0, 7, 7]), place, {}) for name in ("intra", "both")),
        ("crane", "ox"),
    )
    words = "3 augmentations of 4 test images of 2 classes, through the networks of intra, both with one seed"
    text = draw_map(maps).decode()
    assert map_in_words(maps).startswith(words) and words in text
    assert all(f">{name}</text>" in text for name in ("intra", "both", "crane", "ox"))


@pytest.mark.parametrize(
    "change",
    [
        {"labels": [0, 1]},
        {"labels": "0"},
        {"places": {"intra": ["0.1 0.2 0.3"]}},
        {"places": {"intra": ["0.1 nan"]}},
        {"places": {"intra": ["0.1 word"]}},
        {"places": {}},
        {"places": 3},
        {"classes": None},
    ],
)
def test_a_file_that_holds_no_map_is_refused(change: dict[str, object], tmp_path: Path) -> None:
    entry = entry_of("interclr-figure-7")
    path = map_file(tmp_path, entry)
    assert read_map(tmp_path, entry) is None, "there is no file"
    path.parent.mkdir()
    made = {name: key_of_cell(entry, name) for name in entry.map_of}
    good = {"made": made, "labels": [4], "classes": ["crane"], "places": {"intra": ["0.1 0.2 0.3 0.4"]}}
    path.write_text(json.dumps(good))
    maps = read_map(tmp_path, entry)
    assert maps is not None and maps.maps[0].place.tolist() == [[pytest.approx([0.1, 0.2]), pytest.approx([0.3, 0.4])]]
    path.write_text(json.dumps(good | change))
    with pytest.raises(UserError, match="holds no map of the lab"):
        read_map(tmp_path, entry)
    path.write_text("[")
    with pytest.raises(UserError, match="holds no map of the lab"):
        read_map(tmp_path, entry)
