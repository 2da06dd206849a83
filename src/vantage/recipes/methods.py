"""Every recipe that is a method of its own, one line each, in the order of `vantage recipes`."""
# isort: skip_file

from vantage.composition.public import make_public
from vantage.recipes.simclr import simclr as simclr
from vantage.recipes.debiased import debiased as debiased
from vantage.recipes.hcl import hcl as hcl
from vantage.recipes.moco import moco_v1 as moco_v1
from vantage.recipes.moco import moco_v2 as moco_v2
from vantage.recipes.multi_crop import moco_v2_multi_crop as moco_v2_multi_crop
from vantage.recipes.instance_discrimination import instance_discrimination as instance_discrimination
from vantage.recipes.instance_discrimination import instance_discrimination_nce as instance_discrimination_nce
from vantage.recipes.instance_discrimination import instance_discrimination_full as instance_discrimination_full
from vantage.recipes.cmc import cmc as cmc
from vantage.recipes.cmc import cmc_softmax as cmc_softmax
from vantage.recipes.pirl import pirl as pirl
from vantage.recipes.infomin import infomin as infomin
from vantage.recipes.infomin import infomin_linear as infomin_linear
from vantage.recipes.interclr import interclr as interclr
from vantage.recipes.interclr import interclr_moco as interclr_moco
from vantage.recipes.local_aggregation import local_aggregation as local_aggregation
from vantage.recipes.jcl import jcl as jcl
from vantage.recipes.jcl import jcl_vanilla as jcl_vanilla
from vantage.recipes.ring import ring_ir as ring_ir
from vantage.recipes.ring import ring_moco as ring_moco
from vantage.recipes.ring import ball_ir as ball_ir
from vantage.recipes.ring import ball_moco as ball_moco
from vantage.recipes.ring import ring_cmc as ring_cmc
from vantage.recipes.ring import ball_cmc as ball_cmc
from vantage.recipes.ring import cave_ir as cave_ir
from vantage.recipes.ring import cave_cmc as cave_cmc
from vantage.recipes.ring import ring_ir_clusters as ring_ir_clusters
from vantage.recipes.ring import ring_cmc_clusters as ring_cmc_clusters
from vantage.recipes.jcl import jcl_ring as jcl_ring
from vantage.recipes.combinations import interclr_ring as interclr_ring
from vantage.recipes.combinations import jcl_interclr as jcl_interclr
from vantage.recipes.combinations import everything as everything

__all__ = make_public(globals())  # pyright: ignore
