"""The recipes' values at 224 pixels against the papers' and the releases': goldens of shrunken runs do not see them.

The rows are written from the methods' publications, not from the recipes; where two sources disagree, a recipe's
docstring says which it follows.
"""

from dataclasses import replace
from typing import Any

import pytest
from published import IMAGENET, Band, Contrast, Course, Row, row_of

from vantage.composition.fields import differences
from vantage.composition.fitting import parts_of
from vantage.estimators import JCL
from vantage.recipes import RECIPES, VARIANTS, cnce_ir, cnce_moco, ring_ir
from vantage.training.start.try_parts import try_branches
from vantage.views import CIFAR10, Normalize
from vantage.views import IMAGENET as IMAGENET_STATISTICS

RING = Band("Ring", ((100_000, 1_000_000), (55_000, 550_000), (10_000, 100_000), (10_000, 100_000)))
"""Keep 1 to .1 on a straight line over 100 epochs, less its nearest tenth: the 90th to 99th percentile at last."""
BALL = Band("Ball", ((0, 1_000_000), (0, 550_000), (0, 100_000), (0, 100_000)))
NARROW = Band("Ring", ((10_000, 100_000),) * 4)
ABSOLUTE = Band("AbsoluteRing", ((10_000, 1_000_000), (10_000, 550_000), (10_000, 100_000), (10_000, 100_000)))
"""w_ℓ from 0 to 90, w_u at 99 throughout."""
TENTH = Band("Hardest", ((0, 100_000),) * 4)
FARTHEST = Band("Easiest", ((900_000, 1_000_000),) * 4)
NEAREST = Band("Hardest", ((0, 4_096),) * 4)
OF_128_000 = Band("Hardest", ((0, 128_000),) * 4)

NPID_STEPS: Course = {0: 0.03, 119: 0.03, 120: 3e-3, 159: 3e-3, 160: 3e-4, 199: 3e-4}
CMC_STEPS: Course = {0: 0.03, 119: 0.03, 120: 3e-3, 159: 3e-3, 160: 3e-4, 199: 3e-4, 200: 3e-5, 239: 3e-5}
RING_STEPS: Course = {0: 0.03, 199: 0.03, 200: 3e-3, 249: 3e-3, 250: 3e-4, 299: 3e-4}
LA_STEPS: Course = {0: 0.03, 159: 0.03, 160: 3e-3, 189: 3e-3, 190: 3e-4, 199: 3e-4}
COSINE: Course = {0: 0.03, 100: 0.015, 200: 0.0}
TO_A_THOUSANDTH: Course = {0: 0.03, 100: 0.015015, 200: 3e-5}
FROM_EPOCH_1: Course = {0: 0.02999815133774, 99: 0.015015, 199: 3e-5}  # as PyContrast counts
ADAM: Course = {0: 1e-3, 399: 1e-3}
SIMCLR: Course = {0: 0.03, 9: 0.3, 10: 0.3, 105: 0.15, 200: 0.0}  # ten epochs of warm-up

TWO_FALLS: Course = {0: 0.03, 135: 0.03, 136: 3e-3, 165: 3e-3, 166: 3e-4, 199: 3e-4}
DOUBLE: Course = {0: 0.06, 100: 0.03, 200: 0.0}
TO_A_THOUSANDTH_OF_4: Course = {0: 0.48, 9: 4.8, 10: 4.8, 505: 2.4024, 1_000: 4.8e-3}
AT_4096: Course = {0: 0.48, 9: 4.8, 10: 4.8, 505: 2.4, 1_000: 0.0}

BANK = "bank .5"
QUEUE = "queue 65536"
CENTROIDS = "10000 online clusters of 20 from epoch 0, {} of centroids every 10, 20 iterations"
ONLINE = f"{BANK}, {CENTROIDS.format('Distance')}"
OF_KEYS = f"bank 0, {CENTROIDS.format('InnerProduct')}"
OFFLINE = f"{BANK}, 10000 × 1 clusters of 128 every 1 from epoch 0, Apart before, 20 iterations"
CAVES = "bank 0, 10000 × 1 clusters of 128 every 1 from epoch 1, Together before, 20 iterations"
MATES = "bank 0, 30000 × 1 clusters of 42 every 1 from epoch 1, Apart before, 20 iterations"
LA = "30000 × 10 clusters of 42 every 1 from epoch 10, Apart before, 20 iterations"
OTHERS, APART, OWN = "OtherImages", "OtherClusters", "OwnCluster"
DRAWS = "Sample 4095"

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
PATCHES = "9 patches of 64 of crop .6-1 of 255"
JIGSAW = f"{PATCHES}, flip .5"
VISSL = "jitter .4 .4 .4 .2 1, photometric, gray .2, flip .5"
R50, R18 = "ResNet-50", "ResNet-18"
HALVES = (f"{R50} ×.5 of 1", f"{R50} ×.5 of 2")


def _row(recipe: str, course: Course, *contrasts: Contrast, **others: Any) -> Row:
    return Row(recipe, course, contrasts, **{"views": (NPID,)} | others)


def _from(memory: str, temperature: float, *negatives: str | Band, **others: Any) -> Contrast:
    """Against a bank, which answers with the image's own row."""
    return Contrast(memory, temperature, negatives, **{"positives": "Remembered", "keys": (), "pool": (0,)} | others)


def _mate(memory: str, temperature: float, *negatives: str | Band, **others: Any) -> Contrast:
    """Against a bank, which answers with a row of the image's cluster."""
    return _from(memory, temperature, *negatives, positives="ClusterMate", **others)


def _jigsaw(contrast: Contrast, query: int = 1) -> tuple[Contrast, Contrast]:
    """An image and its jigsaw against the same memory, which takes no jigsaw."""
    return contrast, replace(contrast, query=query)


def _both_ways(contrast: Contrast) -> tuple[Contrast, Contrast]:
    """Each of two views against a bank of the other."""
    return replace(contrast, pool=(1,)), replace(contrast, query=1, store=1)


def _simclr(recipe: str, contrast: Contrast, course: Course, **others: Any) -> Row:
    contrast = replace(contrast, negatives=(OTHERS,), weight=0.5, pool=(0, 1))
    contrasts = (contrast, replace(contrast, query=1, keys=(0,), store=1))
    return _row(recipe, course, *contrasts, decay=1e-6, head="normalized 2048", views=(SIMCLR_VIEWS,) * 2, **others)


def _moco(recipe: str, *contrasts: Contrast, course: Course = COSINE, **others: Any) -> Row:
    settings = {"slow": 0.999, "head": "MLP 2048", "views": (MOCO2,) * 2, "groups": 8, "shuffle": "images"} | others
    return Row(recipe, course, contrasts, **settings)


def _jcl(recipe: str, *contrasts: Contrast, views: tuple[str, ...] = (MOCO2,) * 6, **others: Any) -> Row:
    return _moco(recipe, *contrasts, views=views, shuffle="keys", **others)


def _joint(estimator: str, keys: tuple[int, ...], **others: Any) -> Contrast:
    """Several keys, whose means are remembered."""
    settings = {"positives": "FixedViews", "remember": "MeanKey", "keys": keys, "pool": keys} | others
    return Contrast(QUEUE, 0.2, estimator=estimator, **settings)


def _cnce(recipe: str, *contrasts: Contrast, **others: Any) -> Row:
    settings = {"epochs": 300, "backbone": (R18,), "views": (CNCE,)} | others
    return Row(recipe, RING_STEPS, contrasts, **settings)


def _cnce_moco(recipe: str, contrast: Contrast) -> Row:
    return _cnce(recipe, contrast, views=(CNCE,) * 2, slow=0.999, groups=8, shuffle="images")


def _cnce_cmc(recipe: str, contrast: Contrast) -> Row:
    channels = (f"{R18} of 1", f"{R18} of 2")
    return _cnce(recipe, *_both_ways(contrast), batch=128, backbone=channels, views=CNCE_CHANNELS)


def _cmc(recipe: str, estimator: str, backbone: tuple[str, ...] = (f"{R50} of 1", f"{R50} of 2")) -> Row:
    contrasts = _both_ways(_from(BANK, 0.07, "Sample 16384", estimator=estimator))
    return _row(recipe, CMC_STEPS, *contrasts, epochs=240, batch=128, backbone=backbone, views=(LIGHTNESS, COLORS))


def _interclr(recipe: str, *contrasts: Contrast, course: Course = TO_A_THOUSANDTH, **others: Any) -> Row:
    return Row(recipe, course, contrasts, head="MLP 2048", views=(INTERCLR,), **others)


def _study(recipe: str, *between: str | Band, **others: Any) -> Row:
    """100 epochs, 4,096 negatives, λ .5 (section 5.2); `within` and `margin` are the two margins."""
    memory, weight = others.pop("memory", ONLINE), others.pop("weight", 0.5)
    within, margin = others.pop("within", 0.0), others.pop("margin", 0.0)
    contrasts = (
        _from(memory, 0.1, "Sample 4096", OTHERS, weight=weight, margin=within),
        _mate(memory, 0.1, APART, *between, weight=1 - weight, margin=margin),
    )
    settings = {"epochs": 100, "course": {0: 0.03, 50: 0.015015, 100: 3e-5}} | others
    return _interclr(recipe, *contrasts[: 1 if weight == 1 else 2], **settings)


_INTRA = _from(ONLINE, 0.1, "Sample 16384", OTHERS, weight=0.75)
_INTER = _mate(ONLINE, 0.1, "Subset 163840", APART, TENTH, weight=0.25, margin=-0.5)
_INTER_KEYS = replace(_INTER, memory=OF_KEYS, temperature=0.2, pool=(1,), store=1)
_RING_OF_OTHERS = replace(_INTER_KEYS, negatives=("Subset 163840", APART, RING))
_JCL = _joint("JCL", (1, 2, 3, 4, 5), strength=4.0)
_JCL_IN_RING = replace(_JCL, negatives=(RING,), weight=0.375)
_PIRL = _jigsaw(_from(BANK, 0.07, "Sample 65536", weight=0.5))
_NEAR = _from(f"{BANK}, {LA}", 0.07, NEAREST, APART, estimator="LocalAggregation", positives="NearMates 4096")
_CLUSTERS = _from(MATES, 0.07, RING, DRAWS, estimator="PooledNCE", positives="ClusterMates")

ROWS = (
    _simclr("simclr", Contrast("batch", 0.1), SIMCLR, trust=0.001, excluded="BiasAndNorm"),
    _simclr("debiased", Contrast("batch", 0.5, prior=0.1, estimator="Debiased"), ADAM, epochs=500, adam=True),
    _simclr("hcl", Contrast("batch", 0.5, prior=0.1, hardness=1.0, estimator="HCL"), ADAM, epochs=400, adam=True),
    _moco("moco_v1", Contrast(QUEUE, 0.07), course=NPID_STEPS, head="linear", views=(NPID,) * 2),
    _moco("moco_v2", Contrast(QUEUE, 0.2)),
    _moco(
        "moco_v2_multi_crop",
        *(Contrast(QUEUE, 0.2, weight=1 / 7, query=query) for query in (0, 2, 3, 4, 5, 6, 7)),
        views=(MOCO2,) * 2 + (MOCO2_SMALL,) * 6,
    ),
    _row("instance_discrimination", NPID_STEPS, _from(BANK, 0.07, "Sample 65536")),
    _row("instance_discrimination_nce", NPID_STEPS, _from(BANK, 0.07, "Sample 4096", estimator="NCE")),
    _row("instance_discrimination_full", NPID_STEPS, _from(BANK, 0.07, OTHERS)),
    _cmc("cmc", "NCE"),
    _cmc("cmc_softmax", "InfoNCE"),
    _row("pirl", NPID_STEPS, *_PIRL, views=(PYCONTRAST_A, JIGSAW)),
    _moco(
        "infomin",
        *_jigsaw(Contrast(QUEUE, 0.15, weight=0.5), 2),
        course=FROM_EPOCH_1,
        views=(INFOMIN, INFOMIN, JIGSAW),
    ),
    _moco(
        "infomin_linear",
        *_jigsaw(Contrast(QUEUE, 0.07, weight=0.5), 2),
        course=FROM_EPOCH_1,
        head="linear",
        views=(INFOMIN, INFOMIN, JIGSAW),
    ),
    _interclr("interclr", _INTRA, _INTER),
    _moco("interclr_moco", Contrast(QUEUE, 0.2, weight=0.75), _INTER_KEYS),
    _row("local_aggregation", LA_STEPS, _NEAR, batch=128, excluded="Named bn"),
    _jcl("jcl", _JCL, course=DOUBLE, batch=512),
    _jcl("jcl_vanilla", _joint("InfoNCE", (1, 2, 3, 4, 5)), course=DOUBLE, batch=512),
    _cnce("ring_ir", _from("bank 0", 0.07, RING, DRAWS)),
    _cnce_moco("ring_moco", Contrast(QUEUE, 0.07, (RING,))),
    _cnce("ball_ir", _from("bank 0", 0.07, BALL, DRAWS)),
    _cnce_moco("ball_moco", Contrast(QUEUE, 0.07, (BALL,))),
    _cnce_cmc("ring_cmc", _from("bank 0", 0.07, RING, DRAWS)),
    _cnce_cmc("ball_cmc", _from("bank 0", 0.07, BALL, DRAWS)),
    _cnce("cave_ir", _from(CAVES, 0.07, OTHERS, OWN, DRAWS)),
    _cnce_cmc("cave_cmc", _from(CAVES, 0.07, OTHERS, OWN, DRAWS)),
    _cnce("ring_ir_clusters", _CLUSTERS),
    _cnce_cmc("ring_cmc_clusters", _CLUSTERS),
    _jcl("jcl_ring", replace(_JCL, negatives=(RING,))),
    _moco("interclr_ring", Contrast(QUEUE, 0.2, (RING,), weight=0.75), _RING_OF_OTHERS),
    _jcl("jcl_interclr", replace(_JCL, weight=0.75), _INTER_KEYS),
    _jcl(
        "everything",
        *_jigsaw(_JCL_IN_RING, 6),
        replace(_RING_OF_OTHERS, store=2),
        views=(INFOMIN,) * 6 + (JIGSAW,),
    ),
)
"""The recipes, in the order of their list."""

OTHER_SETTINGS = (
    _simclr(
        "simclr_1000",
        Contrast("batch", 0.1),
        AT_4096,
        trust=0.001,
        epochs=1_000,
        batch=4_096,
        excluded="BiasAndNorm",
    ),
    _row(
        "instance_discrimination_pycontrast",
        FROM_EPOCH_1,
        _from(BANK, 0.07, "Sample 65536"),
        views=(PYCONTRAST_A,),
    ),
    _cmc("cmc_halves", "NCE", backbone=HALVES),
    _row("pirl_pycontrast", FROM_EPOCH_1, *_PIRL, views=(PYCONTRAST_A, JIGSAW)),
    _row(
        "pirl_vissl",
        {0: 0.12, 400: 0.06006, 800: 1.2e-4},
        _from(BANK, 0.07, "Sample 32000", weight=0.5, estimator="NCE"),
        _from(BANK, 0.07, "Sample 32000 salt 1", weight=0.5, estimator="NCE", query=1),
        epochs=800,
        batch=1_024,
        excluded="BiasAndNorm",
        views=(f"crop .08, {VISSL}", f"{PATCHES}, {VISSL}"),
    ),
    _moco("infomin_no_jigsaw", Contrast(QUEUE, 0.07), course=FROM_EPOCH_1, head="linear", views=(INFOMIN, INFOMIN)),
    _interclr(
        "interclr_1000",
        _INTRA,
        _INTER,
        course=TO_A_THOUSANDTH_OF_4,
        epochs=1_000,
        batch=4_096,
        decay=1e-6,
        trust=0.001,
        excluded="BiasAndNorm",
    ),
    _interclr("interclr_exact", _INTRA, replace(_INTER, negatives=(APART, TENTH, "Distinct 16384"))),
    _moco(
        "interclr_moco_released",
        Contrast(QUEUE, 0.2, weight=0.75),
        replace(_INTER_KEYS, negatives=(OF_128_000, APART, "Distinct 16384")),
    ),
    _study("interclr_random", "Sample 4096"),
    _study("interclr_offline", "Sample 4096", memory=OFFLINE),
    _study("interclr_hard", NEAREST),
    _study("interclr_semi_hard", TENTH, "Distinct 4096"),
    _study("interclr_semi_easy", FARTHEST, "Distinct 4096"),
    _study("interclr_intra_margin", TENTH, "Distinct 4096", within=0.35),
    _study("interclr_inter_margin", TENTH, "Distinct 4096", margin=-0.5),
    _study("interclr_weighted", "Sample 4096", weight=0.75, epochs=200, course=TO_A_THOUSANDTH),
    _study("interclr_intra_only", "Sample 4096", weight=1.0, epochs=200, course=TO_A_THOUSANDTH),
    _row(
        "local_aggregation_warmed",
        LA_STEPS,
        _from(f"{BANK}, {LA}", 0.07, "Sample 4096", estimator="NCE"),
        replace(_NEAR, weight=0.0),
        batch=128,
        excluded="Named bn",
    ),
    _jcl("jcl_released", _joint("JCL", (1, 2, 3, 4), strength=0.01), views=(MOCO2,) * 5),
    _jcl(
        "jcl_resnet18",
        _JCL,
        course={0: 0.1, 50: 0.05, 100: 0.0},
        epochs=100,
        batch=128,
        backbone=(R18,),
        head="MLP 512",
    ),
    _cnce("cnce_ir", _from("bank 0", 0.07, DRAWS)),
    _cnce_moco("cnce_moco", Contrast(QUEUE, 0.07)),
    _cnce_cmc("cnce_cmc", _from("bank 0", 0.07, DRAWS)),
    _cnce("cnce_la", replace(_NEAR, memory=f"bank 0, {LA}")),
    _row(
        "cnce_moco_released",
        TWO_FALLS,
        Contrast("queue 4096", 0.07),
        slow=0.999,
        backbone=(R18,),
        head="MLP 512",
        views=(NPID,) * 2,
        shuffle="images",
    ),
    _cnce("ring_ir_unannealed", _from("bank 0", 0.07, NARROW, DRAWS)),
    _cnce("ring_ir_absolute", _from("bank 0", 0.07, ABSOLUTE, DRAWS)),
    _cnce(
        "ring_ir_neighbors",
        _from("bank 0", 0.07, RING, DRAWS, estimator="SoftNeighbors", positives="Neighbors and Remembered"),
    ),
    _row("ring_ir_released", TWO_FALLS, _from("bank 0", 0.07, NARROW, DRAWS), backbone=(R18,), head="MLP 512"),
    _cnce_moco("ring_moco_decoupled", Contrast(QUEUE, 0.07, (RING,), estimator="Decoupled")),
)
"""The variants, in the order of their list."""

DEPARTURES: dict[str, dict[str, Any]] = {
    "pirl_vissl": {"views": tuple(f"{crop}, {VISSL.replace('photometric, ', '')}" for crop in ("crop .08", PATCHES))},
}
"""What recipes have in place of what was published."""


@pytest.mark.parametrize("row", (*ROWS, *OTHER_SETTINGS), ids=lambda row: row.recipe)
def test_recipes_have_the_published_values(row: Row) -> None:
    recipe_of = {recipe.__name__: recipe for recipe in (*RECIPES, *VARIANTS)}
    values = row_of(recipe_of[row.recipe](224), tuple(row.course))
    assert values.course == pytest.approx(row.course, rel=1e-9, abs=1e-12)
    assert replace(values, course={}) == replace(row, course={}, **DEPARTURES.get(row.recipe, {}))


def test_every_recipe_has_a_row() -> None:
    assert [row.recipe for row in ROWS] == [recipe.__name__ for recipe in RECIPES]
    assert [row.recipe for row in OTHER_SETTINGS] == [recipe.__name__ for recipe in VARIANTS]


@pytest.mark.parametrize("recipe", VARIANTS, ids=lambda recipe: recipe.__name__)
def test_variants_can_work(recipe: Any) -> None:
    """Recipes are trained by other tests; what depends on the size of views is theirs too."""
    try_branches(recipe(32).fit(50_000), steps=1_000)


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
    """λ (e + 1) / E in epoch e of E (main_moco.py), whatever the length of the run."""
    (released_recipe,) = (recipe for recipe in VARIANTS if recipe.__name__ == "jcl_released")
    for run in (released_recipe(224), released_recipe(224).rescale(epochs=50)):
        fitted_run = run.fit(IMAGENET)
        steps, estimator = IMAGENET // fitted_run.batch_size, fitted_run.branches[0].estimator
        assert isinstance(estimator, JCL)
        for place in (0, steps - 1):
            values = [estimator.strength(epoch * steps + place) for epoch in range(run.epochs)]
            assert values == pytest.approx([2 * (epoch + 1) / run.epochs for epoch in range(run.epochs)])


def test_local_aggregation_warms_up_for_ten_epochs() -> None:
    """Instance discrimination first, then local aggregation (the release's README), never both."""
    (warmed_recipe,) = (recipe for recipe in VARIANTS if recipe.__name__ == "local_aggregation_warmed")
    run = warmed_recipe(224).fit(IMAGENET)
    start = 10 * (IMAGENET // run.batch_size)
    weights = {
        step: tuple(branch.weight(step) for branch in run.branches) for step in (0, start - 1, start, 20 * start)
    }
    assert weights == {0: (1, 0), start - 1: (1, 0), start: (0, 1), 20 * start: (0, 1)}


@pytest.mark.parametrize("recipe", (*RECIPES, *VARIANTS), ids=lambda recipe: recipe.__name__)
def test_fitting_to_imagenet_leaves_the_published_values(recipe: Any) -> None:
    run = recipe(224)
    changes = {path: (before, after) for path, before, after in differences(run, run.fit(IMAGENET))}
    steps = (5_004, IMAGENET // run.batch_size)  # an epoch of 256 images, unless there are more or fewer
    assert all(change == steps for path, change in changes.items() if path.endswith("steps_per_epoch"))
    others = {path: change for path, change in changes.items() if not path.endswith("steps_per_epoch")}
    # Epochs of 4,096 images are so short that centroids move at every step, as in the paper's text.
    assert others == ({"branches.0.memory.refresh_every": (10, 1)} if run.recipe == "interclr_1000" else {})
