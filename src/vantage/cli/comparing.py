"""The verb `compare`: several runs by several protocols in one table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from vantage.cli.arguments import Command, parse
from vantage.cli.console import Voice
from vantage.cli.fields import options
from vantage.cli.images import opened, work_of
from vantage.cli.protocols import first_said, protocol_named, protocols, settings_of, with_settings
from vantage.cli.results import check_out
from vantage.cores import CORES
from vantage.errors import UserError

__all__ = ["compare"]


@dataclass(frozen=True)
class Options:
    """What `compare` is told."""

    runs: tuple[str, ...]
    """Folders of the runs; those that differ in their seed only become one row."""

    data: str
    """Labelled images: folder, list file, .npz/.npy, .parquet, .tar, or torchvision:NAME; `#train` picks a part."""

    test: str = ""
    """Labelled test images, named as --data is; without, a fifth of each class of the data is held out."""

    protocols: str = "knn,linear-cached"
    """Protocols, commas between (vantage evaluate --help names them); or a result of vantage evaluate, FILE.json, for
    the protocol and the settings that it has. Settings of one that is named are given as --NAME.FIELD, such as
    --knn.k 20."""

    out: str = ""
    """Table to write, ending with .md, .csv or .tex; an older one is replaced. Without, Markdown is printed."""

    on_bad_image: Literal["skip", "stop"] = "skip"
    """What to do about unreadable images: leave them out (stops above 1 %), or stop at once."""

    device: str = "auto"
    """Device, such as cpu or cuda:0; auto takes an accelerator where there is one."""

    workers: int = CORES
    """Threads that decode images."""


def compare(words: list[str], voice: Voice) -> int:
    """Several runs by several protocols in one table: vantage compare RUN [RUN …] --data PATH --out table.md.

    Mean ± standard deviation over seeds, with raw pixels and random encoders as rows. A row is bold where it is better
    than every other trained one in a t-test (paired where the seeds are the same, else Welch's; Holm's correction;
    three seeds or more). What RUN/evaluations holds of the same checkpoint and images is read, not made again.
    """
    asked, protocols = _asked(words)
    if not asked["runs"]:
        raise UserError("compare needs a run or more: vantage compare RUN [RUN …] --data PATH")
    out = check_out(Path(asked["out"]), (".md", ".csv", ".tex"), "a table") if asked["out"] else None
    from vantage.evaluate.comparison import compare as judge
    from vantage.evaluate.comparison_table import as_csv, as_latex, as_markdown
    from vantage.trained import load
    from vantage.writing import write_result

    for run in asked["runs"]:
        load(Path(run))  # a mistake in a run is told before the images are looked at
    train = opened(asked["data"], asked, voice)
    test = opened(asked["test"], asked, voice) if asked["test"] else None
    folders = [Path(run) for run in asked["runs"]]
    table = judge(folders, protocols, train, test, work_of(asked, voice), voice.note)
    if out is None:
        voice.result(as_markdown(table))
        return 0
    form = {".md": as_markdown, ".csv": as_csv, ".tex": as_latex}[out.suffix]
    write_result(out, form(table), "the table")
    voice.result(str(out))
    return 0


def _asked(words: list[str]) -> tuple[Mapping[str, Any], list[Any]]:
    """The options, and the protocols with the settings that they were given."""
    entries = [word.strip() for word in first_said("--protocols", words, Options.protocols).split(",") if word.strip()]
    plain = {entry: protocol_named(entry) for entry in entries}
    named = {entry: settings_of(entry, it) for entry, it in plain.items() if not entry.endswith(".json")}
    _check_owners(words, named)
    headings = {entry.replace("-", "_"): f"Settings of {entry}." for entry in named}
    known = (*options(Options, ("runs",)), *(leaf for fields in named.values() for leaf in fields))
    asked = parse(Command("vantage compare", compare.__doc__ or "", headings), known, words).values
    return asked, [with_settings(one, plain[one], asked) if one in named else plain[one] for one in entries]


def _check_owners(words: Sequence[str], named: Mapping[str, object]) -> None:
    """Raises `UserError` for settings of a protocol that is not compared."""
    for word in words:
        flag = word.partition("=")[0]
        name, dot, _ = flag.removeprefix("--").replace("_", "-").partition(".")
        if flag.startswith("--") and dot and name not in named and name in protocols():
            raise UserError(f"{flag}: {name} is not compared; add it with --protocols {','.join((*named, name))}")
