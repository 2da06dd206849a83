"""The verb `report`: a page about runs, for a browser."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from vantage.cli.printing.console import Console
from vantage.cli.reading.arguments import Command, Word, read
from vantage.cli.reading.options import ComputeOptions, ImageOptions, NetworkOptions
from vantage.cli.reading.out_files import check_file

__all__ = ["report"]


@dataclass(frozen=True)
class ReportOptions:
    """The options of `report`."""

    runs: Annotated[tuple[str, ...], Word("RUN", positional=True)]
    """Folders of the runs, or weights such as torchvision:resnet18=FILE; at most six."""

    out: Annotated[str, Word("FILE")] = "report.html"
    """File for the page, ending with .html; an existing one is replaced."""

    images: int = 10_000
    """Images to show, drawn at random with seed 0 if there are more; at most 50,000 for all runs together."""


def report(words: list[str], console: Console) -> int:
    """Write a page about runs for a browser: vantage report RUN [RUN …] --data PATH.

    It says in a sentence whether a run is healthy, collapsed or under-trained. It shows its curves, its views, nearest
    neighbors (the worst too), a map of the images, the spectrum of the features, near-duplicates, outliers, recorded
    results beside the baselines, and settings. The page is one file below 8 MB, and needs no network connection and no
    server. Several runs are shown side by side.
    """
    groups = (ReportOptions, ImageOptions, NetworkOptions, ComputeOptions)
    options, images, network, computing = read(Command("report", report.__doc__ or ""), words, *groups)
    from vantage.frozen.encoder import load
    from vantage.report import write_report
    from vantage.report.named_facts import named_facts
    from vantage.report.write import check_size

    out = check_file(Path(options.out), (".html", ".htm"), "a web page")
    folders = [Path(run) for run in options.runs]
    check_size(len(folders), options.images)
    for facts in named_facts(folders):  # report a mistake in a run before the images are read
        if facts.checkpoint:
            load(facts.path, network.network)
    source, work = computing.open(images.data, console), computing.work(console)
    runs = write_report(folders, source, out, images=options.images, network=network.network, work=work)
    for facts in runs:
        console.note(f"{facts.name}: {facts.verdict.sentence}" if len(runs) > 1 else facts.verdict.sentence)
    console.result(str(out))
    return 0
