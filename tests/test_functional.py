"""The plain functions against float64 loops, and against what a branch of the same parts gives.

b: images   m: negatives   d: width
"""

import importlib.util
import itertools
from collections.abc import Callable
from types import ModuleType

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from references import losses as reference
from torch import Tensor
from torch.nn.functional import normalize
from torch.testing import assert_close

from vantage import functional
from vantage.errors import UserError

Loop = Callable[[list[list[Tensor]], list[list[Tensor]]], list[Tensor]]
Function = Callable[..., Tensor]


def ring_of(cosine: list[Tensor], keep: float, drop: float) -> list[Tensor]:
    """The ring of one query's negatives, by sorting."""
    descending = sorted(cosine, key=lambda one: float(one.detach()), reverse=True)
    outer = max(1, int(keep * len(descending) + 1e-6))
    inner = min(int(drop * outer + 1e-6), outer - 1)
    return descending[inner:outer]


CASES: tuple[tuple[str, dict[str, float], Loop], ...] = (
    ("info_nce", {"temperature": 0.3}, lambda a, b: reference.info_nce(a, b, 0.3)),
    ("margin", {"temperature": 0.3, "margin": -0.4}, lambda a, b: reference.info_nce(a, b, 0.3, -0.4)),
    (
        "ring",
        {"temperature": 0.3, "keep": 0.6, "drop": 0.4},
        lambda a, b: reference.info_nce(a, [ring_of(row, 0.6, 0.4) for row in b], 0.3),
    ),
    ("debiased", {"temperature": 0.3, "prior": 0.05}, lambda a, b: reference.debiased(a, b, 0.3, 0.05)),
    (
        "hcl",
        {"temperature": 0.3, "hardness": 0.7, "prior": 0.05},
        lambda a, b: reference.hcl(a, b, 0.3, 0.7, 0.05),
    ),
)


def raw(rows: int, seed: int) -> Tensor:
    """Vectors of any length."""
    length = torch.linspace(0.5, 3.0, rows, dtype=torch.float64)[:, None]
    return (synthetic.vectors(rows, 4, seed) * length).requires_grad_()


def one_way(query: Tensor, key: Tensor, far: list[list[Tensor]], loop: Loop) -> Tensor:
    near = [[reference.dot(query[i], key[i])] for i in range(len(query))]
    return torch.stack(loop(near, [[reference.dot(query[i], k) for k in far[i]] for i in range(len(query))])).mean()


def agree(actual: Tensor, expected: Tensor, *inputs: Tensor) -> None:
    assert actual.shape == ()
    assert_close(actual, expected, rtol=0, atol=1e-10)
    ours, theirs = (torch.autograd.grad(value, inputs, allow_unused=True) for value in (actual, expected))
    for one, other in zip(ours, theirs, strict=True):
        assert_close(one, torch.zeros_like(other) if one is None and other is not None else other, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(("name", "settings", "loop"), CASES, ids=lambda value: value if isinstance(value, str) else "")
@given(images=st.integers(2, 5), seed=st.integers(0, 20))
def test_within_the_batch_both_views_are_queries(
    name: str, settings: dict[str, float], loop: Loop, images: int, seed: int
):
    z1, z2 = raw(images, seed), raw(images, seed + 50)
    actual = getattr(functional, name)(z1, z2, **settings)
    one, two = normalize(z1, dim=1), normalize(z2, dim=1)
    far = [[view[j] for view in (one, two) for j in range(images) if j != i] for i in range(images)]
    agree(actual, (one_way(one, two, far, loop) + one_way(two, one, far, loop)) / 2, z1, z2)


@pytest.mark.parametrize(("name", "settings", "loop"), CASES, ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("learn", [False, True])
def test_against_a_queue_one_view_is_the_query(name: str, settings: dict[str, float], loop: Loop, learn: bool):
    z1, z2, queue = raw(4, 0), raw(4, 1), raw(9, 2).detach().requires_grad_(learn)
    actual = getattr(functional, name)(z1, z2, negatives=queue, **settings)
    rows = list(normalize(queue, dim=1))
    expected = one_way(normalize(z1, dim=1), normalize(z2, dim=1), [rows] * 4, loop)
    agree(actual, expected, z1, z2, *([queue] if learn else []))


@pytest.mark.parametrize("inside", [False, True])
def test_jcl_is_eq_8(inside: bool):
    z1, keys, queue = raw(4, 0), raw(12, 1).view(4, 3, 4), raw(7, 2).detach()
    actual = functional.jcl(z1, keys, 0.3, 2.0, None if inside else queue)
    query, near = normalize(z1, dim=1), normalize(keys, dim=2)
    rows = [row / max(1.0, float(row.norm())) for row in queue]  # means of keys are shorter than 1
    assert min(row.norm() for row in rows) < 0.9
    losses = []
    for i in range(4):
        others = [j for j in range(4) if j != i]
        batch = [query[j] for j in others] + [key for j in others for key in near[j]]
        losses.append(reference.jcl(query[i], near[i], batch if inside else rows, 0.3, 2.0))
    expected = torch.stack(losses).mean()
    assert_close(actual, expected, rtol=0, atol=1e-10)
    ours, theirs = (torch.autograd.grad(value, z1)[0] for value in (actual, expected))
    assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", [*(case[0] for case in CASES), "jcl"])
@pytest.mark.parametrize("queue", [False, True])
def test_autocast_and_half_precision_do_not_round_similarities(name: str, queue: bool):
    """Float32 rows under autocast, and the same rows in bfloat16."""
    z1, negatives = raw(4, 0).detach().bfloat16(), raw(9, 2).detach().bfloat16() if queue else None
    z2 = raw(12, 1).detach().view(4, 3, 4).bfloat16() if name == "jcl" else raw(4, 1).detach().bfloat16()
    loss = getattr(functional, name)
    exact = loss(z1.double(), z2.double(), negatives=negatives.double() if negatives is not None else None)
    with torch.autocast("cpu", torch.bfloat16):
        for kind in (torch.float32, torch.bfloat16):
            inputs = (z1.to(kind), z2.to(kind), negatives.to(kind) if negatives is not None else None)
            actual = loss(*inputs[:2], negatives=inputs[2])
            assert actual.dtype == torch.float32
            assert_close(actual.double(), exact, rtol=1e-5, atol=1e-5)


def test_nt_xent_is_its_loop():
    z1, z2 = raw(5, 0), raw(5, 1)
    agree(functional.info_nce(z1, z2, 0.5), reference.nt_xent(normalize(z1, dim=1), normalize(z2, dim=1), 0.5), z1, z2)


@pytest.mark.parametrize("name", [*(case[0] for case in CASES), "jcl"])
def test_one_image_is_no_batch(name: str):
    one = torch.ones(1, 3)
    keys = one[:, None] if name == "jcl" else one
    with pytest.raises(UserError, match="give more images, or negatives"):
        getattr(functional, name)(one, keys)
    assert torch.isfinite(getattr(functional, name)(one, keys, negatives=torch.eye(3)))


@pytest.mark.parametrize("name", [*(case[0] for case in CASES), "jcl"])
def test_an_empty_batch_is_called_so(name: str):
    none = torch.empty(0, 3)
    with pytest.raises(UserError, match="^an empty batch has no negatives"):
        getattr(functional, name)(none, none[:, None] if name == "jcl" else none)


@pytest.mark.parametrize("name", [*(case[0] for case in CASES), "jcl"])
def test_vectors_without_numbers_are_refused(name: str):
    z1 = torch.ones(4, 3, device="meta")
    with pytest.raises(UserError, match="z1 is on the meta device, which holds no numbers"):
        getattr(functional, name)(z1, z1[:, None] if name == "jcl" else z1)


def test_every_loss_is_tested():
    assert {*(case[0] for case in CASES), "jcl"} == set(functional.__all__)


def test_their_order_is_as_their_parts_have_it():
    """Each function with the values that make it `info_nce`."""
    z1, z2 = raw(6, 3).detach(), raw(6, 4).detach()
    same = (
        functional.info_nce(z1, z2, 0.3),
        functional.margin(z1, z2, 0.3, 0.0),
        functional.ring(z1, z2, 0.3, keep=1.0, drop=0.0),
        functional.debiased(z1, z2, 0.3, prior=0.0),
        functional.hcl(z1, z2, 0.3, hardness=0.0, prior=0.0),
    )
    for one, other in itertools.pairwise(same):
        assert_close(one, other, rtol=0, atol=1e-12)


@pytest.fixture(scope="module")
def unchecked() -> ModuleType:
    """The module as users import it. The tests' checks of annotations would refuse its arguments first."""
    spec = importlib.util.spec_from_file_location("unchecked_functional", functional.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


OF_TWO_VIEWS = (
    ((16,), (8, 16), None, r"z1 has the shape \(16,\): give \(images, width\)$"),
    ((8, 16), (8, 1, 16), None, r"z2 has the shape \(8, 1, 16\): give \(images, width\)$"),
    ((8, 16), (7, 16), None, "z1 has 8 rows, z2 has 7: row i of both shows the same image, so give equally many"),
    ((8, 16), (8, 15), None, "the rows of z1 have 16 numbers, those of z2 15: give vectors of the same width"),
    ((8, 16), (8, 16), (16,), r"negatives has the shape \(16,\): give \(negatives, width\)$"),
    ((8, 16), (8, 16), (5, 4), "the rows of z1 have 16 numbers, those of negatives 4"),
    ((8, 0), (8, 0), None, r"z1 has the shape \(8, 0\): give \(images, width\), none of them 0"),
)
OF_SEVERAL_KEYS = (
    ((8, 16), (8, 16), None, r"give \(images, keys, width\); one key for each image is keys\[:, None\]"),
    ((8, 16), (7, 2, 16), None, "z1 has 8 rows, keys has 7"),
    ((8, 16), (8, 2, 15), None, "the rows of z1 have 16 numbers, those of keys 15"),
    ((8, 16), (8, 0, 16), None, r"keys has the shape \(8, 0, 16\): give \(images, keys, width\), none of them 0"),
    ((8, 16), (8, 2, 16), (5,), "negatives has the shape"),
)


@pytest.mark.parametrize(
    ("name", "query", "keys", "negatives", "message"),
    [(name, *case) for name, *_ in CASES for case in OF_TWO_VIEWS] + [("jcl", *case) for case in OF_SEVERAL_KEYS],
)
def test_rows_that_do_not_fit_together_are_refused(
    unchecked: ModuleType,
    name: str,
    query: tuple[int, ...],
    keys: tuple[int, ...],
    negatives: tuple[int, ...] | None,
    message: str,
):
    far = None if negatives is None else torch.ones(negatives)
    with pytest.raises(UserError, match=message):
        getattr(unchecked, name)(torch.ones(query), torch.ones(keys), negatives=far)


@pytest.mark.parametrize("name", [*(case[0] for case in CASES), "jcl"])
def test_rows_of_two_precisions_or_devices_are_refused(unchecked: ModuleType, name: str):
    single, double = torch.ones(4, 3), torch.ones(4, 3, dtype=torch.float64)
    keys = (single[:, None], double[:, None]) if name == "jcl" else (single, double)
    loss = getattr(unchecked, name)
    for kind, z1, z2, negatives in (
        (r"z1 is float64 on cpu, \w+ is float32 on cpu: give all in one precision", double, keys[0], None),
        ("z1 is float32 on cpu, negatives is float64 on cpu", single, keys[0], double),
        ("z1 is float32 on cpu, negatives is float32 on meta", single, keys[0], single.to("meta")),
    ):
        with pytest.raises(UserError, match=kind):
            loss(z1, z2, negatives=negatives)
    assert torch.isfinite(loss(single, keys[0].half(), negatives=double.bfloat16()))
