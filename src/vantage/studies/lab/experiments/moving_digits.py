"""A row of InfoMin's Table 4 as a cell: digits that move over photographs, of which two views share some factors."""

from collections.abc import Sequence
from dataclasses import dataclass

from vantage.data import Source
from vantage.encoding import Work
from vantage.schedules import CosineByStep
from vantage.studies.lab.sets import Split
from vantage.studies.moving_mnist import ClipTraining, LinearHeads, Scene
from vantage.studies.moving_mnist.clips import Clips
from vantage.studies.moving_mnist.contrast import ClipContrast
from vantage.studies.moving_mnist.evaluation import SupervisedTraining
from vantage.studies.moving_mnist.image_set import load_backgrounds, load_digits
from vantage.studies.moving_mnist.networks import ClipEncoder
from vantage.studies.moving_mnist.rows import (
    INFORMATION,
    Bench,
    ContrastiveRow,
    SupervisedRow,
    TableRow,
    UntrainedRow,
    chance,
)
from vantage.studies.moving_mnist.shared_factors import SharedFactors
from vantage.training.optimizers import AdamW
from vantage.training.run import Data

__all__ = ["CHANCE", "MovingDigits"]

CHANCE = "chance"
"""The row of constant answers."""

_TEST_SEED, _CLASSES, _BATCH, _SIDE = 0x7E57, 10, 64, 96
_PASSES_OF_A_STEP = 250


@dataclass(frozen=True)
class MovingDigits:
    """Colorful Moving MNIST on two cores (arXiv 2005.10243, section 4.1): one row of the table with one seed.

    The first view is frames 1 and 2, the second refers to frame 3 (paper: 1 to 10, and 20), and AdamW at .001 replaces
    SGD at .03, since the paper's 94,000 steps would take days. Backgrounds are of ten classes, scaled to 96 pixels and
    cropped to 64 (the paper: STL-10).
    """

    row: str
    """The shared factors, such as "digit, location"; "supervised", "untrained" or "chance"."""

    steps: int = 1_600
    """Training steps of 64 clips."""

    frames: int = 4_000
    """Training frames for the linear layers."""

    test_frames: int = 2_000
    """Test frames."""

    information_clips: int = 1_280
    """Test clips on which I_NCE is measured."""

    epochs: int = 100
    """Passes of the linear layers over their frames."""

    digits: str = "mnist"
    """Name of the set of digits."""

    backgrounds: str = "tiny-imagenet-50"
    """Name of the set of photographs."""

    name = "moving digits"
    version = 1

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of its image sets."""
        return (self.digits, self.backgrounds)

    @property
    def data(self) -> Data:
        """All images of each set may be used."""
        return Data()

    @property
    def passes(self) -> float:
        """Its approximate cost."""
        return float(_PASSES_OF_A_STEP * self.steps) if self.row not in ("untrained", CHANCE) else 0.0

    def measure_on(self, seed: int, splits: Sequence[Split], work: Work) -> dict[str, float]:
        """Errors on test frames: of the digit and of the background in percent, of the location in pixels; and I_NCE in
        nats for rows that are trained by contrast."""
        bench = self._bench(splits, seed, work)
        numbers = chance(bench) if self.row == CHANCE else self._row()(bench, seed, lambda frames, note: None)
        names = {"location": "pixels", INFORMATION: "I_NCE"}
        return {names.get(name, name): value for name, value in numbers.items()}

    def course(self, digits: int) -> ClipTraining:
        """How networks are trained: as few passes over the digits as hold the steps, all of one length."""
        epochs = -(-self.steps // max(1, digits // _BATCH))
        clips = _BATCH * (self.steps // epochs)
        return ClipTraining(epochs, _BATCH, clips, AdamW(weight_decay=0.0), CosineByStep(0.001))

    def _row(self) -> TableRow:
        match self.row:
            case "supervised":
                return SupervisedRow()
            case "untrained":
                return UntrainedRow()
        return ContrastiveRow(SharedFactors(**dict.fromkeys(self.row.split(", "), True)))

    def _bench(self, splits: Sequence[Split], seed: int, work: Work) -> Bench:
        """Test clips are the same for every seed."""
        train, test = (
            self._clips((splits[0].train, splits[1].train), seed, work),
            self._clips((splits[0].test, splits[1].test), _TEST_SEED, work),
        )
        course = self.course(len(train))
        encoder = ClipEncoder()
        return Bench(
            train,
            test,
            ClipContrast(encoder, 0.1, course),
            SupervisedTraining(encoder.frame, course),
            LinearHeads(ClipTraining(self.epochs), self.frames),
            self.test_frames,
            self.information_clips,
        )

    def _clips(self, sources: tuple[Source, Source], seed: int, work: Work) -> Clips:
        device = work.resolved_device()
        digits = load_digits(sources[0], _CLASSES, work.num_workers).to(device)
        classes = min(_CLASSES, len(sources[1].classes))
        backgrounds = load_backgrounds(sources[1], _SIDE, classes, work.num_workers).to(device)
        return Clips(digits, backgrounds, Scene(seen=2, last=3), seed)
