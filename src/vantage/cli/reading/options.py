"""Options that several verbs share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from vantage.cli.printing.console import Console
from vantage.cli.reading.arguments import Word
from vantage.cli.reading.images import look_at
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.data import Source
    from vantage.encoding import Work
    from vantage.training.run import Hardware

__all__ = [
    "ComputeOptions",
    "DeviceOptions",
    "EvaluatedOptions",
    "ImageOptions",
    "LoadingOptions",
    "NetworkOptions",
    "ReadingOptions",
    "RunFolder",
    "RunOrWeights",
    "ViewOptions",
    "WorkOptions",
    "as_started",
    "assignments",
    "check_count",
    "check_device",
    "check_devices",
]


@dataclass(frozen=True)
class RunFolder:
    """The run that a verb works on."""

    run: Annotated[str, Word("RUN", positional=True)]
    """Folder of the run."""

    @property
    def folder(self) -> Path:
        """The folder."""
        return Path(self.run)


@dataclass(frozen=True)
class RunOrWeights(RunFolder):
    """The run that a verb works on, or weights from elsewhere."""

    run: Annotated[str, Word("RUN", positional=True)]
    """Folder of the run; or weights from elsewhere, torchvision:resnet18=FILE or timm:NAME=FILE."""

    @property
    def home(self) -> Path:
        """The folder that keeps results."""
        from vantage.frozen.outside import home_of

        return home_of(self.folder)


@dataclass(frozen=True)
class NetworkOptions:
    """One network of a run, or all of them."""

    network: int | None = None
    """Number of the network, if each view has its own."""


@dataclass(frozen=True)
class EvaluatedOptions(NetworkOptions):
    """What a verb evaluates: one network of a run, or all of them, and perhaps baselines."""

    baselines: bool = False
    """Also evaluate raw pixels and a random encoder."""


@dataclass(frozen=True)
class ImageOptions:
    """The images that a verb works on."""

    data: Annotated[str, Word("PATH")]
    """A folder, list (.txt), table (.csv), .npz, .parquet, .tar, shards 'train-{00..99}.tar', torchvision:NAME, or your
    own MODULE:NAME; #train at the end selects a part."""


@dataclass(frozen=True, kw_only=True)
class ViewOptions(ImageOptions):
    """The images that a verb works on, and the size of the views that it makes of them."""

    size: int | None = None
    """Side of a view in pixels; if omitted, 32, 64 or 224."""


@dataclass(frozen=True)
class ReadingOptions:
    """How a verb reads its images."""

    on_bad_image: Annotated[Literal["skip", "stop"], Word("HOW")] = "skip"
    """Unreadable images: skip (up to 3, or 1 % if that is more) or stop."""

    num_workers: int | None = None
    """Threads that decode images; if omitted, all cores."""

    def __post_init__(self) -> None:
        check_count("--num-workers", self.num_workers)

    def threads(self) -> int:
        """Threads that decode images."""
        from vantage.data.threads import CORES

        return CORES if self.num_workers is None else self.num_workers

    def open(self, path: str, console: Console) -> "Source":
        """Open the readable images at a path, and note how many there are."""
        return self._open(path, console, together=False)

    def _open(self, path: str, console: Console, together: bool) -> "Source":
        from vantage.training.run import Data

        source, summary = look_at(Data(path, self.on_bad_image, self.threads()), console, together, trains=False)
        console.note(summary)
        return source

    def check(self, *paths: str) -> None:
        """Raises `UserError` if one of the paths does not exist; called before any of them is read."""
        from vantage.data.sources.opening import check_path

        for path in filter(None, paths):
            check_path(path)


@dataclass(frozen=True)
class ComputeOptions(ReadingOptions):
    """How a verb reads its images, and which device it computes on."""

    device: Annotated[str, Word("DEVICE")] = "auto"
    """cpu, cuda:0, …; auto: a GPU, if any."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_device(self.device)

    def work(self, console: Console, batch_size: int = 256) -> "Work":
        """The device and the threads, with the progress to show."""
        from vantage.encoding import Work

        return Work(self.device, batch_size, self.threads(), progress=console.progress())


@dataclass(frozen=True)
class WorkOptions(ComputeOptions):
    """How a verb reads its images, and how many devices share the work."""

    devices: int | None = None
    """Number of devices that share the work."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("--devices", self.devices)

    def threads(self) -> int:
        """Threads that decode images, given that the processes share the cores."""
        from vantage.machine.launchers import local_processes

        here = self.devices or local_processes()
        return max(1, super().threads() // here) if self.num_workers is None else self.num_workers

    def open(self, path: str, console: Console) -> "Source":
        """The same, by all processes together; they have joined in `work`."""
        return self._open(path, console, together=True)

    def work(self, console: Console, batch_size: int = 256) -> "Work":
        """The same, after the processes have joined."""
        from vantage.cli.reading.launch import join_processes

        one = replace(self, device=join_processes(self.devices, self.device))
        return ComputeOptions.work(one, console, batch_size)


@dataclass(frozen=True)
class LoadingOptions:
    """How training loads its images."""

    num_workers: int | None = None
    """Processes that decode images, for sets of several image sizes or too large for memory."""

    on_bad_image: Annotated[Literal["skip", "stop"] | None, Word("HOW")] = None
    """Unreadable: skip (default; 3, or 1 % if more) or stop."""


@dataclass(frozen=True)
class DeviceOptions:
    """What training computes on."""

    devices: int | None = None
    """Devices of each machine; 1, or what a launcher started."""

    nodes: int | None = None
    """Machines that train together, by torchrun or srun."""

    precision: Literal["32-true", "bf16-mixed", "16-mixed", "64-true"] | None = None
    """Arithmetic: bf16-mixed, 32-true, 16-mixed or 64-true."""


def check_count(flag: str, count: int | None) -> None:
    """Raises `UserError` for a count below 1 given with this flag."""
    if count is not None and count < 1:
        raise UserError(f"{flag} {count}: give at least 1")


def check_device(name: str) -> None:
    """Raises `UserError` if this machine has no such device; called when options are read, before any work."""
    if name not in ("auto", "cpu"):  # these two do not need torch to be imported
        from vantage.machine.devices import device_named

        device_named(name)


def check_devices(hardware: "Hardware") -> None:
    """Raises `UserError` if this machine cannot train with these settings; called before the images are read."""
    from vantage.machine.devices import check_hardware
    from vantage.machine.launchers import check_machines, check_processes

    check_hardware(hardware.accelerator, hardware.devices, hardware.precision, hardware.compile)
    check_machines(hardware.nodes)
    check_processes(hardware.devices, hardware.nodes)


def as_started(options: DeviceOptions, settings: Sequence[str]) -> DeviceOptions:
    """The options with the devices and machines that a launcher started, where no option and none of the `settings`
    (`PATH=VALUE`) says how many there are."""
    from vantage.machine.launchers import launched_shape

    given = {setting.partition("=")[0].strip().rpartition(".")[2] for setting in settings}
    shape = launched_shape()
    if shape is None or "hardware" in given:
        return options
    started = {"devices": shape[0], "nodes": shape[1]}
    return replace(options, **{n: v for n, v in started.items() if n not in given and getattr(options, n) is None})


def assignments(values: Mapping[str, Any], prefix: str = "") -> list[str]:
    """`PATH=VALUE` for every option that was given; the path is its name after the prefix."""
    return [f"{prefix}{name}={value!r}" for name, value in values.items() if value is not None]
