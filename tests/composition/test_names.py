"""Public names: each means one thing, and what was ever written under a name can still be read.

`fixtures/parts.json` lists every public part with its fields. Parts and fields that are new are added by
`python tests/composition/test_names.py`, which never removes any: whatever is renamed needs an entry in
`vantage.composition.names`.
"""

import importlib
import json
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

import vantage
from vantage.composition.codec import decode, encode
from vantage.composition.names import RENAMED_FIELDS, STUDIES, is_part, name_of, part_named, public_name
from vantage.errors import UserError

FILE = Path(__file__).resolve().parent.parent / "fixtures" / "parts.json"
RECORDED: dict[str, list[str]] = json.loads(FILE.read_text()) if FILE.exists() else {}
ROOMS = (*(f"vantage.{room}" for room in (*vantage.ROOMS, *vantage.LATE.values())), *STUDIES)


def public_parts() -> dict[str, list[str]]:
    """Every public part with the fields that settings hold."""
    modules = map(importlib.import_module, ROOMS)
    kinds = {kind for module in modules for name in module.__all__ if is_part(kind := getattr(module, name))}
    return {kind.__name__: [f.name for f in fields(kind) if f.init] for kind in kinds}


def test_a_public_name_means_one_thing() -> None:
    meanings: dict[str, set[int]] = {}
    for module in map(importlib.import_module, ROOMS):
        for name in module.__all__:
            meanings.setdefault(name, set()).add(id(getattr(module, name)))
    assert [name for name, objects in meanings.items() if len(objects) > 1] == []


def test_a_star_stands_for_the_public_names() -> None:
    names: dict[str, object] = {}
    exec("from vantage import *", names)
    public = {name for name in dir(vantage) if name[0] != "_" and not isinstance(getattr(vantage, name), ModuleType)}
    assert public == names.keys() - {"__builtins__"} == set(vantage.__all__) >= {"Queue", "moco_v2", "train"}


@pytest.mark.parametrize("room", vantage.LATE.values())
def test_names_of_modules_that_load_slowly_are_those_of_the_module(room: str) -> None:
    assert set(importlib.import_module(f"vantage.{room}").__all__) == {
        name for name, module in vantage.LATE.items() if module == room
    }


def test_every_public_part_is_found_by_its_name() -> None:
    for name in public_parts():
        kind = part_named(name)
        assert kind is not None and name_of(kind) == name


def test_a_part_is_looked_for_without_a_search_for_similar_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take ten times as long for every part that `vantage` itself does not export."""
    monkeypatch.setattr(vantage, "_hint", lambda name: pytest.fail(f"a name like {name} was looked for"))
    assert part_named("KNN") is not None and part_named("Nothing") is None


@pytest.mark.parametrize("name", RECORDED)
def test_what_was_written_under_a_name_is_read(name: str) -> None:
    kind = part_named(public_name(name))
    assert kind is not None, f"{name} was renamed: add it to RENAMED_PARTS"
    field_names = {f.name for f in fields(kind)}
    new_names = RENAMED_FIELDS.get(kind.__name__, {})
    lost_fields = [field for field in RECORDED[name] if new_names.get(field, field) not in field_names | {None}]
    assert not lost_fields, f"{name} had {lost_fields}: add them to RENAMED_FIELDS"


def test_every_public_part_is_recorded() -> None:
    missing = {
        name: [field for field in field_names if field not in RECORDED.get(name, ())]
        for name, field_names in public_parts().items()
        if name not in RECORDED or not set(field_names) <= set(RECORDED[name])
    }
    assert missing == {}, "new parts or fields: run python tests/composition/test_names.py"


def test_a_field_is_read_under_the_name_it_had() -> None:
    data = encode(vantage.Data("photos", num_workers=3))
    data["workers"], data["place"] = data.pop("num_workers"), data.pop("path")
    assert decode(data, vantage.Data) == vantage.Data("photos", num_workers=3)


def test_a_field_that_is_no_more_is_left_out() -> None:
    old_record = {**encode(vantage.MeanAggregation(0.2)), "near": 4096}
    assert decode(old_record, vantage.MeanAggregation) == vantage.MeanAggregation(0.2)


def test_a_field_under_both_names_keeps_the_name_of_today() -> None:
    data = {**encode(vantage.Data("new")), "place": "old"}
    assert decode(data, vantage.Data) == vantage.Data("new")


def test_a_class_that_is_not_public_is_not_written() -> None:
    from vantage.training.feed import Feed

    with pytest.raises(UserError, match="Feed cannot be saved: it is not a public part"):
        name_of(Feed)


if __name__ == "__main__":
    names = {name: list(fields_of_part) for name, fields_of_part in RECORDED.items()}
    for part, fields_of_part in public_parts().items():
        names[part] = list(dict.fromkeys([*names.get(part, []), *fields_of_part]))
    FILE.write_text(json.dumps(dict(sorted(names.items())), indent=1) + "\n")
