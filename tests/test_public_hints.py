"""A name that `vantage` does not have is answered with the one that was probably meant."""

import importlib

import pytest

import vantage
from vantage.cli.program import VERBS


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("pretrain", "; did you mean vantage.train?"),
        ("describe", "; did you mean vantage.composition.printing.as_python?"),
        ("analyse", "; did you mean vantage.studies.analyse?"),
        ("analyze", "; did you mean vantage.studies.analyse?"),
        ("infoNCE", "; did you mean vantage.InfoNCE?"),
        ("Encode", "; did you mean vantage.Encoder?"),
        ("info_nce", "; did you mean vantage.functional.info_nce?"),
        ("knn", "; did you mean vantage.evaluate.KNN?"),
        ("find_duplicates", "; did you mean vantage.curation.find_duplicates?"),
        ("moco", "; did you mean vantage.moco_v1 or vantage.moco_v2 (or 2 more)?"),
        ("banana", "; dir(vantage) lists its names"),
        ("__banana__", ""),
    ],
)
def test_a_missing_name_is_answered_with_a_hint(name: str, hint: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(vantage, name)
    assert str(caught.value) == f"module 'vantage' has no attribute {name!r}{hint}"


@pytest.mark.parametrize("verb", [verb.__name__ for verb in VERBS])
def test_every_verb_is_a_name_or_has_a_hint_that_exists(verb: str) -> None:
    try:
        getattr(vantage, verb)
    except AttributeError as error:
        meant = str(error).partition("did you mean ")[2].rstrip("?")
        module, _, name = meant.rpartition(".")
        found = importlib.import_module(module)
        assert hasattr(found, name) or importlib.import_module(meant)
