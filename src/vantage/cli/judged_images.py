"""The images that each protocol of `vantage compare` judges by, as its options have them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vantage.cli.console import Console
from vantage.cli.images import opened
from vantage.cli.segmenting import class_names
from vantage.composition.fields import Leaf, options
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.evaluate.task import Task

__all__ = ["Images", "check_kinds", "options_of"]


@dataclass(frozen=True)
class OfOne:
    """What one protocol is told beside its settings."""

    data: str = ""
    """Its images, named as vantage evaluate has it for this protocol; without, those of --data."""

    test: str = ""
    """Its test images; without, those of --test, or with images of its own, a fifth of them."""

    measures: tuple[str, ...] = ()
    """What is shown, a column each, such as AP AP50 AP75; without, what the protocol tells first."""


@dataclass(frozen=True)
class Drawing(OfOne):
    """Of a protocol that has a seed."""

    trials: int = 1
    """How many times each run is judged, each with the next seed; the mean is the run's number."""


@dataclass(frozen=True)
class WithMasks(Drawing):
    """Of a protocol of images with masks."""

    classes: str = ""
    """File with the name of a class on each line, as vantage evaluate segmentation has it."""


def options_of(name: str, protocol: Any) -> tuple[Leaf, ...]:
    """The options that a protocol has beside its settings, such as --detection.data."""
    from vantage.evaluate import Segmentation
    from vantage.evaluate.task import has_seed

    kind = WithMasks if isinstance(protocol, Segmentation) else Drawing if has_seed(protocol) else OfOne
    return tuple(replace(leaf, path=f"{name.replace('-', '_')}.{leaf.path}") for leaf in options(kind))


def check_kinds(protocols: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Raises `UserError` where a protocol has no images, or where --data would be of several kinds."""
    without = {name: _kind(protocol) for name, protocol in protocols.items() if not _own(name, "data", asked, "")}
    if not without:
        return
    first, kind = next(iter(without.items()))
    if not asked["data"]:
        raise UserError(
            "compare needs --data: the images, named as vantage evaluate has it for these protocols; or those of each"
            f" one, such as --{first}.data PATH"
        )
    for name, other in without.items():
        if other != kind:
            raise UserError(
                f"--data is one set of images, but {first} is judged on {kind} and {name} on {other}: name those of one"
                f" with --{name}.data (and --{name}.test)"
            )


class Images:
    """Images by the words that name them, each opened once."""

    def __init__(self, asked: Mapping[str, Any], console: Console) -> None:
        self.asked, self.console = asked, console
        self._known: dict[tuple[str, ...], Any] = {}

    def task(self, name: str, protocol: Any) -> "Task":
        """The protocol with its images. Raises `UserError` for images that cannot be opened, or do not serve."""
        data, test = (_own(name, field, self.asked, "") for field in ("data", "test"))
        test = test or ("" if data else self.asked["test"])
        task = self._of_kind(protocol, data or self.asked["data"], test, _own(name, "classes", self.asked, ""))
        trials, measures = _own(name, "trials", self.asked, 1), _own(name, "measures", self.asked, ())
        return replace(task, trials=trials, measures=measures)

    def _of_kind(self, protocol: Any, data: str, test: str, classes: str) -> "Task":
        from vantage.evaluate import Segmentation, Task, task_of
        from vantage.evaluate.protocols.detection import DetectorProtocol

        if isinstance(protocol, DetectorProtocol):
            return task_of(protocol, self._annotated(data), self._annotated(test) if test else None)
        if isinstance(protocol, Segmentation):
            train = self._masked(data, class_names(classes, f"--{protocol.name}.classes"))
            return task_of(protocol, train, self._masked(test, train.classes) if test else None)
        if (key := ("both", data, test)) not in self._known:
            self._known[key] = task_of(protocol, self._labeled(data), self._labeled(test) if test else None)
        known: Task = self._known[key]
        return replace(known, protocol=protocol)

    def _labeled(self, place: str) -> Any:
        if (key := ("labeled", place)) not in self._known:
            self._known[key] = opened(place, self.asked, self.console)
        return self._known[key]

    def _annotated(self, place: str) -> Any:
        if (key := ("annotated", place)) not in self._known:
            from vantage.evaluate.protocols.detection import open_annotated

            self._known[key] = found = open_annotated(place)
            self.console.note(f"{place}: {len(found):,} annotated images, {len(found.classes)} classes")
        return self._known[key]

    def _masked(self, place: str, classes: tuple[str, ...]) -> Any:
        if (key := ("masked", place, *classes)) not in self._known:
            from vantage.data.sources.masked import open_masked

            self._known[key] = found = open_masked(place, classes)
            self.console.note(f"{place}: {len(found):,} images with masks, {len(found.classes)} classes")
        return self._known[key]


def _own(name: str, field: str, asked: Mapping[str, Any], otherwise: Any) -> Any:
    """What an option of one protocol was given; `otherwise` where it has no such option."""
    return asked.get(f"{name.replace('-', '_')}.{field}", otherwise)


def _kind(protocol: Any) -> str:
    from vantage.evaluate import Segmentation
    from vantage.evaluate.protocols.detection.detector_protocol import DetectorProtocol

    if isinstance(protocol, DetectorProtocol):
        return "images with boxes (a COCO file, or a folder of PASCAL VOC with its split)"
    return "images with masks (IMAGES#MASKS)" if isinstance(protocol, Segmentation) else "images with classes"
