"""Values as people write them: what is read, what is refused in one line, and that nothing is ever evaluated."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vantage
from vantage.composition.conformance import conforms
from vantage.composition.expression import describe, read_value, takes_number
from vantage.composition.fields import settings_in
from vantage.composition.kinds import _parts, part_from_number
from vantage.composition.printing import as_python
from vantage.encoders import Backbone, ResNet, Timm
from vantage.errors import UserError
from vantage.estimators import Estimator, InfoNCE
from vantage.negatives import OtherImages, Ring, Rule
from vantage.recipes import RECIPES
from vantage.schedules import ByEpoch, Constant, LearningRate, Schedule
from vantage.training.optimizers import SGD, Optimizer

COSTS = Literal["interclr", "vissl"] | tuple[float, ...]


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (int, "3", 3),
        (int, "-3", -3),
        (int, " 65_536 ", 65_536),
        (float, "1", 1.0),
        (float, "-1e-3", -0.001),
        (float, "inf", float("inf")),
        (bool, "True", True),
        (bool, "false", False),
        (int | None, "None", None),
        (int | None, "2", 2),
        (str, "torchvision:CIFAR10", "torchvision:CIFAR10"),
        (str, "photos/a (1), b", "photos/a (1), b"),
        (str, "'quoted'", "quoted"),
        (str | None, "None", None),
        (tuple[int, ...], "1, 2,3", (1, 2, 3)),
        (tuple[int, ...], "1", (1,)),
        (tuple[int, ...], "()", ()),
        (tuple[float, float], "(0.5, 1)", (0.5, 1.0)),
        (tuple[str, ...], "RGB,Lab", ("RGB", "Lab")),
        (tuple[tuple[int, ...], ...], "(1, 2), (3,)", ((1, 2), (3,))),
        (Literal["bf16-mixed", "32-true"], "32-true", "32-true"),
        (Literal[18, 34, 50], "34", 34),
        (COSTS, "vissl", "vissl"),
        (COSTS, "1,2.5", (1.0, 2.5)),
        (Schedule, "Constant(0.5)", Constant(0.5)),
        (Schedule, "0.5", Constant(0.5)),
        (Schedule, "-1", Constant(-1.0)),
        (Any, "0.5", 0.5),
        (Schedule | None, "0.5", Constant(0.5)),
        (Schedule, "ByEpoch(2)", ByEpoch(Constant(2.0))),
        (tuple[Rule, ...], "Ring(0.1, drop=0)", (Ring(Constant(0.1), Constant(0.0)),)),
        (Estimator, "InfoNCE", InfoNCE()),
        (Estimator, "InfoNCE(0.1, margin=-0.5)", InfoNCE(0.1, margin=-0.5)),
        (tuple[Rule, ...], "(OtherImages(), Ring(drop=Constant(0.2)))", (OtherImages(), Ring(drop=Constant(0.2)))),
        (tuple[Rule, ...], "Ring()", (Ring(),)),
        (Backbone, "ResNet(18, small=True)", ResNet(18, small=True)),
        (Backbone, "Timm('convnext_tiny')", Timm("convnext_tiny")),
        (Backbone, "Timm(name='a:b')", Timm("a:b")),
        (Optimizer, "SGD(weight_decay=0)", SGD(weight_decay=0.0)),
    ],
)
def test_what_is_read(annotation: Any, text: str, value: Any) -> None:
    result = read_value(text, annotation, "path")
    assert result == value and type(result) is type(value)


@pytest.mark.parametrize(
    ("annotation", "text", "message"),
    [
        (int, "3.5", "path: expected a whole number, found 3.5"),
        (int, "", "expected a whole number, found nothing"),
        (int, "True", "expected a whole number, found True"),
        (int, "1" + 30 * "0", "does not fit in 64 bits"),
        (float, "x", "expected a number, found x"),
        (float, "'1'", "expected a number, found '1'"),
        (bool, "1", "expected True or False, found 1"),
        (int | None, "two", "expected a whole number or None, found two"),
        (tuple[float, float], "0.5", "expected 2 numbers, found 0.5"),
        (tuple[float, float], "1, 2, 3", r"expected 2 numbers, found 1, 2, 3"),
        (tuple[int, ...], "1, a", r"expected whole numbers, found 1, a"),
        (Literal["skip", "stop"], "stopp", "expected skip or stop, found stopp; did you mean stop?"),
        (COSTS, "interclt", "expected interclr, vissl or numbers, found interclt; did you mean interclr?"),
        (Estimator, "InfoNSE()", "no part 'InfoNSE'; did you mean InfoNCE?"),
        (Estimator, "InfoNCE(temprature=1)", "InfoNCE has no field 'temprature'; did you mean temperature?"),
        (Estimator, "InfoNCE(0.1, temperature=1)", "InfoNCE has temperature twice"),
        (Estimator, "InfoNCE(1, 2, 3)", "InfoNCE takes 2 settings, found 3"),
        (Estimator, "InfoNCE('a')", "path.temperature: expected a number, found 'a'"),
        (Estimator, "InfoNCE(-1)", "path: .*temperature"),
        (Estimator, "Ring()", r"path: expected Estimator \(.*InfoNCE.*\), found the part Ring"),
        (Estimator, "Constant(0.1)", "expected Estimator"),
        (Schedule, "CosineByEpoch(0.1)", r"expected a number or Schedule \(.*, found the part CosineByEpoch"),
        (Schedule, "True", "expected a number or Schedule"),
        (Schedule, "'0.1'", "expected a number or Schedule"),
        (Schedule, "0.1, 0.2", "expected a number or Schedule"),
        (Schedule, "inf", "path: Constant: value is inf; it must be a finite number"),
        (Schedule, "1" + 30 * "0", "does not fit in 64 bits"),
        (LearningRate, "0.1", r"path: expected LearningRate \(CosineByEpoch, CosineByStep, StepDecay\), found 0.1"),
        (Optimizer, "Queue(3)", r"expected Optimizer \(AdamW, LARS, SGD\), found the part Queue"),
        (Backbone, "Timm()", "Timm needs name"),
        (Backbone, "ResNet(19)", "path.depth: expected 18, 34, 50, 101 or 152, found 19"),
        (Backbone, "ResNet(18, groups=2)", "path: ResNet: depth 18"),
        (tuple[Rule, ...], "(OtherImages(), InfoNCE())", r"path.1: expected Rule \(.*, found the part InfoNCE"),
        (Estimator, "vantage.errors.UserError()", "is not part of Vantage"),
        (Estimator, "os:path()", "no part|is not part of Vantage"),
    ],
)
def test_what_is_refused_in_one_line(annotation: Any, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as refusal:
        read_value(text, annotation, "path")
    assert "\n" not in str(refusal.value) and len(str(refusal.value)) < 400


HOSTILE = (
    "__import__('os').system('touch hacked')",
    "InfoNCE(__import__('os').getpid())",
    "(lambda: 1)()",
    "[x for x in (1,)]",
    "InfoNCE(*(0.1,))",
    "InfoNCE(**{'temperature': 0.1})",
    "InfoNCE()()",
    "InfoNCE().__class__",
    "InfoNCE.__init__(0.1)",
    "InfoNCE(temperature:=0.1)",
    "InfoNCE(0.1 if True else 0.2)",
    "f'{1}'",
    "b'x'",
    "1j",
    "...",
    "9**9**9**9",
    "-'a'",
    "not 1",
    "~1",
    "1e400-1e400",
    "yield",
    "print",
    "eval('1')",
    "\0",
    "\\",
    "'\\d'",
    "((((((",
    "(" * 20_001,
    "-" * 19_999 + "1",
    "a." * 9_999 + "b",
    "InfoNCE(" * 19 + ")" * 19,
    "1" * 5_000,
    "1," * 9_999,
    "é" * 50,
    "import os",
    "x = 1",
    "1; 2",
    "{}",
    "{1: 2}",
)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("annotation", [int, float, Estimator, tuple[Rule, ...], int | None], ids=str)
def test_hostile_text_is_refused(annotation: Any, text: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as refusal:
        read_value(text, annotation, "path")
    assert len(str(refusal.value)) < 600 and not list(tmp_path.iterdir())


@given(st.text(st.sampled_from("InfoNCE()[]{}.,:='\"-+*0123456789 \n\\#@_aT"), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for annotation in (int, float, str, Estimator, tuple[Rule, ...], tuple[int, ...], Literal["a", "b"] | None):
        try:
            read_value(text, annotation, "path")
        except UserError as refusal:
            assert str(refusal)


def test_what_a_field_takes_is_said_in_words() -> None:
    assert describe(int | None) == "a whole number or None"
    assert describe(Literal["", "meta-dataset"]) == "meta-dataset"
    assert describe(Optimizer) == "Optimizer (AdamW, LARS, SGD)"
    assert describe(Schedule).startswith("a number or Schedule (Adaptive, ")
    assert describe(tuple[float, float]) == "2 numbers"


def test_a_number_stands_for_a_part_only_where_schedules_are_taken():
    kinds = {kind for part in _parts().values() for kind in types_in(get_type_hints(part).values())}
    assert {kind for kind in kinds if part_from_number(kind)} == {Schedule}
    assert part_from_number(object) is None
    assert takes_number(Schedule) and takes_number(float | None) and not takes_number(LearningRate | str)


def types_in(annotations: Iterable[Any]) -> Iterator[type]:
    for annotation in annotations:
        if isinstance(annotation, type) and not get_args(annotation):
            yield annotation
        yield from types_in(get_args(annotation))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_every_part_of_a_recipe_fits_its_field(recipe: Any) -> None:
    for setting in settings_in(recipe(32)):
        part = setting.value
        if setting.holds_parts and part is not None and not isinstance(part, tuple):
            kinds = getattr(setting.annotation, "__args__", (setting.annotation,))
            assert any(conforms(type(part), kind) for kind in kinds), setting.path


def test_a_part_fits_by_what_its_methods_take() -> None:
    assert conforms(InfoNCE, Estimator) and not conforms(Constant, Estimator) and not conforms(Ring, Schedule)
    assert conforms(vantage.Queue, vantage.memory.Memory) and not conforms(SGD, vantage.memory.Memory)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_a_recipe_prints_itself_as_python(recipe: Any) -> None:
    run = recipe(32)
    text = as_python(run)
    assert max(map(len, text.splitlines())) <= 120
    assert read_value(text, vantage.Run, "run") == run
    assert eval(text, {name: getattr(vantage, name) for name in dir(vantage)}) == run
