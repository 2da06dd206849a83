"""The verb `benefit`: does pretraining help on these images, and with how many labels?"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from vantage.cli.printing.console import INTERRUPTED, Console
from vantage.cli.reading.arguments import Command, Word, read
from vantage.cli.reading.options import ComputeOptions, ImageOptions, NetworkOptions, RunOrWeights
from vantage.cli.reading.out_files import check_folder
from vantage.durations import check_minutes

__all__ = ["benefit"]


@dataclass(frozen=True)
class BenefitOptions:
    """The options of `benefit`."""

    test: Annotated[str, Word("PATH")] = ""
    """Test images, named like --data; if omitted, a fifth of each class is held out."""

    others: Annotated[tuple[str, ...], Word("RUN")] = ()
    """Other weights or runs to compare in the same way, such as torchvision:resnet18=FILE."""

    shares: Annotated[tuple[float, ...], Word("PERCENT")] = (1.0, 2.0, 5.0, 10.0, 50.0, 100.0)
    """Shares of the labels, in percent of each class; at least one image per class is used."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    """Seeds; each draws its own subsets and its own random network."""

    minutes: float | None = None
    """Make the trainings as long as this many minutes allow."""

    epochs: int = 30
    """Passes of each training over its images; never fewer than ten times as many steps."""

    batch_size: int = 64
    """Images per step."""

    learning_rates: tuple[float, ...] = (0.01, 0.03, 0.1)
    """Learning rates; each training takes the best one on a held-out fifth of its subset."""

    out: Annotated[str, Word("FOLDER")] = ""
    """Folder for verdict, table, picture and numbers; an unfinished study is continued. If omitted, RUN/benefit."""


def benefit(words: list[str], console: Console) -> int:
    """Test whether pretraining helps, by number of labels: vantage benefit RUN --data LABELED.

    The run is fine-tuned, and used frozen under a linear classifier. Both are compared with training from scratch, a
    random network and raw pixels, on the same subsets of the labels. Fine-tuning and training from scratch use the same
    steps, crops and candidate learning rates. The verdict is the difference with its 95 % interval, paired by subset;
    test labels are used only for scoring. The expected time is shown first. The same command continues after a stop.
    """
    command = Command("benefit", benefit.__doc__ or "")
    run, images, options, network, computing = read(
        command, words, RunOrWeights, ImageOptions, BenefitOptions, NetworkOptions, ComputeOptions
    )
    folder = check_folder(Path(options.out) if options.out else run.home / "benefit")
    if options.minutes is not None:
        check_minutes(options.minutes, f"--minutes {options.minutes:g}")
    from vantage.studies import benefit as study

    budget = study.Budget(options.epochs, options.batch_size, options.learning_rates)
    plan = study.BenefitPlan(tuple(share / 100 for share in options.shares), options.seeds, budget)
    others = tuple(map(Path, options.others))
    study.check(run.folder, folder, others=others, network=network.network)  # before any images are read
    computing.check(images.data, options.test)
    work = computing.work(console)
    source = computing.open(images.data, console)
    test = computing.open(options.test, console) if options.test else None
    try:
        result = study.measure_benefit(
            run.folder, source, test, folder, plan,
            others=others, minutes=options.minutes, network=network.network, work=work,
        )  # fmt: skip
    except KeyboardInterrupt:
        console.note("stopped; finished results are kept, and the same command continues")
        return INTERRUPTED
    for line in (*study.sentences(result), "", *result.table().lines(), ""):
        console.result(line)
    console.result(str(folder / "benefit.png"))
    return 0
