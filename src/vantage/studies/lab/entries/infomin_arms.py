"""The arms of InfoMin's figures about views (Tian et al., arXiv 2005.10243): runs from scratch that each vary one thing
about their views."""

from dataclasses import replace

from vantage.recipes import cmc_softmax, moco_v1, moco_v2, simclr
from vantage.studies.lab.entry import Arm, Cell, Gate
from vantage.studies.lab.measures.vectors import ProtocolAccuracy
from vantage.studies.lab.measures.view_information import ViewInformation
from vantage.studies.lab.two_cores import (
    arm_at_papers_rate,
    floors,
    gate,
    half_encoders,
    halves_in_batch,
    own_floors,
    two_core_run,
    with_temperature,
)
from vantage.studies.sweep.categorical import ColorSpaces, Ladder
from vantage.studies.sweep.sweeps import BlurWidth, CropBound, JitterStrength, PatchDistance, Sweep
from vantage.training.optimizers import SGD
from vantage.training.run import Run

__all__ = [
    "AT_PAPERS_RATE",
    "COLORS",
    "CROPS",
    "DISTANCES",
    "FROM_SCRATCH",
    "JITTERS",
    "LADDER",
    "MEASURES",
    "WIDTHS",
    "floors_of",
    "own_floors_of",
]

_EPOCHS = 4
MEASURES = (ProtocolAccuracy(), ViewInformation())
"""What is measured on every cell: accuracy, and the information that its views share."""
FROM_SCRATCH = "each cell from scratch; I_NCE on 2,048 test images by the run's own critic"
"""How the cells are trained, in words."""
AT_PAPERS_RATE = f"the papers' learning rate by batch size, a quarter of that of other entries; {FROM_SCRATCH}"
"""The same for cells at that rate."""


def _sweep_arms(sweep: Sweep, run: Run, name: str) -> dict[str, Arm]:
    """An arm for each point, named by its label: .2 for 0.2."""
    points = {f"{name}{point.label.replace('0.', '.')}": point.run for point in sweep.points(run)}
    return {label: Arm(two_core_run(run, _EPOCHS, falling=True)) for label, run in points.items()}


def _slow_arms(sweep: Sweep, run: Run, name: str) -> dict[str, Arm]:
    """The same at the papers' learning rate: at four times that, as elsewhere, jitter of strength 1 was not learned in
    five times as many images, and stronger views later still."""
    arms = _sweep_arms(sweep, run, name)
    return {label: arm_at_papers_rate(arm) for label, arm in arms.items()}


_MLP = with_temperature(moco_v2(32), 0.15)
_LINEAR = replace(with_temperature(moco_v2(32), 0.07), encoders=moco_v1(32).encoders)
_CROPS = CropBound((0.02, 0.08, 0.2, 0.4, 0.7))
_JITTERS = JitterStrength((0.125, 0.5, 1.0, 1.5, 2.5))
CROPS = _sweep_arms(_CROPS, _MLP, "MLP, c ") | _sweep_arms(_CROPS, _LINEAR, "linear, c ")
"""Figure 13: the smallest share of the image that a crop may show, with either head."""
JITTERS = _slow_arms(_JITTERS, _MLP, "MLP, x ") | _slow_arms(_JITTERS, _LINEAR, "linear, x ")
"""Figure 14: the strength of color jitter, with either head."""
LADDER = _slow_arms(Ladder(), moco_v1(32), "")
"""Figure 12: augmentations, each step with one more."""


def floors_of(base: str, arms: dict[str, Arm]) -> tuple[tuple[Cell, ...], Gate]:
    """Raw pixels and a random encoder for the views of a base, and the gate that the base is above both."""
    return floors(arms[base]), gate(base)


def own_floors_of(arms: dict[str, Arm]) -> tuple[tuple[Cell, ...], tuple[Gate, ...]]:
    """The same for every arm, where each has other inputs than the others; the gates in the order of the arms."""
    cells = tuple(floor for name, arm in arms.items() for floor in own_floors(name, arm))
    return cells, tuple(gate(name, name) for name in arms)


_SIMCLR = replace(simclr(32), optimizer=SGD(momentum=0.9, weight_decay=1e-4))
DISTANCES = _sweep_arms(PatchDistance((16, 24, 32, 40, 48), patch=16), _SIMCLR, "d ")
"""Figure 3: how far apart two patches are, in pixels."""
_BANDS = _sweep_arms(BlurWidth((0.25, 0.3, 0.35, 0.5, 0.75, 1.25)), cmc_softmax(32), "σ ")
WIDTHS = {name: replace(arm, run=replace(arm.run, encoders=half_encoders((3, 3)))) for name, arm in _BANDS.items()}
"""Figure 9: the width of the blur that separates low from high frequencies, with a network for each, as for channels
(B.3). One network would normalize both together and not see the high frequencies of a narrow blur. Negatives come from
CMC's bank: against those of a batch, pilots told images apart by their edges and ended below their random encoders."""


_SPACES = ColorSpaces(("RGB", "XYZ", "HSV", "YCbCr", "YDbDr", "Lab"))
_FULL = _sweep_arms(_SPACES, cmc_softmax(32), "")
COLORS = {name: replace(full, run=halves_in_batch(full.run)) for name, full in _FULL.items()}
"""Figure 4: a color space whose channels are divided between two views, with a network for each."""
