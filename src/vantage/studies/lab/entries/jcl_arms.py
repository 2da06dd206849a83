"""The arms of JCL's tables and figures on two cores (Cai et al., arXiv 2009.14776): branches of one warm base."""

from dataclasses import replace

from vantage.encoders import Momentum
from vantage.estimators import JCL
from vantage.recipes import jcl, jcl_vanilla, moco_v2
from vantage.schedules import Constant
from vantage.studies.lab.entry import Arm, Cell
from vantage.studies.lab.measures.top_five import TopFive
from vantage.studies.lab.measures.vectors import AugmentationSimilarity, JointKeys, ProtocolAccuracy
from vantage.studies.lab.two_cores import base, branch, floors, gate, with_temperature
from vantage.training.run import Run
from vantage.views import moco_v2_views

__all__ = ["ARMS", "AT_EQUAL_COST", "ERROR", "FLOORS", "GATE", "LINEAR", "at_temperature", "with_keys", "with_strength"]

LINEAR, ERROR = "linear-cached", "gap of the bound"
_MEASURES = (ProtocolAccuracy(), AugmentationSimilarity())


def _shuffle_images(run: Run) -> Run:
    """The run with keys shuffled image by image, as in the base, not one by one as in the supplement, so that arms
    differ only in the loss."""
    assert isinstance(run.encoders, Momentum)
    return replace(run, encoders=replace(run.encoders, shuffle="images"))


def _jcl(strength: float, temperature: float = 0.2) -> Run:
    run = _shuffle_images(jcl(32))
    (only,) = run.branches
    return replace(run, branches=(replace(only, estimator=JCL(temperature, Constant(strength))),))


_BASE = base(with_temperature(moco_v2(32), 0.2))
_MOCO, _JCL = branch(with_temperature(moco_v2(32), 0.2), _BASE), branch(_jcl(4.0), _BASE)

FLOORS = (*floors(_BASE, AugmentationSimilarity(), JointKeys()), Cell("base", _BASE, (ProtocolAccuracy(),)))
"""The base, and the cells that it must be above."""
ARMS = (
    Cell("MoCo v2", _MOCO, (*_MEASURES, JointKeys(), TopFive()), {"top-1": 67.6, "top-5": 88.0}),
    Cell("JCL", _JCL, (*_MEASURES, JointKeys(), TopFive()), {"top-1": 68.7, "top-5": 89.0}),
    Cell("JCL, λ 0", branch(_jcl(0.0), _BASE), _MEASURES),
    Cell("five keys, Eq. 3", branch(_shuffle_images(jcl_vanilla(32)), _BASE), _MEASURES),
)
"""The arms of Table 1 that are run here, MoCo v2 first."""
AT_EQUAL_COST = Cell(
    "MoCo v2, twice the images",
    branch(with_temperature(moco_v2(32), 0.2), _BASE, epochs=2),
    (ProtocolAccuracy(),),
)
"""An image costs 3 + M′ forward passes, since a backward pass costs two: eight for JCL, four for MoCo v2."""
GATE = gate("base")
"""The base must be above raw pixels and a random encoder."""


def with_keys(count: int) -> Arm:
    """The base continued with this number of keys, each from a separate view."""
    run = _jcl(4.0)
    (only,) = run.branches
    keys = tuple(range(1, count + 1))
    return branch(replace(run, views=moco_v2_views(32, count=1 + count), branches=(replace(only, keys=keys),)), _BASE)


def with_strength(strength: float) -> Arm:
    """The base continued with another λ."""
    return branch(_jcl(strength), _BASE)


def at_temperature(temperature: float, epochs: int) -> Arm:
    """JCL from scratch at another τ, which would be a shock to a warm base."""
    return base(_jcl(4.0, temperature), epochs)
