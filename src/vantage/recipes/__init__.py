"""The published methods, one module for each paper, each method a composition of parts.

A recipe is a function of the image size that returns a `Run` with the paper's values; below 97 pixels it is a
documented variant for small images. `Run.fit` adapts it to a data set; a variant is `dataclasses.replace`.
"""

from vantage.recipes.cmc import cmc, cmc_softmax
from vantage.recipes.combinations import everything, interclr_ring, jcl_interclr
from vantage.recipes.debiased import debiased
from vantage.recipes.hcl import hcl
from vantage.recipes.infomin import infomin, infomin_linear
from vantage.recipes.instance_discrimination import (
    instance_discrimination,
    instance_discrimination_full,
    instance_discrimination_nce,
)
from vantage.recipes.interclr import interclr, interclr_moco
from vantage.recipes.jcl import jcl, jcl_ring, jcl_vanilla
from vantage.recipes.local_aggregation import local_aggregation
from vantage.recipes.moco import moco_v1, moco_v2
from vantage.recipes.multi_crop import moco_v2_multi_crop, with_small_crops
from vantage.recipes.pirl import pirl
from vantage.recipes.ring import (
    ball_cmc,
    ball_ir,
    ball_moco,
    cave_cmc,
    cave_ir,
    ring_cmc,
    ring_cmc_clusters,
    ring_ir,
    ring_ir_clusters,
    ring_moco,
)
from vantage.recipes.simclr import simclr

__all__ = [
    "RECIPES",
    "ball_cmc",
    "ball_ir",
    "ball_moco",
    "cave_cmc",
    "cave_ir",
    "cmc",
    "cmc_softmax",
    "debiased",
    "everything",
    "hcl",
    "infomin",
    "infomin_linear",
    "instance_discrimination",
    "instance_discrimination_full",
    "instance_discrimination_nce",
    "interclr",
    "interclr_moco",
    "interclr_ring",
    "jcl",
    "jcl_interclr",
    "jcl_ring",
    "jcl_vanilla",
    "local_aggregation",
    "moco_v1",
    "moco_v2",
    "moco_v2_multi_crop",
    "pirl",
    "ring_cmc",
    "ring_cmc_clusters",
    "ring_ir",
    "ring_ir_clusters",
    "ring_moco",
    "simclr",
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
"""Every recipe, for the command line and the tests."""
