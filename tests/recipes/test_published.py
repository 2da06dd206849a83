"""The recipes' values at 224 pixels against the papers' and the releases': goldens of shrunken runs do not see them.

The rows are written from the methods' publications, not from the recipes; where two sources disagree, a recipe's
docstring says which it follows.
"""

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from vantage.branch import owners
from vantage.composition.fields import differences
from vantage.composition.fitting import parts_of
from vantage.encoders import Encoder, Momentum, ResNet
from vantage.estimators import JCL, InfoNCE
from vantage.memory import Bank, ClusteredBank, InBatch, Queue, ReclusteredBank
from vantage.negatives import BandRule, Draw, OtherClusters, OtherImages, OwnCluster, Subset
from vantage.recipes import RECIPES, VARIANTS, cnce_ir, cnce_moco, ring_ir
from vantage.training.optimizers import AdamW
from vantage.training.run import Run
from vantage.training.start.trial import trial
from vantage.views import CIFAR10, Channels, Normalize, RandomResizedCrop, ViewMaker, WithJigsaw
from vantage.views import IMAGENET as IMAGENET_STATISTICS

IMAGENET = 1_281_167
EPOCHS = (0, 50, 100, 199)  # at which bands of negatives are looked at
KEYS = 50_000  # of which they are

Band = tuple[tuple[int, int], ...]
Course = dict[int, float]

RING: Band = ((5_000, 50_000), (2_750, 27_500), (500, 5_000), (500, 5_000))
"""Keep 1 to .1 on a straight line over 100 epochs, less its nearest tenth: the 90th to 99th percentile at last."""
BALL: Band = ((0, 50_000), (0, 27_500), (0, 5_000), (0, 5_000))
TENTH: Band = ((0, 5_000),) * 4
NEAREST: Band = ((0, 4_096),) * 4

NPID_STEPS: Course = {0: 0.03, 119: 0.03, 120: 3e-3, 159: 3e-3, 160: 3e-4, 199: 3e-4}
CMC_STEPS: Course = {0: 0.03, 119: 0.03, 120: 3e-3, 159: 3e-3, 160: 3e-4, 199: 3e-4, 200: 3e-5, 239: 3e-5}
RING_STEPS: Course = {0: 0.03, 199: 0.03, 200: 3e-3, 249: 3e-3, 250: 3e-4, 299: 3e-4}
LA_STEPS: Course = {0: 0.03, 159: 0.03, 160: 3e-3, 189: 3e-3, 190: 3e-4, 199: 3e-4}
COSINE: Course = {0: 0.03, 100: 0.015, 200: 0.0}
TO_A_THOUSANDTH: Course = {0: 0.03, 100: 0.015015, 200: 3e-5}
ADAM: Course = {0: 1e-3, 399: 1e-3}
SIMCLR: Course = {0: 0.03, 9: 0.3, 10: 0.3, 105: 0.15, 200: 0.0}  # ten epochs of warm-up

TWO_FALLS: Course = {0: 0.03, 135: 0.03, 136: 3e-3, 165: 3e-3, 166: 3e-4, 199: 3e-4}
DOUBLE: Course = {0: 0.06, 100: 0.03, 200: 0.0}
TO_A_THOUSANDTH_OF_4: Course = {0: 0.48, 9: 4.8, 10: 4.8, 505: 2.4024, 1_000: 4.8e-3}
AT_4096: Course = {0: 0.48, 9: 4.8, 10: 4.8, 505: 2.4, 1_000: 0.0}

BANK = "bank .5"
QUEUE = "queue 65536"
ONLINE = f"{BANK}, 10000 online clusters from epoch 0"
OFFLINE = f"{BANK}, 10000 × 1 clusters every 1 from epoch 0"
CAVES = "bank 0, 10000 × 1 clusters every 1 from epoch 1"
MATES = "bank 0, 30000 × 1 clusters every 1 from epoch 1"
LA = "30000 × 10 clusters every 1 from epoch 10"
OTHERS, APART, OWN = "other images", "other clusters", "own cluster"

# Views, as section 1.2 of the methods has them: in order, each with its numbers and its probability.
NPID = "crop .2, gray .2, jitter .4 .4 .4 .4 1, flip .5"
PYCONTRAST_A = "crop .08, flip .5, jitter .4 .4 .4 .4 1, gray .2"
MOCO2 = "crop .2, jitter .4 .4 .4 .1 .8, gray .2, blur .1 2 .5, flip .5"
MOCO2_SMALL = "crop .05-.14 of 96, jitter .4 .4 .4 .1 .8, gray .2, blur .1 2 .5, flip .5"
SIMCLR_VIEWS = "crop .08, flip .5, jitter .8 .8 .8 .2 .8, gray .2, blur .1 2 .5"
INFOMIN = "crop .2, flip .5, jitter .8 .8 .8 .2 .8, blur .1 2 .5 of 23, randaugment 2 10 .5 .5, gray .2"
INTERCLR = "crop .2, flip .5, jitter 0 0 1 .5 1, gray .2, blur .1 2 .5"
CNCE = "224 of 256, gray .2, jitter .4 .4 .4 .4 1, flip .5"
LIGHTNESS, COLORS = "0 of crop .08, flip .5, Lab", "12 of crop .08, flip .5, Lab"
CNCE_CHANNELS = ("0 of 224 of 256, flip .5, Lab", "12 of 224 of 256, flip .5, Lab")
JIGSAW = "9 patches of 64 of crop .6-1 of 255, flip .5"
VISSL = "9 patches of 64 of crop .6-1 of 255, jitter .4 .4 .4 .2 1, gray .2, flip .5"
R50, R18 = "ResNet-50", "ResNet-18"
HALVES = (f"{R50} ×.5 of 1", f"{R50} ×.5 of 2")


@dataclass(frozen=True)
class Contrast:
    """One branch: what it remembers, τ, and which negatives it takes."""

    memory: str
    temperature: float
    negatives: tuple[int | str | Band, ...] = ()
    """Keys drawn, or [inner, outer) ranks of 50,000 at some epochs, or which images."""
    weight: float = 1.0
    margin: float = 0.0
    strength: float = 0.0
    """JCL's λ."""
    prior: float = 0.0
    """Debiased learning's τ⁺."""
    hardness: float = 0.0
    """HCL's β."""
    keys: int = 1
    """Views that answer; none, where the bank does."""
    estimator: str = "InfoNCE"


@dataclass(frozen=True)
class Row:
    """What is published of a method."""

    recipe: str
    course: Course
    contrasts: tuple[Contrast, ...]
    epochs: int = 200
    batch: int = 256
    momentum: float = 0.9
    decay: float = 1e-4
    slow: float | None = None
    """Momentum of the momentum encoder."""
    trust: float | None = None
    """LARS' trust."""
    adam: bool = False
    """Whether it is Adam, whose momentum is β₁."""
    backbone: tuple[str, ...] = (R50,)
    """The network of each encoder, and its channels where they are not three."""
    head: str = "linear"
    """From features to the 128 numbers that are compared."""
    views: tuple[str, ...] = (NPID,)
    """How each view is made."""
    groups: int = 1
    """Of BatchNorm, in the joint batch."""
    shuffle: str | None = None
    """What shuffle-BN mixes."""


def _from(memory: str, temperature: float, *negatives: int | str | Band, **others: Any) -> Contrast:
    return Contrast(memory, temperature, negatives, keys=0, **others)


def _simclr(recipe: str, contrast: Contrast, course: Course, **others: Any) -> Row:
    contrast = replace(contrast, negatives=(OTHERS,), weight=0.5)
    settings = {"decay": 1e-6, "head": "normalized 2048", "views": (SIMCLR_VIEWS,) * 2} | others
    return Row(recipe, course, (contrast,) * 2, **settings)


def _moco(recipe: str, *contrasts: Contrast, course: Course = COSINE, **others: Any) -> Row:
    settings = {"slow": 0.999, "head": "MLP 2048", "views": (MOCO2,) * 2, "groups": 8, "shuffle": "images"} | others
    return Row(recipe, course, contrasts, **settings)


def _jcl(recipe: str, *contrasts: Contrast, views: tuple[str, ...] = (MOCO2,) * 6, **others: Any) -> Row:
    return _moco(recipe, *contrasts, views=views, shuffle="keys", **others)


def _cnce(recipe: str, *contrasts: Contrast, **others: Any) -> Row:
    settings = {"epochs": 300, "backbone": (R18,), "views": (CNCE,)} | others
    return Row(recipe, RING_STEPS, contrasts, **settings)


def _cnce_moco(recipe: str, contrast: Contrast) -> Row:
    return _cnce(recipe, contrast, views=(CNCE,) * 2, slow=0.999, groups=8, shuffle="images")


def _cnce_cmc(recipe: str, contrast: Contrast) -> Row:
    channels = (f"{R18} of 1", f"{R18} of 2")
    return _cnce(recipe, *(contrast,) * 2, batch=128, backbone=channels, views=CNCE_CHANNELS)


def _cmc(recipe: str, contrast: Contrast) -> Row:
    channels, views = (f"{R50} of 1", f"{R50} of 2"), (LIGHTNESS, COLORS)
    return Row(recipe, CMC_STEPS, (contrast,) * 2, epochs=240, batch=128, backbone=channels, views=views)


def _interclr(recipe: str, *contrasts: Contrast, course: Course = TO_A_THOUSANDTH, **others: Any) -> Row:
    return Row(recipe, course, contrasts, head="MLP 2048", views=(INTERCLR,), **others)


def _study(recipe: str, *between: int | str | Band, **others: Any) -> Row:
    """100 epochs, 4,096 negatives, λ .5 (section 5.2); `within` and `margin` are the two margins."""
    memory, weight = others.pop("memory", ONLINE), others.pop("weight", 0.5)
    within, margin = others.pop("within", 0.0), others.pop("margin", 0.0)
    contrasts = (
        _from(memory, 0.1, 4_096, OTHERS, weight=weight, margin=within),
        _from(memory, 0.1, APART, *between, weight=1 - weight, margin=margin),
    )
    settings = {"epochs": 100, "course": {0: 0.03, 50: 0.015015, 100: 3e-5}} | others
    return _interclr(recipe, *contrasts[: 1 if weight == 1 else 2], **settings)


_INTER = _from("bank 0, 10000 online clusters from epoch 0", 0.2, 163_840, APART, TENTH, weight=0.25, margin=-0.5)
_RING_OF_OTHERS = replace(_INTER, negatives=(163_840, APART, RING))
_JCL = Contrast(QUEUE, 0.2, strength=4.0, keys=5, estimator="JCL")
FARTHEST: Band = ((45_000, 50_000),) * 4
OF_128_000: Band = ((0, 50_000),) * 4  # all of a bank of 50,000
NARROW: Band = ((500, 5_000),) * 4
ABSOLUTE: Band = ((500, 50_000), (500, 27_500), (500, 5_000), (500, 5_000))
"""w_ℓ from 0 to 90, w_u at 99 throughout."""

ROWS = (
    _simclr("simclr", Contrast("batch", 0.1), SIMCLR, trust=0.001),
    _simclr("debiased", Contrast("batch", 0.5, prior=0.1, estimator="Debiased"), ADAM, epochs=500, adam=True),
    _simclr("hcl", Contrast("batch", 0.5, prior=0.1, hardness=1.0, estimator="HCL"), ADAM, epochs=400, adam=True),
    _moco("moco_v1", Contrast(QUEUE, 0.07), course=NPID_STEPS, head="linear", views=(NPID,) * 2),
    _moco("moco_v2", Contrast(QUEUE, 0.2)),
    _moco("moco_v2_multi_crop", *(Contrast(QUEUE, 0.2, weight=1 / 7),) * 7, views=(MOCO2,) * 2 + (MOCO2_SMALL,) * 6),
    Row("instance_discrimination", NPID_STEPS, (_from(BANK, 0.07, 65_536),)),
    Row("instance_discrimination_nce", NPID_STEPS, (_from(BANK, 0.07, 4_096, estimator="NCE"),)),
    Row("instance_discrimination_full", NPID_STEPS, (_from(BANK, 0.07, OTHERS),)),
    _cmc("cmc", _from(BANK, 0.07, 16_384, estimator="NCE")),
    _cmc("cmc_softmax", _from(BANK, 0.07, 16_384)),
    Row("pirl", NPID_STEPS, (_from(BANK, 0.07, 65_536, weight=0.5),) * 2, views=(PYCONTRAST_A, JIGSAW)),
    _moco(
        "infomin",
        *(Contrast(QUEUE, 0.15, weight=0.5),) * 2,
        course=TO_A_THOUSANDTH,
        views=(INFOMIN, INFOMIN, JIGSAW),
    ),
    _moco(
        "infomin_linear",
        *(Contrast(QUEUE, 0.07, weight=0.5),) * 2,
        course=TO_A_THOUSANDTH,
        head="linear",
        views=(INFOMIN, INFOMIN, JIGSAW),
    ),
    _interclr(
        "interclr",
        _from(ONLINE, 0.1, 16_384, OTHERS, weight=0.75),
        _from(ONLINE, 0.1, 163_840, APART, TENTH, weight=0.25, margin=-0.5),
    ),
    _moco("interclr_moco", Contrast(QUEUE, 0.2, weight=0.75), _INTER),
    Row(
        "local_aggregation",
        LA_STEPS,
        (_from(f"{BANK}, {LA}", 0.07, NEAREST, APART, estimator="LocalAggregation"),),
        batch=128,
    ),
    _jcl("jcl", _JCL, course=DOUBLE, batch=512),
    _jcl("jcl_vanilla", Contrast(QUEUE, 0.2, keys=5), course=DOUBLE, batch=512),
    _cnce("ring_ir", _from("bank 0", 0.07, RING, 4_095)),
    _cnce_moco("ring_moco", Contrast(QUEUE, 0.07, (RING,))),
    _cnce("ball_ir", _from("bank 0", 0.07, BALL, 4_095)),
    _cnce_moco("ball_moco", Contrast(QUEUE, 0.07, (BALL,))),
    _cnce_cmc("ring_cmc", _from("bank 0", 0.07, RING, 4_095)),
    _cnce_cmc("ball_cmc", _from("bank 0", 0.07, BALL, 4_095)),
    _cnce("cave_ir", _from(CAVES, 0.07, OTHERS, OWN, 4_095)),
    _cnce_cmc("cave_cmc", _from(CAVES, 0.07, OTHERS, OWN, 4_095)),
    _cnce("ring_ir_clusters", _from(MATES, 0.07, RING, 4_095, estimator="PooledNCE")),
    _cnce_cmc("ring_cmc_clusters", _from(MATES, 0.07, RING, 4_095, estimator="PooledNCE")),
    _jcl("jcl_ring", replace(_JCL, negatives=(RING,))),
    _moco("interclr_ring", Contrast(QUEUE, 0.2, (RING,), weight=0.75), _RING_OF_OTHERS),
    _jcl("jcl_interclr", replace(_JCL, weight=0.75), _INTER),
    _jcl(
        "everything",
        *(replace(_JCL, negatives=(RING,), weight=0.375),) * 2,
        _RING_OF_OTHERS,
        views=(INFOMIN,) * 6 + (JIGSAW,),
    ),
)
"""The recipes, in the order of their list."""

OTHER_SETTINGS = (
    _simclr("simclr_1000", Contrast("batch", 0.1), AT_4096, trust=0.001, epochs=1_000, batch=4_096),
    replace(_cmc("cmc_halves", _from(BANK, 0.07, 16_384, estimator="NCE")), backbone=HALVES),
    Row("pirl_pycontrast", TO_A_THOUSANDTH, (_from(BANK, 0.07, 65_536, weight=0.5),) * 2, views=(PYCONTRAST_A, JIGSAW)),
    Row(
        "pirl_vissl",
        {0: 0.12, 400: 0.06006, 800: 1.2e-4},
        (_from(BANK, 0.07, 32_000, weight=0.5, estimator="NCE"),) * 2,
        epochs=800,
        batch=1_024,
        views=(PYCONTRAST_A, VISSL),
    ),
    _moco("infomin_no_jigsaw", Contrast(QUEUE, 0.07), course=TO_A_THOUSANDTH, head="linear", views=(INFOMIN, INFOMIN)),
    _interclr(
        "interclr_1000",
        _from(ONLINE, 0.1, 16_384, OTHERS, weight=0.75),
        _from(ONLINE, 0.1, 163_840, APART, TENTH, weight=0.25, margin=-0.5),
        course=TO_A_THOUSANDTH_OF_4,
        epochs=1_000,
        batch=4_096,
        decay=1e-6,
        trust=0.001,
    ),
    _interclr(
        "interclr_exact",
        _from(ONLINE, 0.1, 16_384, OTHERS, weight=0.75),
        _from(ONLINE, 0.1, APART, TENTH, 16_384, weight=0.25, margin=-0.5),
    ),
    _moco(
        "interclr_moco_released",
        Contrast(QUEUE, 0.2, weight=0.75),
        replace(_INTER, negatives=(OF_128_000, APART, 16_384)),
    ),
    _study("interclr_random", 4_096),
    _study("interclr_offline", 4_096, memory=OFFLINE),
    _study("interclr_hard", NEAREST),
    _study("interclr_semi_hard", TENTH, 4_096),
    _study("interclr_semi_easy", FARTHEST, 4_096),
    _study("interclr_intra_margin", TENTH, 4_096, within=0.35),
    _study("interclr_inter_margin", TENTH, 4_096, margin=-0.5),
    _study("interclr_weighted", 4_096, weight=0.75, epochs=200, course=TO_A_THOUSANDTH),
    _study("interclr_intra_only", 4_096, weight=1.0, epochs=200, course=TO_A_THOUSANDTH),
    Row(
        "local_aggregation_warmed",
        LA_STEPS,
        (
            _from(f"{BANK}, {LA}", 0.07, 4_096, estimator="NCE"),
            _from(f"{BANK}, {LA}", 0.07, NEAREST, APART, estimator="LocalAggregation", weight=0.0),
        ),
        batch=128,
    ),
    _jcl("jcl_released", replace(_JCL, strength=0.01, keys=4), views=(MOCO2,) * 5),
    _jcl(
        "jcl_resnet18",
        _JCL,
        course={0: 0.1, 50: 0.05, 100: 0.0},
        epochs=100,
        batch=128,
        backbone=(R18,),
        head="MLP 512",
    ),
    _cnce("cnce_ir", _from("bank 0", 0.07, 4_095)),
    _cnce_moco("cnce_moco", Contrast(QUEUE, 0.07)),
    _cnce_cmc("cnce_cmc", _from("bank 0", 0.07, 4_095)),
    _cnce("cnce_la", _from(f"bank 0, {LA}", 0.07, NEAREST, APART, estimator="LocalAggregation")),
    _cnce("ring_ir_unannealed", _from("bank 0", 0.07, NARROW, 4_095)),
    _cnce("ring_ir_absolute", _from("bank 0", 0.07, ABSOLUTE, 4_095)),
    _cnce("ring_ir_neighbors", _from("bank 0", 0.07, RING, 4_095, estimator="SoftNeighbors")),
    Row(
        "ring_ir_released",
        TWO_FALLS,
        (_from("bank 0", 0.07, NARROW, 4_095),),
        backbone=(R18,),
        head="MLP 512",
    ),
    _cnce_moco("ring_moco_decoupled", Contrast(QUEUE, 0.07, (RING,), estimator="Decoupled")),
)
"""The variants, in the order of their list."""


@pytest.mark.parametrize("row", (*ROWS, *OTHER_SETTINGS), ids=lambda row: row.recipe)
def test_recipes_have_the_published_values(row: Row) -> None:
    recipe_of = {recipe.__name__: recipe for recipe in (*RECIPES, *VARIANTS)}
    values = _row_of(recipe_of[row.recipe](224), tuple(row.course))
    assert values.course == pytest.approx(row.course, rel=1e-9, abs=1e-12)
    assert replace(values, course={}) == replace(row, course={})


def test_every_recipe_has_a_row() -> None:
    assert [row.recipe for row in ROWS] == [recipe.__name__ for recipe in RECIPES]
    assert [row.recipe for row in OTHER_SETTINGS] == [recipe.__name__ for recipe in VARIANTS]


@pytest.mark.parametrize("recipe", VARIANTS, ids=lambda recipe: recipe.__name__)
def test_variants_can_work(recipe: Any) -> None:
    """Recipes are trained by other tests; what depends on the size of views is theirs too."""
    trial(recipe(32).fit(50_000), steps=1_000)


def test_ring_normalizes_by_the_statistics_of_the_data() -> None:
    """Section 5: "normalize them using dataset mean and standard deviation"."""
    for recipe in (cnce_ir, cnce_moco, ring_ir):
        for statistics in (IMAGENET_STATISTICS, CIFAR10):
            for size in (32, 224):
                normalizations = [
                    part for part in parts_of(recipe(size, statistics).views) if isinstance(part, Normalize)
                ]
                assert set(normalizations) == {statistics.normalize()}


def test_lambda_of_the_release_rises_to_two() -> None:
    """λ (e + 1) / E in epoch e of E (main_moco.py); in a run of another length the same line, stretched."""
    (released_recipe,) = (recipe for recipe in VARIANTS if recipe.__name__ == "jcl_released")
    for run in (released_recipe(224), released_recipe(224).rescale(epochs=50)):
        fitted_run = run.fit(IMAGENET)
        steps, estimator = IMAGENET // fitted_run.batch_size, fitted_run.branches[0].estimator
        assert isinstance(estimator, JCL)
        values = [estimator.strength((epoch + 1) * steps - 1) for epoch in range(run.epochs)]
        assert values == sorted(values) and values[0] <= 2 / run.epochs and values[-1] == pytest.approx(2.0)
        if run.epochs == 200:
            assert values == pytest.approx([2 * (epoch + 1) / 200 for epoch in range(200)])


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_fitting_to_imagenet_leaves_the_published_values(recipe: Any) -> None:
    run = recipe(224)
    changes = {path.rpartition(".")[2]: (before, after) for path, before, after in differences(run, run.fit(IMAGENET))}
    steps = (5_004, IMAGENET // run.batch_size)  # an epoch of 256 images, unless there are more or fewer
    assert changes.pop("steps_per_epoch", steps) == steps
    assert not changes


def _row_of(run: Run, epochs: tuple[int, ...]) -> Row:
    """The same of a recipe."""
    optimizer: Any = run.optimizer
    fitted_run, owner = run.fit(IMAGENET), owners(run.branches)
    contrasts = []
    for number, branch in enumerate(run.branches):
        estimator: Any = branch.estimator
        rules = (_negatives(rule, IMAGENET // run.batch_size) for rule in fitted_run.branches[number].negatives)
        contrasts.append(
            Contrast(
                _memory_text(run.branches[owner[number]].memory),
                estimator.temperature,
                tuple(rule for rule in rules if rule),
                branch.weight(0),
                estimator.margin if isinstance(estimator, InfoNCE) else 0.0,
                estimator.strength(0) if isinstance(estimator, JCL) else 0.0,
                getattr(estimator, "prior", 0.0),
                getattr(estimator, "hardness", 0.0),
                len(branch.keys),
                type(estimator).__name__,
            )
        )
    ((head, groups),) = {(_head(encoder), encoder.normalization.groups) for encoder in _encoders(run)}
    return Row(
        run.recipe,
        {epoch: run.learning_rate(epoch, 1, run.epochs) for epoch in epochs},
        tuple(contrasts),
        run.epochs,
        run.batch_size,
        optimizer.beta1 if isinstance(optimizer, AdamW) else optimizer.momentum,
        optimizer.weight_decay,
        run.encoders.momentum(0) if isinstance(run.encoders, Momentum) else None,
        getattr(optimizer, "trust_coefficient", None),
        isinstance(optimizer, AdamW),
        tuple(_backbone(encoder) for encoder in _encoders(run)),
        head,
        _views(run.views),
        groups,
        run.encoders.shuffle if isinstance(run.encoders, Momentum) else None,
    )


def _encoders(run: Run) -> list[Encoder]:
    return [part for part in parts_of(run.encoders) if isinstance(part, Encoder)]


def _backbone(encoder: Encoder) -> str:
    """A plain residual network, as torchvision has it."""
    network = encoder.backbone
    assert isinstance(network, ResNet)
    zero, channels, times = network.zero_init_residual, network.in_channels, network.width_multiplier
    plain = ResNet(network.depth, in_channels=channels, zero_init_residual=zero, width_multiplier=times)
    assert network == plain and zero == (type(encoder.head).__name__ == "NormalizedMLP")  # SimCLR
    wide = "" if times == 1 else f" ×{_short(times)}"
    return f"ResNet-{network.depth}{wide}" + ("" if channels == 3 else f" of {channels}")


def _head(encoder: Encoder) -> str:
    """The head for images; that for the patches of a jigsaw is like it."""
    head: Any = encoder.head
    assert head.width == 128 and (encoder.jigsaw is None or encoder.jigsaw.patch == head)
    name = {"LinearHead": "linear", "MLP": "MLP", "NormalizedMLP": "normalized"}[type(head).__name__]
    return f"{name} {head.hidden}" if hasattr(head, "hidden") else name


def _views(views: ViewMaker) -> tuple[str, ...]:
    """How each view is made, without the normalization."""
    match views:
        case WithJigsaw():
            operations = (*views.jigsaw.operations, *views.jigsaw.patch_operations)
            patches = f"{views.jigsaw.cells**2} patches of {views.jigsaw.patch}"
            return (*_views(views.views), f"{patches} of {_view_text(views.jigsaw.crop, operations)}")
        case Channels():
            view_text = _view_text(views.view.crop, views.view.operations)
            return tuple(f"{''.join(map(str, channels))} of {view_text}" for channels in views.channels)
    others: Any = views
    return tuple(_view_text(view.crop, view.operations) for view in others.views)


def _view_text(crop: Any, operations: tuple[Any, ...]) -> str:
    if isinstance(crop, RandomResizedCrop):
        least, most = map(_short, crop.scale)
        whole = (most, crop.size) == ("1", 224)
        crop_text = f"crop {least}" if whole else f"crop {least}-{most} of {crop.size}"
    else:
        crop_text = f"{crop.size} of {crop.resize}"
    return ", ".join([crop_text, *(_operation(one) for one in operations if not isinstance(one, Normalize))])


def _operation(one: Any) -> str:
    match type(one).__name__:
        case "ColorJitter":
            return _words("jitter", one.brightness, one.contrast, one.saturation, one.hue, one.probability)
        case "GaussianBlur":
            taps = 2 * one.radius + 1
            return _words("blur", *one.sigma, one.probability) + ("" if taps == 13 else f" of {taps}")
        case "RandAugment":
            return _words("randaugment", one.count, one.magnitude, one.spread, one.probability)
        case "InSpace":
            return type(one.space).__name__
    return _words({"Grayscale": "gray", "HorizontalFlip": "flip"}[type(one).__name__], one.probability)


def _words(name: str, *numbers: float) -> str:
    return " ".join([name, *map(_short, numbers)])


def _negatives(rule: object, steps: int) -> int | str | Band | None:
    match rule:
        case OtherImages():
            return OTHERS
        case OtherClusters():
            return APART
        case OwnCluster():
            return OWN
        case Draw() | Subset():
            return rule.count
        case BandRule():
            ranks = (rule.ranks(torch.tensor([KEYS]), epoch * steps) for epoch in EPOCHS)
            return tuple((int(inner), int(outer)) for inner, outer in ranks)
    return None


def _memory_text(memory: object) -> str:
    match memory:
        case Queue():
            return f"queue {memory.length}"
        case InBatch():
            return "batch"
        case Bank():
            return f"bank {_short(memory.momentum)}"
        case ClusteredBank():
            return f"bank {_short(memory.momentum)}, {memory.clusters} online clusters from epoch {memory.first}"
        case ReclusteredBank():
            clusters = f"{memory.clusters} × {memory.clusterings} clusters"
            return f"bank {_short(memory.momentum)}, {clusters} every {memory.every} from epoch {memory.first}"
    raise AssertionError(f"test_published.py does not know {memory}")


def _short(number: float) -> str:
    return f"{number:g}".removeprefix("0") or "0"
