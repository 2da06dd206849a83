"""The verb `compare`: several runs, evaluated by several protocols, in one table."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

from vantage.cli.evaluate.protocols import protocol_named, protocols
from vantage.cli.evaluate.tasks import TaskImages, kind_of_images
from vantage.cli.printing.console import Console
from vantage.cli.reading.arguments import Command, Repeated, Word, read
from vantage.cli.reading.options import ComputeOptions, NetworkOptions
from vantage.cli.reading.out_files import check_file
from vantage.composition.assignments import assign
from vantage.composition.fields import leaves
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError
from vantage.storage.files import write_result

__all__ = ["compare"]

_KINDS = {
    "classes": "images with classes",
    "masks": "images with masks (IMAGES#MASKS)",
    "boxes": "images with boxes (a COCO file, or a folder of PASCAL VOC with its split)",
}


@dataclass(frozen=True)
class CompareOptions:
    """The options of `compare`."""

    runs: Annotated[tuple[str, ...], Word("RUN", positional=True)]
    """Folders of the runs, or weights from elsewhere (torchvision:resnet18=FILE, timm:NAME=FILE); runs that differ only
    in their seed share a row."""

    data: Annotated[str, Word("PATH")] = ""
    """Images, named as for vantage evaluate. If protocols need different images, --set NAME.data=PATH sets those of one
    protocol."""

    test: Annotated[str, Word("PATH")] = ""
    """Test images, named like --data; if omitted, a fifth of the data is held out, per class if there are labels."""

    protocols: Annotated[str, Word("NAME,NAME")] = "knn,linear-cached"
    """Protocols, separated by commas: names that vantage evaluate --help lists, MODULE:NAME of your own, or results of
    vantage evaluate, FILE.json, whose protocol and settings are used."""

    set: Repeated = ()
    """A setting of a protocol, such as --set knn.k=20; its images, NAME.data, NAME.test and segmentation.classes; its
    number of trials, NAME.trials; the measures to show, NAME.measures=AP,AP50. May be repeated."""

    out: Annotated[str, Word("FILE")] = ""
    """File for the table, ending with .md, .csv or .tex; an existing one is replaced. If omitted, the table is printed
    as Markdown."""


@dataclass(frozen=True)
class _ProtocolTask:
    """One protocol of a comparison, with its own images, trials and measures."""

    protocol: Any
    name: str = ""
    data: str = ""
    test: str = ""
    classes: str = ""
    trials: int = 1
    measures: tuple[str, ...] = field(default=())


_TASK_FIELDS = ("data", "test", "classes", "trials", "measures")


def compare(words: list[str], console: Console) -> int:
    """Compare runs by several protocols in one table: vantage compare RUN [RUN …] --data PATH --out table.md.

    The table shows mean ± standard deviation over seeds, with rows for raw pixels and random encoders. A row is bold if
    a t-test finds it better than every other trained row (paired if the seeds are the same, else Welch's; Holm's
    correction; at least three seeds). Results in RUN/evaluations for the same checkpoint and images are reused. Papers
    report detectors as the mean of several trials: --protocols detection-c4 --set detection-c4.trials=5.
    """
    command = Command("compare", compare.__doc__ or "", _settable)
    options, network, computing = read(command, words, CompareOptions, NetworkOptions, ComputeOptions)
    out = check_file(Path(options.out), (".md", ".csv", ".tex"), "a table") if options.out else None
    protocol_tasks = _protocol_tasks(options)
    _check_images(protocol_tasks, options)
    from vantage.evaluate.compare.comparison import compare_by
    from vantage.evaluate.compare.table import as_csv, as_latex, as_markdown
    from vantage.evaluate.compare.trials import Refusal
    from vantage.frozen.encoder import load

    folders = [Path(run) for run in options.runs]
    for folder in folders:
        load(folder, network.network)  # a mistake in a run is reported before the images are read
    work, images = computing.work(console), TaskImages(computing, console)
    tasks = [_task(images, one, options) for one in protocol_tasks]
    try:
        table = compare_by(folders, tasks, work, console.note, network.network)
    except Refusal as problem:
        name = next(
            (one.name for one in protocol_tasks if one.protocol.name == problem.protocol.name), problem.protocol.name
        )
        raise UserError(_in_own_words(str(problem), name, problem.protocol)) from problem
    if out is None:
        console.result(as_markdown(table))
        return 0
    form = {".md": as_markdown, ".csv": as_csv, ".tex": as_latex}[out.suffix]
    write_result(out, form(table), "the table")
    console.result(str(out))
    return 0


def _protocol_tasks(options: CompareOptions) -> list[_ProtocolTask]:
    """The protocols, each with its `--set` settings."""
    entries = [word.strip() for word in options.protocols.split(",") if word.strip()]
    protocols_by_entry = {entry: protocol_named(entry) for entry in entries}
    names = {entry: each.name if entry.endswith(".json") else entry for entry, each in protocols_by_entry.items()}
    settings: dict[str, list[str]] = {entry: [] for entry in entries}
    for text in options.set:
        entry, setting = _owner(text, names)
        settings[entry].append(setting)
    protocol_tasks = []
    for entry in entries:
        task_settings = [text for text in settings[entry] if re.split(r"[.=]", text)[0] in _TASK_FIELDS]
        protocol_settings = [text for text in settings[entry] if text not in task_settings]
        protocol = assign(protocols_by_entry[entry], protocol_settings, name=names[entry])
        protocol_tasks.append(
            assign(_ProtocolTask(protocol, names[entry]), task_settings, may_set=_TASK_FIELDS.__contains__)
        )
    return protocol_tasks


def _owner(text: str, names: Mapping[str, str]) -> tuple[str, str]:
    """Split a setting into its entry of `--protocols` and the setting without that name."""
    first, _, setting = text.partition(".")
    name, module = first.replace("_", "-"), text.partition("=")[0].rpartition(".")[0]
    for entry, own in names.items():
        if own == module and ":" in own:
            return entry, text.removeprefix(f"{own}.")
        if name == own and (entry == own or re.split(r"[.=]", setting)[0] in _TASK_FIELDS):
            return entry, setting
    if name in names.values():
        raise UserError(
            f"--set {text}: {name} has the settings of a result; add {name} to --protocols to give it others"
        )
    if name in protocols():
        raise UserError(f"--set {text}: {name} is not compared; add it with --protocols {','.join((*names, name))}")

    near = did_you_mean(first, names.values())
    raise UserError(
        f"--set {text}: write NAME.FIELD=VALUE, such as --set {next(iter(names.values()))}.seed=1{near}"
        f" (names: {', '.join(names.values())})"
    )


def _check_images(protocol_tasks: Sequence[_ProtocolTask], options: CompareOptions) -> None:
    """Raises `UserError` if a protocol has no images, or if --data would have to hold several kinds of images."""
    without = [one for one in protocol_tasks if not one.data]
    if not without:
        return
    first, kind = without[0].name, kind_of_images(without[0].protocol)
    if not options.data:
        raise UserError(
            "compare needs --data: the images, named as for vantage evaluate; or the images of each protocol, such as"
            f" --set {first}.data=PATH"
        )
    for one in without:
        if (other := kind_of_images(one.protocol)) != kind:
            raise UserError(
                f"--data is one set of images, but {first} is evaluated on {_KINDS[kind]} and {one.name} on"
                f" {_KINDS[other]}: give those of one with --set {one.name}.data=PATH (and {one.name}.test)"
            )


def _task(images: TaskImages, one: _ProtocolTask, options: CompareOptions) -> Any:
    test = one.test or ("" if one.data else options.test)
    task = images.task(one.protocol, one.data or options.data, test, one.classes, f"--set {one.name}.classes")
    return replace(task, trials=one.trials, measures=one.measures)


def _in_own_words(message: str, name: str, protocol: Any) -> str:
    """A protocol's message, with its options written as for `compare`: --set knn.k=20 instead of --k 20."""
    flags = "|".join(f.name.replace("_", "-") for f in fields(protocol))

    def in_own_words(option: re.Match[str]) -> str:
        values = ",".join(option[2].split())
        return f"--set {name}.{option[1].replace('-', '_')}" + (values and f"={values}")

    option = rf"(?<![\w-])--({flags})(?![\w-])((?: \d+(?:\.\d+)*)*)"
    return re.sub(option, in_own_words, message) if flags else message


def _settable() -> list[str]:
    every = [f"{name}.{leaf.path}" for name, kind in protocols().items() for leaf in leaves(kind())]
    return every + [f"{name}.{own}" for name in protocols() for own in _TASK_FIELDS]
