"""The verb `compare`: several runs by several protocols in one table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from vantage.cli.arguments import Command, flags_of, parse
from vantage.cli.console import Console
from vantage.cli.images import work_of
from vantage.cli.judged_images import Images, check_kinds, options_of
from vantage.cli.protocols import any_protocols, first_said, of_options, protocol_named, settings_of, with_settings
from vantage.cli.results import check_out
from vantage.composition.fields import Leaf, headings, options
from vantage.data.threads import CORES
from vantage.errors import UserError

__all__ = ["compare"]


@dataclass(frozen=True)
class Options:
    """What `compare` is told."""

    runs: tuple[str, ...]
    """Folders of the runs; those that differ in their seed only become one row."""

    data: str = ""
    """Images. Labeled ones: folder, list file, .npz/.npy, .parquet, .tar, or torchvision:NAME; `#train` picks a part.
    For detectors a COCO file, or a folder of PASCAL VOC with its split; for segmentation IMAGES#MASKS. Protocols of
    different images: --NAME.data, such as --detection.data, and --NAME.test name those of one."""

    test: str = ""
    """Test images, named as --data is; without, a fifth of the data (of each class, where it has classes) is held
    out."""

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

    network: int | None = None
    """Which of the trained networks, for runs that have one per view; none: all, their features joined."""


def compare(words: list[str], console: Console) -> int:
    """Several runs by several protocols in one table: vantage compare RUN [RUN …] --data PATH --out table.md.

    Mean ± standard deviation over seeds, with raw pixels and random encoders as rows. A row is bold where it is better
    than every other trained one in a t-test (paired where the seeds are the same, else Welch's; Holm's correction;
    three seeds or more). What RUN/evaluations holds of the same checkpoint and images is read, not made again. Papers
    report detectors as the mean of several trials on one backbone: --protocols detection-c4 --detection-c4.trials 5.
    """
    asked, protocols = _asked(words)
    if not asked["runs"]:
        raise UserError("compare needs a run or more: vantage compare RUN [RUN …] --data PATH")
    out = check_out(Path(asked["out"]), (".md", ".csv", ".tex"), "a table") if asked["out"] else None
    check_kinds({name: protocol for name, protocol in protocols}, asked)
    from vantage.evaluate.compare.comparison import compare_by
    from vantage.evaluate.compare.table import as_csv, as_latex, as_markdown
    from vantage.evaluate.compare.trials import Refusal
    from vantage.frozen.encoder import load
    from vantage.storage.files import write_result

    for run in asked["runs"]:
        load(Path(run), asked["network"])  # a mistake in a run is told before the images are looked at
    folders, images = [Path(run) for run in asked["runs"]], Images(asked, console)
    tasks = [images.task(name, protocol) for name, protocol in protocols]
    try:
        table = compare_by(folders, tasks, work_of(asked, console), console.note, asked["network"])
    except Refusal as problem:
        name = next((name for name, one in protocols if one.name == problem.protocol.name), problem.protocol.name)
        raise UserError(of_options(str(problem), name, problem.protocol)) from problem
    if out is None:
        console.result(as_markdown(table))
        return 0
    form = {".md": as_markdown, ".csv": as_csv, ".tex": as_latex}[out.suffix]
    write_result(out, form(table), "the table")
    console.result(str(out))
    return 0


def _asked(words: list[str]) -> tuple[Mapping[str, Any], list[tuple[str, Any]]]:
    """The options, and the protocols with the settings that they were given, each by the name that its options have."""
    entries = [word.strip() for word in first_said("--protocols", words, Options.protocols).split(",") if word.strip()]
    known = any_protocols()
    plain = {entry: protocol_named(entry, known) for entry in entries}
    names = {entry: it.name if entry.endswith(".json") else entry for entry, it in plain.items()}
    named = {entry: settings_of(entry, it) for entry, it in plain.items() if names[entry] == entry}
    others = {names[entry]: options_of(names[entry], it) for entry, it in plain.items()}
    _check_owners(words, named, others)
    every = (*options(Options, ("runs",)), *(leaf for some in (named, others) for own in some.values() for leaf in own))
    asked = parse(Command("vantage compare", compare.__doc__ or "", dict(_headings(plain, names))), every, words).values
    made = {entry: with_settings(entry, it, asked) if entry in named else it for entry, it in plain.items()}
    return asked, [(names[entry], made[entry]) for entry in entries]


def _headings(plain: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Words over the options of each protocol."""
    for entry, protocol in plain.items():
        path = names[entry].replace("-", "_")
        yield path, f"Images and settings of {names[entry]}."
        yield from headings(protocol, path)


def _check_owners(words: Sequence[str], named: Mapping[str, object], others: Mapping[str, Sequence[Leaf]]) -> None:
    """Raises `UserError` for options of a protocol that is not compared, and for settings beside those of a result."""
    images = {flag for leaves in others.values() for leaf in leaves for flag in flags_of(leaf)}
    for word in words:
        flag = word.partition("=")[0].replace("_", "-")
        name, dot, _ = flag.removeprefix("--").partition(".")
        if not flag.startswith("--") or not dot or name in named or flag in images or name not in any_protocols():
            continue
        if name in others:
            raise UserError(f"{flag}: {name} has the settings of a result; name {name} itself to give it others")
        raise UserError(f"{flag}: {name} is not compared; add it with --protocols {','.join((*named, name))}")
