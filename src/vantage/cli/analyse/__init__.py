"""The verb `analyse`: tables and pictures that show what runs have learned."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from vantage.cli.analyse.sweep import sweep
from vantage.cli.printing.console import Console, catalog, overview
from vantage.cli.reading.arguments import Command, Repeated, Word, read, wants_help
from vantage.cli.reading.options import ComputeOptions, ImageOptions
from vantage.cli.reading.out_files import check_folder
from vantage.composition.assignments import assign
from vantage.composition.fields import settings_in
from vantage.composition.suggest import no_such
from vantage.errors import UserError

__all__ = ["analyse"]


@dataclass(frozen=True)
class AnalysisOptions:
    """The options of every analysis of runs."""

    runs: Annotated[tuple[str, ...], Word("RUN", positional=True)]
    """Folders of the runs; for similarity, classes and false-negatives also weights from elsewhere,
    torchvision:resnet18=FILE or timm:NAME=FILE."""

    batch_size: int = 256
    """Images that the network encodes at once."""

    out: Annotated[str, Word("FOLDER")] = ""
    """Folder for KIND.json and KIND.png (existing ones are replaced); if omitted, RUN/analyses of the first run."""


@dataclass(frozen=True)
class ToyOptions:
    """The options of every toy."""

    out: Annotated[str, Word("FOLDER")] = "analyses"
    """Folder for TOY.json and TOY.png; existing ones are replaced."""

    set: Repeated = ()
    """A field of a part, such as --set gaussian.variance=2. May be repeated."""


def analyse(words: list[str], console: Console) -> int:
    """Show what runs have learned, as a table and a picture: vantage analyse similarity RUN [RUN …] --data PATH.

    Toys have a known solution and need neither runs nor images: vantage analyse spread-toy. A sweep trains runs that
    differ in their views or in any field: vantage analyse views SWEEP --data PATH --out FOLDER.
    """
    if words[:1] == ["views"]:
        return sweep(words[1:], console)
    if not words or words[0].startswith("-"):
        if wants_help(words):
            console.result(overview("analyse KIND [RUN …] [--option value …]", analyse.__doc__))
            for title, entries in (("kinds", _kinds()), ("toys", _toys())):
                console.result(f"\n{title}:\n{catalog(entries)}")
            console.result("\nvantage analyse KIND --help shows the options of one kind.")
            return 0
        raise UserError("analyse needs a kind first, such as: vantage analyse similarity RUN --data PATH")
    kinds, toys = _kinds(), _toys()
    if words[0] in toys:
        return _calculate(toys[words[0]], words[1:], console)
    if words[0] not in kinds:
        raise no_such("analysis", words[0], (*kinds, *toys, "views"), "kinds")
    return _analyze(kinds[words[0]], words[1:], console)


def _analyze(kind: Any, words: list[str], console: Console) -> int:
    command = Command(f"analyse {kind.name}", kind.__doc__ or "")
    groups = (AnalysisOptions, ImageOptions, kind(), ComputeOptions)
    options, images, analysis, computing = read(command, words, *groups)
    from vantage.frozen.networks import trained_networks
    from vantage.studies.analyse.analysis import analyse as analyze

    out = check_folder(Path(options.out)) if options.out else None
    folders = [Path(run) for run in options.runs]
    for folder in folders:
        trained_networks(folder)  # report a mistake in a run before the images are read
    work = computing.work(console, options.batch_size)
    source = computing.open(images.data, console)
    return _show(analyze(analysis, folders, source, work=work, out=out), console)


def _calculate(kind: Any, words: list[str], console: Console) -> int:
    from vantage.studies.analyse.analysis import experiment

    command = Command(f"analyse {kind.name}", kind.__doc__ or "", lambda: [one.path for one in settings_in(kind())])
    options, toy = read(command, words, ToyOptions, kind())
    toy = assign(toy, options.set, name=kind.name)
    return _show(experiment(toy, check_folder(Path(options.out))), console)


def _show(outcome: Any, console: Console) -> int:
    for line in outcome.result.lines():
        console.result(line)
    console.note(f"saved in {outcome.table_file} and {outcome.picture_file}")
    return 0


def _toys() -> dict[str, Any]:
    from vantage.studies.analyse.gaussian import OptimalToy
    from vantage.studies.analyse.spread import SpreadToy
    from vantage.studies.analyse.toy import TrainedToy

    return {toy.name: toy for toy in (OptimalToy, TrainedToy, SpreadToy)}


def _kinds() -> dict[str, Any]:
    """The analyses by name; imported here because help must not wait for torch."""
    from vantage.studies.analyse.band import Band
    from vantage.studies.analyse.classes import Classes
    from vantage.studies.analyse.false_negatives import FalseNegatives
    from vantage.studies.analyse.held_out import HeldOutInformation
    from vantage.studies.analyse.labels import Labels
    from vantage.studies.analyse.similarity import Similarity

    return {kind.name: kind for kind in (Similarity, HeldOutInformation, Classes, Band, Labels, FalseNegatives)}
