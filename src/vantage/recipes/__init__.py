"""The published methods, one module for each paper, each method a composition of parts.

A recipe is a function of the image size that returns a `Run` with the paper's values; below 97 pixels it is a
documented variant for small images. `Run.fit` adapts it to a data set. Other settings that were published are functions
too, in the module of their recipe (`VARIANTS`); any other variant is `dataclasses.replace`.
"""

from vantage.recipes.cmc import cmc, cmc_softmax
from vantage.recipes.cnce import cnce_cmc, cnce_ir, cnce_la, cnce_moco
from vantage.recipes.combinations import everything, interclr_ring, jcl_interclr
from vantage.recipes.debiased import debiased
from vantage.recipes.hcl import hcl
from vantage.recipes.infomin import infomin, infomin_linear, infomin_no_jigsaw
from vantage.recipes.instance_discrimination import (
    instance_discrimination,
    instance_discrimination_full,
    instance_discrimination_nce,
)
from vantage.recipes.interclr import interclr, interclr_1000, interclr_moco
from vantage.recipes.interclr_study import (
    interclr_hard,
    interclr_inter_margin,
    interclr_intra_margin,
    interclr_intra_only,
    interclr_offline,
    interclr_random,
    interclr_semi_easy,
    interclr_semi_hard,
    interclr_weighted,
)
from vantage.recipes.jcl import jcl, jcl_released, jcl_resnet18, jcl_ring, jcl_vanilla
from vantage.recipes.local_aggregation import local_aggregation, local_aggregation_warmed
from vantage.recipes.moco import moco_v1, moco_v2
from vantage.recipes.multi_crop import moco_v2_multi_crop, with_small_crops
from vantage.recipes.pirl import pirl, pirl_pycontrast, pirl_vissl
from vantage.recipes.ring import (
    ball_cmc,
    ball_ir,
    ball_moco,
    cave_cmc,
    cave_ir,
    ring_cmc,
    ring_cmc_clusters,
    ring_ir,
    ring_ir_absolute,
    ring_ir_clusters,
    ring_ir_neighbors,
    ring_ir_released,
    ring_ir_unannealed,
    ring_moco,
    ring_moco_decoupled,
)
from vantage.recipes.simclr import simclr, simclr_1000

__all__ = [
    "RECIPES",
    "VARIANTS",
    "ball_cmc",
    "ball_ir",
    "ball_moco",
    "cave_cmc",
    "cave_ir",
    "cmc",
    "cmc_softmax",
    "cnce_cmc",
    "cnce_ir",
    "cnce_la",
    "cnce_moco",
    "debiased",
    "everything",
    "hcl",
    "infomin",
    "infomin_linear",
    "infomin_no_jigsaw",
    "instance_discrimination",
    "instance_discrimination_full",
    "instance_discrimination_nce",
    "interclr",
    "interclr_1000",
    "interclr_hard",
    "interclr_inter_margin",
    "interclr_intra_margin",
    "interclr_intra_only",
    "interclr_moco",
    "interclr_offline",
    "interclr_random",
    "interclr_ring",
    "interclr_semi_easy",
    "interclr_semi_hard",
    "interclr_weighted",
    "jcl",
    "jcl_interclr",
    "jcl_released",
    "jcl_resnet18",
    "jcl_ring",
    "jcl_vanilla",
    "local_aggregation",
    "local_aggregation_warmed",
    "moco_v1",
    "moco_v2",
    "moco_v2_multi_crop",
    "pirl",
    "pirl_pycontrast",
    "pirl_vissl",
    "ring_cmc",
    "ring_cmc_clusters",
    "ring_ir",
    "ring_ir_absolute",
    "ring_ir_clusters",
    "ring_ir_neighbors",
    "ring_ir_released",
    "ring_ir_unannealed",
    "ring_moco",
    "ring_moco_decoupled",
    "simclr",
    "simclr_1000",
    "with_small_crops",
]

RECIPES = (
    simclr,
    debiased,
    hcl,
    moco_v1,
    moco_v2,
    moco_v2_multi_crop,
    instance_discrimination,
    instance_discrimination_nce,
    instance_discrimination_full,
    cmc,
    cmc_softmax,
    pirl,
    infomin,
    infomin_linear,
    interclr,
    interclr_moco,
    local_aggregation,
    jcl,
    jcl_vanilla,
    ring_ir,
    ring_moco,
    ball_ir,
    ball_moco,
    ring_cmc,
    ball_cmc,
    cave_ir,
    cave_cmc,
    ring_ir_clusters,
    ring_cmc_clusters,
    jcl_ring,
    interclr_ring,
    jcl_interclr,
    everything,
)
"""Every recipe that is a method of its own, for the command line and the tests."""

VARIANTS = (
    simclr_1000,
    pirl_pycontrast,
    pirl_vissl,
    infomin_no_jigsaw,
    interclr_1000,
    interclr_random,
    interclr_offline,
    interclr_hard,
    interclr_semi_hard,
    interclr_semi_easy,
    interclr_intra_margin,
    interclr_inter_margin,
    interclr_weighted,
    interclr_intra_only,
    local_aggregation_warmed,
    jcl_released,
    jcl_resnet18,
    cnce_ir,
    cnce_moco,
    cnce_cmc,
    cnce_la,
    ring_ir_unannealed,
    ring_ir_absolute,
    ring_ir_neighbors,
    ring_ir_released,
    ring_moco_decoupled,
)
"""Other settings that were published, for the command line and the tests."""
