"""A row of InfoMin's Table 5 as a cell: views learned by a flow, what they teach, and how much they share."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from vantage.data import Source
from vantage.encoders import Convolutions
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.encoder import load
from vantage.frozen.networks import trained_networks
from vantage.progress import QuietProgress
from vantage.recipes import cmc_softmax
from vantage.studies.lab.contracts import Subject
from vantage.studies.lab.measures.vectors import ProtocolAccuracy
from vantage.studies.lab.measures.view_information import ViewInformation
from vantage.studies.lab.sets import Split
from vantage.studies.lab.two_cores import encoders_by_view, halves_in_batch, two_core_run
from vantage.studies.view_learning import LEARNINGS, Jointly, Rates, learn
from vantage.training.loop import train
from vantage.training.run import Data, Run
from vantage.views import RGB, ColorSpace, Flow, RealNVP, TwoSided, YDbDr, cmc_views

__all__ = ["RAW_VIEWS", "SPACES", "LearnedViewsCell", "contrast"]

RAW_VIEWS = "raw views"
"""The row without learning: the unchanged channels of the color space."""

SPACES: dict[str, ColorSpace] = {"RGB": RGB(), "YDbDr": YDbDr()}
"""The color spaces by name."""
_FLOWS = {"VP": Flow(TwoSided(16)), "NVP": Flow(RealNVP(16))}
_SIZE, _BATCH, _SMALL = 16, 64, (16, 32, 64)
_PASSES_OF_A_STEP = 250
_HALF_WIDTH = 128


@dataclass(frozen=True)
class LearnedViewsCell:
    """InfoMin's learned views on two cores (arXiv 2005.10243, section 4.2): a flow is learned on small crops, with and
    without labels, then networks are trained by contrast on its first channel and the other two.

    Critics and classifiers have three convolutions. All parts are updated in one step, at five times the paper's
    learning rates, since the paper trains about a hundred times as long.
    """

    learning: str
    """"unsupervised", "supervised", "semi-supervised", or `RAW_VIEWS`."""

    space: str = "RGB"
    """The color space that goes into the flow: "RGB" or "YDbDr"."""

    flow: str = "VP"
    """"VP" for a flow that preserves volume, with InfoMin's F and G (`TwoSided`); "NVP" for one that does not."""

    steps: int = 224
    """Steps of learning the views, with 64 images each."""

    labels: int = 2_500
    """Number of images whose labels are used, in the ways of learning that use labels."""

    epochs: int = 4
    """Passes over the images when the networks are trained by contrast."""

    training_images: int = 7_500
    """Maximum number of training images, equally many of each class."""

    set_name: str = "tiny-imagenet-50"
    """Name of the image set."""

    widths: tuple[int, ...] | None = field(default=None, metadata={"later": True})
    """Channels of the layers of the two networks that are trained by contrast; None for half of the usual widths."""

    name = "learned views"
    version = 2

    @property
    def sets(self) -> tuple[str, ...]:
        """Its image set."""
        return (self.set_name,)

    @property
    def data(self) -> Data:
        """How many images are used."""
        return Data(hold_out=0.1, max_images=self.training_images)

    @property
    def passes(self) -> float:
        """Its approximate cost."""
        of_flow = 0 if self.learning == RAW_VIEWS else _PASSES_OF_A_STEP * self.steps
        wider = (self.widths[-1] / _HALF_WIDTH) ** 2 if self.widths else 1.0
        return 3.0 * wider * self.epochs * self.training_images + of_flow

    def measure_on(self, seed: int, splits: Sequence[Split], work: Work) -> dict[str, float]:
        """The accuracies of `ProtocolAccuracy`, and I_NCE of the views, estimated by the networks' own critic."""
        (split,) = splits
        with TemporaryDirectory() as folder:
            space = SPACES[self.space]
            if self.learning != RAW_VIEWS:
                space = self._learned_space(space, seed, split.train, Path(folder) / "views", work)
            run = replace(contrast(space, self.epochs, self.widths), seed=seed, data=self.data)
            if not train(run, Path(folder) / "run", source=split.whole).finished:
                raise UserError("the training was stopped: run the same command again")
            networks = partial(trained_networks, Path(folder) / "run")
            subject = Subject(load(Path(folder) / "run"), networks, split, seed, work, _no_other)
            return ProtocolAccuracy()(subject) | ViewInformation()(subject)

    def _learned_space(self, space: ColorSpace, seed: int, source: Source, folder: Path, work: Work) -> ColorSpace:
        preset = next(each for each in LEARNINGS if each.__name__ == self.learning.replace("-", "_"))
        learning = preset(_SIZE, (Convolutions(_SMALL, 1), Convolutions(_SMALL, 2)))
        images = self.labels if self.learning == "supervised" else len(source)
        learning = replace(
            learning,
            space=space,
            flow=_FLOWS[self.flow],
            learning_rates=Rates(generator=1e-3, critics=3e-3, classifiers=3e-3),
            updates=Jointly(),
            batch_size=_BATCH,
            labeled_batch_size=_BATCH,
            labels=min(self.labels, len(source)),
            epochs=max(1, round(self.steps * _BATCH / (0.9 * min(images, len(source))))),
            seed=seed,
            device=str(work.resolved_device()),
        )
        outcome = learn(learning, folder, QuietProgress(), source=source)
        if not outcome.finished or outcome.last is None:
            raise UserError("the learning of views was stopped: run the same command again")
        return outcome.last


def contrast(space: ColorSpace, epochs: int = 4, widths: tuple[int, ...] | None = None) -> Run:
    """CMC within the batch on the first channel of a color space and the other two, with networks of half the width, or
    of these widths."""
    run = cmc_softmax(32)
    run = halves_in_batch(two_core_run(replace(run, views=cmc_views(32, space)), epochs, falling=True))
    return run if widths is None else replace(run, encoders=encoders_by_view((1, 2), widths))


def _no_other(name: str, data: Data) -> Split:
    raise UserError(f"these views are judged on their own images, not on {name}")
