"""Every memory × positives × rules × estimator gives a finite loss and gradient, or is refused in words; nothing else.

The parts are those of the contract tests, and here a few special settings. The pairs and triples of rules are those of
the recipes.
"""

import dataclasses
import inspect
import itertools
import re
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, cast

import jaxtyping
import pytest
import synthetic
import torch
from small_recipes import BATCH, IMAGES, TwoLayers, batches, fill, shrink
from test_estimators import CONTRACT as ESTIMATOR_CONTRACT
from test_negatives import CONTRACT as RULE_CONTRACT
from test_positives import CONTRACT as POSITIVES_CONTRACT
from test_remember import CONTRACT as REMEMBER_CONTRACT
from test_stores import CONTRACT as MEMORY_CONTRACT
from torch import Tensor

import vantage
from vantage import draws, estimators, memory, negatives, positives
from vantage.branch import Branch
from vantage.encoders import Encoder, LinearHead, Shared
from vantage.errors import UserError
from vantage.estimators import JCL, NCE, Estimator, EstimatorChoice, TableEstimator
from vantage.learner import Learner
from vantage.memory import (
    Apart,
    Bank,
    ClusteredBank,
    Distance,
    InBatch,
    InnerProduct,
    LabeledBank,
    Memory,
    Queue,
    ReclusteredBank,
    Store,
    StoreOf,
    Together,
    remember,
)
from vantage.memory.remember import EachKey, Remember
from vantage.negatives import (
    AbsoluteRing,
    Count,
    Easiest,
    Hardest,
    OtherClusters,
    OtherImages,
    OwnCluster,
    Ring,
    Rule,
    Share,
)
from vantage.partition import sum_negatives
from vantage.positives import (
    ClusterMate,
    ClusterMates,
    NearMates,
    Neighbors,
    OtherMate,
    OtherViews,
    Positives,
    Remembered,
)
from vantage.records import Keys
from vantage.schedules import Constant
from vantage.training.start.try_parts import try_branches

WIDTH = 5
TAU = 0.1  # one for all, so that they share a log-partition


def each_kind(contract: tuple[Any, ...], special: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """The special parts, and the last in a contract of every kind that is not among them."""
    return (*special, *{type(part): part for part in contract if type(part) not in map(type, special)}.values())


MEMORIES: tuple[Memory, ...] = each_kind(
    MEMORY_CONTRACT,
    (
        Queue(5),  # shorter than a batch
        Queue(19),
        Bank(0.5),
        ClusteredBank(clusters=3, refresh_every=1, smallest=2, closeness=Distance()),
        ClusteredBank(momentum=0.0, clusters=4, smallest=0, closeness=InnerProduct()),
        ReclusteredBank(clusters=3, clusterings=2, start=Apart()),
        ReclusteredBank(clusters=2, clusterings=1, start=Together()),
    ),
)
POSITIVES: tuple[Positives, ...] = each_kind(
    POSITIVES_CONTRACT,
    (
        ClusterMates(most=3),
        NearMates(1),  # often none of the cluster is so near
        NearMates(6),
        Neighbors(ring=Ring(Constant(0.5), Constant(0.5))),
        Neighbors(own=OtherViews(), ring=AbsoluteRing(Constant(0.5), Constant(0.0))),  # no neighbor at all
    ),
)
ALONE: tuple[Rule, ...] = each_kind(RULE_CONTRACT, (Hardest(Share()), Easiest(Count(2))))
ESTIMATORS: tuple[Estimator | TableEstimator | EstimatorChoice, ...] = tuple(
    dataclasses.replace(part, temperature=TAU) for part in each_kind(ESTIMATOR_CONTRACT)
)

FRESH, FILLED = 0.0, 2.0
"""How often a memory has seen the images: never, and often enough that its clusters are made and have moved."""

STATES = [
    *((first, FRESH) for first in MEMORIES if getattr(first, "closeness", None) != InnerProduct()),
    *((first, FILLED) for first in MEMORIES if first != InBatch() and getattr(first, "start", None) != Together()),
]
"""Each memory in both states, once where the two are the same."""

TO_DO = r"(: |; |, or |\. )(use|give|name|add|set|build|choose|ask|take|lower|raise)\b"


@cache
def rules() -> tuple[tuple[Rule, ...], ...]:
    """No rule, two that may leave nothing, each by itself, and what the recipes combine."""
    rule_tuples = {branch.negatives for make in vantage.RECIPES for branch in shrink(make(32), None).branches}
    none = (OwnCluster(), OtherImages())  # where every image is a cluster of its own
    return (
        (),
        none,
        *((rule,) for rule in ALONE),
        *sorted((several for several in rule_tuples if len(several) > 1), key=repr),
    )


def exported_parts(module: ModuleType) -> set[type]:
    """The choices that a module offers: its dataclasses."""
    members = (getattr(module, name) for name in module.__all__)
    dataclass = {part for part in members if dataclasses.is_dataclass(part) and isinstance(part, type)}
    return {part for part in dataclass if not inspect.isabstract(part)}


def kinds(part: object) -> Iterator[type]:
    """The class of a part, and of all that its fields hold."""
    if dataclasses.is_dataclass(part):
        yield type(part)
        for field in dataclasses.fields(part):
            yield from kinds(getattr(part, field.name))


def of_images(first: Memory) -> bool:
    """Whether row i is that of image i."""
    return isinstance(first, Bank | ClusteredBank | ReclusteredBank | LabeledBank)


def is_refused(first: Memory, positive: Positives, several: tuple[Rule, ...]) -> bool:
    """What ought to be refused: who asks for clusters or for rows of images that the memory does not keep."""
    has_clusters = isinstance(first, ClusteredBank | ReclusteredBank | LabeledBank)
    asks_clusters = isinstance(positive, ClusterMate | OtherMate | ClusterMates | NearMates)
    asks_clusters |= any(isinstance(rule, OtherClusters | OwnCluster) for rule in several)
    asks_row = isinstance(positive.own if isinstance(positive, Neighbors) else positive, Remembered)
    return (asks_clusters and not has_clusters) or (asks_row and not of_images(first))


def filled_store(choice: Memory, passes: float) -> Store:
    """A store that has seen all images this many times, in batches."""
    store = choice.build(IMAGES, WIDTH)
    for number in range(round(passes * IMAGES / BATCH)):
        image = (torch.arange(BATCH) + number * BATCH) % IMAGES
        store.write(Keys(synthetic.vectors(BATCH, WIDTH, 100 + number, torch.float32), image))
    return store


def batch() -> tuple[Keys, tuple[Keys, ...]]:
    """Queries and two keys of each, all of which learn; the images are no rows of the batch."""
    image = torch.arange(BATCH).flip(0) * 2 + 5
    vector = [synthetic.vectors(BATCH, WIDTH, seed, torch.float32).requires_grad_() for seed in range(3)]
    query = Keys(vector[0], image, seed=draws.query_seeds(0, 0, image), step_seed=3)
    return query, tuple(Keys(one, image) for one in vector[1:])


def loss_of(branch: Branch, query: Keys, keys: tuple[Keys, ...], pool: Keys) -> Tensor:
    choice = branch.estimator
    state = choice.build(IMAGES) if isinstance(choice, EstimatorChoice) else None
    return branch.contrast(query, keys, pool, 0, state).loss


def finite(losses: list[Tensor], vectors: list[Tensor]) -> bool:
    """Whether losses and the gradient of their sum are finite: one that is not leaves the sum not finite."""
    gradient = torch.autograd.grad(torch.stack(losses).sum(), vectors, retain_graph=True, allow_unused=True)
    return all(bool(torch.isfinite(one).all()) for one in (*losses, *gradient) if one is not None)


def assert_clear(problem: UserError) -> None:
    text = str(problem)
    assert len(re.findall(r"[.!?](\s|$)", text.rstrip(".") + ".")) <= 2 and len(text) < 250 and "\n" not in text, text
    assert re.search(TO_DO, text), f"does not say what to do: {text}"


@pytest.mark.parametrize(
    ("module", "parts"),
    [
        (memory, (*MEMORIES, StoreOf(), *REMEMBER_CONTRACT)),
        (positives, POSITIVES),
        (negatives, ALONE),
        (estimators, ESTIMATORS),
        (remember, REMEMBER_CONTRACT),
    ],
    ids=lambda value: value.__name__ if isinstance(value, ModuleType) else "",
)
def test_every_public_part_is_in_the_matrix(module: ModuleType, parts: tuple[object, ...]):
    missing = exported_parts(module) - {kind for part in parts for kind in kinds(part)}
    assert not missing, "add these to CONTRACT in the contract test of their kind"
    assert len(exported_parts(module)) >= 3


@dataclasses.dataclass
class Once:
    """A function of the queries and the pool that is computed at its first call: what estimators have in common."""

    function: Callable[..., object]
    objects: list[object] = dataclasses.field(default_factory=list)

    def __call__(self, *arguments: object) -> object:
        if not self.objects:
            self.objects.append(self.function(*arguments))
        return self.objects[0]


@pytest.fixture
def without_shape_checks() -> Iterator[None]:
    """They take nine tenths of the time here, and every other test has them."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.mark.slow
@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(("first", "passes"), STATES, ids=repr)
def test_every_combination_is_finite_or_refused_in_words(first: Memory, passes: float, monkeypatch: pytest.MonkeyPatch):
    query, keys = batch()
    vectors, pool = [query.vector, *(key.vector for key in keys)], filled_store(first, passes).read(EachKey()(keys))
    for positive, several in itertools.product(POSITIVES, rules()):
        monkeypatch.setattr("vantage.branch.sum_negatives", Once(sum_negatives))
        once, where, losses = cast(Positives, Once(positive)), f"{positive} with {several}", []
        for estimator in ESTIMATORS:
            branch = Branch(first, once, several, estimator, keys=(1, 2), pool=(1, 2))
            try:
                losses.append(loss_of(branch, query, keys, pool))
            except UserError as problem:
                assert_clear(problem)
        assert len(losses) == (0 if is_refused(first, positive, several) else len(ESTIMATORS)), where
        if losses and not finite(losses, vectors):
            bad = [e for e, loss in zip(ESTIMATORS, losses, strict=True) if not finite([loss], vectors)]
            raise AssertionError(f"not finite: {where} under {bad}; losses {losses}")


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("remember", REMEMBER_CONTRACT, ids=lambda way: type(way).__name__)
@pytest.mark.parametrize("first", MEMORIES, ids=repr)
def test_two_branches_of_one_memory_learn_for_some_epochs(first: Memory, remember: Remember):
    one = Branch(first, OtherViews(), (), JCL(TAU), keys=(1, 2), pool=(1, 2), remember=remember)
    other = Branch(StoreOf(0), OtherViews(), (OtherImages(),), NCE(TAU), query=1, keys=(0, 2))
    learner = Learner(Shared(Encoder(TwoLayers(), LinearHead(WIDTH))), (one, other), images=IMAGES, seed=0).double()
    fill(learner)
    for step, (views, image) in enumerate(batches(7, 3)):
        result = learner(views, image, step)
        assert torch.isfinite(result.loss)
        weights = list(learner.networks.parameters())
        gradient = torch.autograd.grad(result.loss, weights)
        assert all(bool(torch.isfinite(part).all()) for part in gradient) and any(part.any() for part in gradient)
        learner.after_step([result.fresh], step)
        with torch.no_grad():
            for weight, slope in zip(weights, gradient, strict=True):
                weight -= 0.1 * slope


@pytest.mark.parametrize("first", [InBatch(), Queue(19)], ids=repr)
def test_a_row_for_each_image_is_required_before_the_first_step(first: Memory):
    base = vantage.instance_discrimination(32)
    try_branches(base)
    with pytest.raises(UserError, match="the memory is no bank"):
        try_branches(dataclasses.replace(base, branches=(dataclasses.replace(base.branches[0], memory=first),)))
