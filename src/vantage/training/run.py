"""The configuration of a run, its checks, and how it is adapted to a data set."""

from dataclasses import dataclass, field, replace
from typing import Literal

from vantage.branch import Branch, views_needed
from vantage.composition.field_types import check_types, expect
from vantage.composition.fitting import fit_all, parts_of, smaller_batch, stretch_all
from vantage.data.order import WINDOW
from vantage.encoders import Role
from vantage.errors import UserError, quantity
from vantage.schedules import Adaptive, LearningRate
from vantage.training.optimizers import Optimizer
from vantage.views import ProgressiveResizing, ViewMaker

__all__ = ["Data", "Hardware", "Monitoring", "Run"]

_MOST_WORKERS = 1024  # processes on one machine: a limit for settings from elsewhere


@dataclass(frozen=True)
class Data:
    """Where the images come from and how they are loaded."""

    path: str = ""
    """Folder, list file, .npz/.npy, .parquet, .tar, shards such as train-{000..099}.tar, or torchvision:NAME; `#train`
    picks a part of it."""

    on_bad_image: Literal["skip", "stop"] = "skip"
    """Unreadable images: train without them (unless they are more than three and exceed 1 %), or stop at once."""

    num_workers: int = 2
    """Processes that decode images, for sets that are streamed: of several image sizes, or too large to keep."""

    resident_bytes: int = 2 << 30
    """Sets of one image size and at most this many bytes are decoded once and kept on the device; 0: stream all."""

    resident_side: int = field(default=0, metadata={"later": True})
    """Keep sets of several image sizes too, or of large images: each is scaled until its short side has this many
    pixels, and its middle square is kept. 0: images stay as they are, and such sets are streamed."""

    hold_out: float = 0.0
    """Share of each class (of all images if none has a label) that is kept out of training: .2 keeps out the images
    that `evaluate` tests on if it is given no test set."""

    max_images: int = 0
    """Train on only this many of the other images, equally many of each class if images have labels; 0: all."""

    shuffle_window: int = WINDOW
    """Images of tar shards that are shuffled together: an epoch takes the shards in random order, and shuffles about
    this many images of consecutive shards at a time. A smaller number keeps reads closer together, for remote disks."""

    def __post_init__(self) -> None:
        _at_least(0, "data", hold_out=self.hold_out, num_workers=self.num_workers, max_images=self.max_images)
        _at_least(0, "data", resident_bytes=self.resident_bytes, resident_side=self.resident_side)
        _check_workers("data", num_workers=self.num_workers)
        _at_least(1, "data", shuffle_window=self.shuffle_window)
        if self.hold_out >= 1:
            raise UserError(f"data.hold_out is {self.hold_out}: give a share below 1, so that some images are left")


@dataclass(frozen=True)
class Hardware:
    """What a run computes on."""

    accelerator: Literal["auto", "cpu", "cuda"] = "auto"
    """Kind of device; auto is a CUDA device if there is one, else the CPU."""

    devices: int = 1
    """Devices per machine."""

    nodes: int = 1
    """Number of machines."""

    precision: Literal["32-true", "bf16-mixed", "16-mixed", "64-true"] = "bf16-mixed"
    """Precision of the networks; losses are float32 or better. Without bf16 support, 32-true is used and reported."""

    compile: bool = False
    """Whether to compile training steps (`vantage.training.computing.compiling`). On a CPU this was slower."""

    graphs: bool = field(default=True, metadata={"later": True})
    """Whether a CUDA device repeats recorded steps where it can (`vantage.training.computing.cuda_graphs`)."""

    threads: int = field(default=0, metadata={"later": True})
    """Threads of each process on a CPU; 0: one for each core. Another number may change how results are rounded."""

    def __post_init__(self) -> None:
        _at_least(1, "hardware", devices=self.devices, nodes=self.nodes, threads=self.threads or 1)
        _check_workers("hardware", devices=self.devices, threads=self.threads)

    @property
    def processes(self) -> int:
        """How many processes train together: one for each device of each machine."""
        return self.devices * self.nodes


@dataclass(frozen=True)
class Monitoring:
    """What a run reports and saves while it trains."""

    log_every: int = 10
    """Steps between readings of the loss."""

    checkpoint_minutes: float = 10.0
    """Longest time between two checkpoints. Epochs end with one too, unless writing takes over a tenth of the time."""

    knn_every: int = 0
    """Epochs between measurements of kNN accuracy, on a tenth of the labeled images; 0: never."""

    keep_every: int = field(default=0, metadata={"later": True})
    """Epochs between those that are kept for good, each a run of its own in the run's folder `epochs`; 0: none."""

    minutes: float = 0.0
    """Planned minutes of training; a warning tells if it will take over a tenth longer. 0: no plan."""

    def __post_init__(self) -> None:
        _at_least(1, "monitoring", log_every=self.log_every)
        _at_least(0, "monitoring", checkpoint_minutes=self.checkpoint_minutes, knn_every=self.knn_every)
        _at_least(0, "monitoring", minutes=self.minutes, keep_every=self.keep_every)


@dataclass(frozen=True)
class Run:
    """The complete configuration of a run. Recipes return one; `dataclasses.replace` makes variants."""

    recipe: str
    """Name of the method."""

    views: ViewMaker
    """How views are made."""

    encoders: Role
    """Which networks encode them."""

    branches: tuple[Branch, ...]
    """The contrasts; the loss is their weighted sum."""

    optimizer: Optimizer
    """What updates the parameters."""

    learning_rate: LearningRate
    """Learning rate as a function of the step, for the whole batch."""

    epochs: int = 200
    """Passes over the data set."""

    batch_size: int = 256
    """Images per optimizer step, over all processes and accumulated parts."""

    accumulate: int = 1
    """Parts that a batch is cut into, to save memory. Views, losses, gradients, memories and BatchNorm are those of the
    whole batch. In-batch methods (SimCLR) compute about a third more for it, and so do several branches if a query may
    have no positive in one of them (local aggregation). Only networks with dropout differ: they drop other units."""

    resizing: ProgressiveResizing | None = field(default=None, metadata={"later": True})
    """Views that grow during training, for short runs; None: full size throughout."""

    seed: int = 0
    """All randomness is a function of the seed and the step."""

    data: Data = field(default_factory=Data)
    """Where the images come from."""

    hardware: Hardware = field(default_factory=Hardware)
    """What the run computes on."""

    monitoring: Monitoring = field(default_factory=Monitoring)
    """What it reports and saves while it trains."""

    def __post_init__(self) -> None:
        if not isinstance(self.branches, tuple):
            raise UserError(f"Run.branches: expected a tuple, found {type(self.branches).__name__}; write (branch,)")
        check_types(self)
        if self.views.count < (views := views_needed(self.branches)):
            raise UserError(f"the branches need {views} views, but the views make {self.views.count}: add a view")
        _at_least(1, "", epochs=self.epochs, batch_size=self.batch_size, accumulate=self.accumulate)
        follows = any(isinstance(part, Adaptive) and part.needs_accuracy for part in parts_of(self.branches))
        if follows and not self.monitoring.knn_every:
            raise UserError("a schedule follows the kNN accuracy, which is not measured: set monitoring.knn_every")
        if self.batch_size % self.parts:
            raise UserError(
                f"a batch of {self.batch_size} images does not divide into {self.parts} equal parts "
                f"({self.accumulate} accumulated × {self.hardware.devices} devices × {self.hardware.nodes} machines): "
                f"use a batch of {max(1, self.batch_size // self.parts) * self.parts}, or change one of these numbers"
            )

    @property
    def parts(self) -> int:
        """How many equal parts a batch is divided into: accumulated ones, over all processes."""
        return self.accumulate * self.hardware.processes

    def steps_per_epoch(self, images: int) -> int:
        """Whole batches in this many images."""
        return images // self.batch_size

    def fit(self, images: int, batch_size: int | None = None) -> "Run":
        """This run, adapted to a data set of `images` images.

        * batch size: `batch_size` if given; otherwise halved until an epoch has at least 8 steps, or 8 images,
          and rounded to equal `parts`. The learning rate follows it (linear scaling rule);
        * epochs: sets below 50,000 images train √(50,000 / images) times as long, at most 4 times;
        * memories, rules, groups of BatchNorm and schedules counted in epochs adapt themselves (`Queue.fit_to`,
          `Sample.fit_to`, `SplitBatchNorm.fit_to`, `ByEpoch`).

        Raises `UserError` for fewer images than `batch_size` or, if it is omitted, than the smallest batch (usually 8).
        """
        _at_least(0, "", images=images)
        _at_least(1, "", batch_size=1 if batch_size is None else batch_size)
        expect(images, int, "images", "a whole number")
        if batch_size is None:
            batch_size = smaller_batch(self.batch_size, images, self.parts)
            if batch_size > images:
                raise UserError(
                    f"found {quantity(images, 'image')}, but the smallest batch is {batch_size}: give at least as many"
                )
        elif batch_size > images:
            raise UserError(f"a batch of {batch_size} is larger than the set of {images} images: give at most {images}")
        longer = min(4.0, max(1.0, (50_000 / images) ** 0.5))
        run = self.rescale(batch_size, round(self.epochs * longer))
        parts = {name: fit_all(getattr(run, name), images, batch_size) for name in ("branches", "encoders")}
        return replace(run, **parts)

    def rescale(self, batch_size: int | None = None, epochs: int | None = None) -> "Run":
        """This run with another batch size or number of epochs.

        The learning rate is proportional to the batch size; its schedule and everything else that is counted in epochs
        is stretched. Memories and groups of BatchNorm stay as they are; `fit` changes them too.
        """
        batch_size = self.batch_size if batch_size is None else batch_size
        epochs = self.epochs if epochs is None else epochs
        _at_least(1, "", batch_size=batch_size, epochs=epochs)  # before a schedule is stretched by an invalid number
        expect(epochs, int, "epochs", "a whole number")
        learning_rate = self.learning_rate.scale(batch_size / self.batch_size).for_epochs(self.epochs, epochs)
        parts = (self.branches, self.encoders)
        branches, encoders = stretch_all(parts, epochs / self.epochs, self.batch_size / batch_size)
        run = replace(self, batch_size=batch_size, epochs=epochs, learning_rate=learning_rate)
        return replace(run, branches=branches, encoders=encoders)


def _at_least(least: int, part: str, **values: int | float) -> None:
    for name, value in values.items():
        expect(value, int | float, name, "a number")
        if not value >= least:
            raise UserError(f"{part}{'.' if part else ''}{name} is {value}: give at least {least}")


def _check_workers(part: str, **values: int) -> None:
    for name, value in values.items():
        if value > _MOST_WORKERS:
            raise UserError(f"{part}.{name} is {value}: give at most {_MOST_WORKERS:,}")
