"""`vantage evaluate segmentation`: how well the pixels of images are told apart on a frozen backbone."""

from dataclasses import dataclass
from pathlib import Path

from vantage.cli.arguments import Command, parse
from vantage.cli.console import Console
from vantage.cli.protocols import spoken
from vantage.cli.results import kept_or_out, tell
from vantage.composition.fields import headings, leaves, options
from vantage.data.threads import CORES
from vantage.errors import UserError

__all__ = ["class_names", "evaluate_segmentation"]


@dataclass(frozen=True)
class Segmenting:
    """What `evaluate segmentation` is told beside the protocol's own fields."""

    run: str
    """Folder of the run."""

    data: str
    """Two folders, IMAGES#MASKS: masks are PNGs of class indices with the paths of their images; 255 counts nowhere."""

    test: str = ""
    """Test images, named as --data is; without, a fifth of the images is held out."""

    classes: str = ""
    """File with the name of a class on each line, from index 0 on; without, classes are numbered up to the largest
    index in the masks."""

    baselines: bool = False
    """Whether raw pixels and a random encoder are judged as well."""

    out: str = ""
    """File for the result, as JSON; without, it is kept in RUN/evaluations."""

    device: str = "auto"
    """Device, such as cpu or cuda:0; auto takes an accelerator where there is one."""

    workers: int = CORES
    """Threads that decode images."""

    network: int | None = None
    """Which of the trained networks, for runs that have one per view."""


def evaluate_segmentation(words: list[str], console: Console) -> int:
    """Train a decoder on the maps of a frozen backbone, and measure the mean intersection over union."""
    from vantage.cli.images import work_of
    from vantage.evaluate import Segmentation, evaluate

    fields = tuple(leaves(Segmentation()))
    command = Command("vantage evaluate segmentation", spoken(Segmentation), dict(headings(Segmentation())))
    asked = parse(command, (*options(Segmenting, ("run",)), *fields), words).values
    protocol = Segmentation(**{leaf.path: asked[leaf.path] for leaf in fields})
    from vantage.data.sources.masked import open_masked
    from vantage.frozen.encoder import load

    load(Path(asked["run"]), asked["network"])  # a mistake in the run is told before the images are looked at
    out = kept_or_out(asked)
    train = open_masked(asked["data"], class_names(asked["classes"]))
    console.note(f"{len(train):,} images with masks, {len(train.classes)} classes")
    result = evaluate(
        Path(asked["run"]),
        protocol,
        train,
        open_masked(asked["test"], train.classes) if asked["test"] else None,
        baselines=asked["baselines"],
        network=asked["network"],
        work=work_of(asked, console),
        out=out,
    )
    tell(result, console, asked["run"], out)
    each = next(iter(result.outcomes.values())).details["IoU"]
    console.notes("IoU of each class", [(name, "none" if it is None else f"{it:.1f} %") for name, it in each.items()])
    return 0


def class_names(file: str, flag: str = "--classes") -> tuple[str, ...]:
    """The lines of a file of class names; none where there is no file. Raises `UserError` for fewer than two names."""
    if not file:
        return ()
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise UserError(f"{flag} {file} cannot be read ({problem}): name a text file, a class on each line") from None
    names = tuple(line.strip() for line in lines if line.strip())
    if len(names) < 2 or len(set(names)) < len(names):
        raise UserError(f"{flag} {file} names {len(set(names))} different classes on {len(names)} lines: one a line")
    return names
