"""The verb `analyse`: tables and pictures of what runs have learned."""

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from vantage.cli.arguments import Command, parse, wants_help
from vantage.cli.console import Console
from vantage.cli.images import opened, work_of
from vantage.cli.listing import first_line
from vantage.cli.results import check_folder
from vantage.cli.sweeping import views
from vantage.composition.fields import headings, leaves, options, replaced
from vantage.composition.suggest import did_you_mean
from vantage.data.threads import CORES
from vantage.errors import UserError

__all__ = ["analyse"]


@dataclass(frozen=True)
class Looking:
    """What `analyse` is told beside the analysis' own fields."""

    runs: tuple[str, ...]
    """Folders of the runs."""

    data: str
    """Folder, list file, .npz/.npy, .parquet, .tar, or torchvision:NAME; `#train` picks a part of it."""

    on_bad_image: Literal["skip", "stop"] = "skip"
    """What to do about unreadable images: leave them out (stops above 1 %), or stop at once."""

    device: str = "auto"
    """Device, such as cpu or cuda:0; auto takes an accelerator where there is one."""

    workers: int = CORES
    """Threads that decode images."""

    batch: int = 256
    """Images that go through the network at once."""

    out: str = ""
    """Folder for KIND.json and KIND.png, which are replaced; without, they are kept in RUN/analyses of the first
    run."""


@dataclass(frozen=True)
class Keeping:
    """What a toy is told beside its own fields."""

    out: str = "analyses"
    """Folder for TOY.json and TOY.png, which are replaced."""


def analyse(words: list[str], console: Console) -> int:
    """Table and picture of what runs have learned: vantage analyse similarity RUN [RUN …] --data PATH.

    Toys, whose truth is known, need neither runs nor images: vantage analyse spread-toy.
    What a parameter of the views does, in runs of its own: vantage analyse views SWEEP --data PATH --out FOLDER.
    """
    if not words or words[0].startswith("-"):
        if wants_help(words):
            console.result(inspect.cleandoc(analyse.__doc__ or ""))
            for title, found in (("kinds", _kinds()), ("toys", _toys())):
                console.results(f"\n{title}", [(name, first_line(kind)) for name, kind in found.items()])
            console.result("\nvantage analyse KIND --help tells the fields of one.")
            return 0
        raise UserError("analyse needs a kind first, such as: vantage analyse similarity RUN --data PATH")
    if words[0] == "views":
        return views(words[1:], console)
    kinds, toys = _kinds(), _toys()
    if words[0] in toys:
        return _experiment(toys[words[0]], words[1:], console)
    if words[0] not in kinds:
        every = [*kinds, *toys, "views"]
        raise UserError(f"there is no analysis {words[0]!r}{did_you_mean(words[0], every)} (kinds: {', '.join(every)})")
    kind = kinds[words[0]]
    fields = tuple(leaves(kind()))
    command = Command(f"vantage analyse {words[0]}", kind.__doc__ or "", {})
    asked = parse(command, (*options(Looking, ("runs",)), *fields), words[1:]).values
    from vantage.studies.analyse.analysis import analyse as look
    from vantage.studies.analyse.learned import learned

    analysis = kind(**{leaf.path: asked[leaf.path] for leaf in fields})
    if not asked["runs"]:
        raise UserError(f"analyse {words[0]} needs the folder of a run: vantage analyse {words[0]} RUN --data PATH")
    out = check_folder(Path(asked["out"])) if asked["out"] else None
    for folder in asked["runs"]:
        learned(Path(folder))  # a mistake in a run is told before the images are looked at
    source = opened(asked["data"], asked, console)
    work = work_of(asked, console, asked["batch"])
    done = look(analysis, [Path(run) for run in asked["runs"]], source, work=work, out=out)
    for line in done.findings.lines():
        console.result(line)
    console.note(f"kept in {done.table_file} and {done.picture_file}")
    return 0


def _experiment(kind: Any, words: list[str], console: Console) -> int:
    fields = tuple(leaves(kind()))
    command = Command(f"vantage analyse {kind.name}", kind.__doc__ or "", dict(headings(kind())))
    asked = parse(command, (*options(Keeping), *fields), words)
    from vantage.studies.analyse.analysis import experiment

    toy = replaced(kind(), {leaf.path: asked.values[leaf.path] for leaf in fields})
    done = experiment(toy, check_folder(Path(asked.values["out"])))
    for line in done.findings.lines():
        console.result(line)
    console.note(f"kept in {done.table_file} and {done.picture_file}")
    return 0


def _toys() -> dict[str, Any]:
    from vantage.studies.analyse.gaussian import OptimalToy
    from vantage.studies.analyse.spread import SpreadToy
    from vantage.studies.analyse.toy import TrainedToy

    return {toy.name: toy for toy in (OptimalToy, TrainedToy, SpreadToy)}


def _kinds() -> dict[str, Any]:
    """The analyses by name; imported here, since the command line itself does without torch."""
    from vantage.studies.analyse.band import Band
    from vantage.studies.analyse.false_negatives import FalseNegatives
    from vantage.studies.analyse.labels import Labels
    from vantage.studies.analyse.similarity import Similarity

    return {kind.name: kind for kind in (Similarity, Band, Labels, FalseNegatives)}
