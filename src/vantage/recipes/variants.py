"""Other settings that were published, one line each, in the order of `vantage recipes`."""
# isort: skip_file

from vantage.composition.public import make_public
from vantage.recipes.simclr import simclr_1000 as simclr_1000
from vantage.recipes.instance_discrimination import (
    instance_discrimination_pycontrast as instance_discrimination_pycontrast,
)
from vantage.recipes.cmc import cmc_halves as cmc_halves
from vantage.recipes.pirl import pirl_pycontrast as pirl_pycontrast
from vantage.recipes.pirl import pirl_vissl as pirl_vissl
from vantage.recipes.infomin import infomin_no_jigsaw as infomin_no_jigsaw
from vantage.recipes.interclr import interclr_1000 as interclr_1000
from vantage.recipes.interclr import interclr_exact as interclr_exact
from vantage.recipes.interclr import interclr_moco_released as interclr_moco_released
from vantage.recipes.interclr_study import interclr_random as interclr_random
from vantage.recipes.interclr_study import interclr_offline as interclr_offline
from vantage.recipes.interclr_study import interclr_hard as interclr_hard
from vantage.recipes.interclr_study import interclr_semi_hard as interclr_semi_hard
from vantage.recipes.interclr_study import interclr_semi_easy as interclr_semi_easy
from vantage.recipes.interclr_study import interclr_intra_margin as interclr_intra_margin
from vantage.recipes.interclr_study import interclr_inter_margin as interclr_inter_margin
from vantage.recipes.interclr_study import interclr_weighted as interclr_weighted
from vantage.recipes.interclr_study import interclr_intra_only as interclr_intra_only
from vantage.recipes.local_aggregation import local_aggregation_warmed as local_aggregation_warmed
from vantage.recipes.jcl import jcl_released as jcl_released
from vantage.recipes.jcl import jcl_resnet18 as jcl_resnet18
from vantage.recipes.cnce import cnce_ir as cnce_ir
from vantage.recipes.cnce import cnce_moco as cnce_moco
from vantage.recipes.cnce import cnce_cmc as cnce_cmc
from vantage.recipes.cnce import cnce_la as cnce_la
from vantage.recipes.cnce import cnce_moco_released as cnce_moco_released
from vantage.recipes.ring import ring_ir_unannealed as ring_ir_unannealed
from vantage.recipes.ring import ring_ir_absolute as ring_ir_absolute
from vantage.recipes.ring import ring_ir_neighbors as ring_ir_neighbors
from vantage.recipes.ring import ring_ir_released as ring_ir_released
from vantage.recipes.ring import ring_moco_decoupled as ring_moco_decoupled

__all__ = make_public(globals())  # pyright: ignore
