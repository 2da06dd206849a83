"""What is done with a run: `embed`, `evaluate`, `export`; and `demo`, which does it all."""

import inspect
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from vantage.cli.arguments import Command, parse, wants_help
from vantage.cli.console import Console, columns
from vantage.cli.detecting import DETECTING
from vantage.cli.images import opened, work_of
from vantage.cli.protocols import protocols, spoken
from vantage.cli.results import kept_or_out, tell
from vantage.cli.segmenting import evaluate_segmentation
from vantage.cli.transferring import evaluate_transfer
from vantage.composition.fields import headings, leaves, options
from vantage.composition.suggest import did_you_mean
from vantage.data.threads import CORES
from vantage.errors import UserError

__all__ = ["demo", "embed", "evaluate", "export"]


@dataclass(frozen=True)
class Images:
    """Images that are looked at, and what does it."""

    run: str
    """Folder of the run."""

    data: str
    """Folder, list file, table (.csv), .npz/.npy, .parquet, .tar, or torchvision:NAME; `#train` picks a part of it."""

    on_bad_image: Literal["skip", "stop"] = "skip"
    """What to do about unreadable images: leave them out (stops above 1 %), or stop at once."""

    device: str = "auto"
    """Device, such as cpu or cuda:0; auto takes an accelerator where there is one."""

    workers: int = CORES
    """Threads that decode images."""

    network: int | None = None
    """Which of the trained networks, for runs that have one per view; none: all, their features joined."""


@dataclass(frozen=True)
class Embedding(Images):
    """What `embed` is told."""

    out: str = ""
    """File to write: .parquet (name, label, embedding) or .npy (with a list of rows beside it)."""

    batch: int = 256
    """Images that go through the network at once."""


@dataclass(frozen=True)
class Evaluation(Images):
    """What `evaluate` is told beside the protocol's own fields."""

    test: str = ""
    """Labeled test images, named as --data is; without, a fifth of each class of the data is held out."""

    baselines: bool = False
    """Whether raw pixels and a random encoder are judged as well."""

    out: str = ""
    """File for the result, as JSON; without, it is kept in RUN/evaluations."""


@dataclass(frozen=True)
class Exporting:
    """What `export` is told."""

    run: str
    """Folder of the run."""

    to: Literal["torchvision", "timm", "safetensors", "detectron2"]
    """Library whose own model loads the file, or safetensors for the parameters as they are."""

    out: str = ""
    """File to write, ending with .safetensors; without, RUN/backbone-FORMAT.safetensors. For detectron2 a folder:
    weights and settings of detectors; without, RUN/detectron2."""

    network: int | None = None
    """Which of the trained networks, for runs that have one per view."""


@dataclass(frozen=True)
class Demonstration:
    """What `demo` is told."""

    out: str = "vantage-demo"
    """Folder for the run."""


def embed(words: list[str], console: Console) -> int:
    """Write the features of images to a file: vantage embed RUN --data PATH --out FILE."""
    asked = parse(Command("vantage embed", embed.__doc__ or "", {}), options(Embedding, ("run",)), words).values
    if not asked["out"]:
        raise UserError("vantage embed needs --out: a file ending with .parquet or .npy")
    from vantage.frozen.embedding import check_file, write_embeddings
    from vantage.frozen.encoder import load

    trained = load(Path(asked["run"]), asked["network"])
    check_file(Path(asked["out"]))  # mistakes are told before a million images are looked at
    source = opened(asked["data"], asked, console)
    file = write_embeddings(trained, source, Path(asked["out"]), work_of(asked, console, asked["batch"]))
    console.note(f"{len(source):,} images × {trained.width:,} numbers")
    console.result(str(file))
    return 0


def evaluate(words: list[str], console: Console) -> int:
    """Judge a run by labeled images: vantage evaluate knn RUN --data PATH.

    Without --test a fifth of each class is held out for testing.
    """
    if not words or words[0].startswith("-"):
        if wants_help(words):
            _tell_protocols(console)
            return 0
        raise UserError("evaluate needs a protocol first, such as: vantage evaluate knn RUN --data PATH")
    if words[0] == "retrieval":
        from vantage.cli.retrieving import retrieval

        return retrieval(words[1:], console)
    if words[0] in _OTHER_IMAGES:
        return _OTHER_IMAGES[words[0]](words[1:], console)
    from vantage.evaluate import evaluate as judge

    kinds = protocols()
    if words[0] not in kinds:
        every = (*kinds, *_OTHER_IMAGES)
        raise UserError(
            f"there is no protocol {words[0]!r}{did_you_mean(words[0], every)} (protocols: {', '.join(every)})"
        )
    protocol: Any = kinds[words[0]]()
    fields = tuple(leaves(protocol))
    command = Command(f"vantage evaluate {words[0]}", spoken(type(protocol)), dict(headings(protocol)))
    parsed = parse(command, (*options(Evaluation, ("run",)), *fields), words[1:])
    asked = parsed.values
    protocol = type(protocol)(**{leaf.path: asked[leaf.path] for leaf in fields})
    from vantage.frozen.encoder import load

    load(Path(asked["run"]), asked["network"])  # a mistake in the run is told before the images are looked at
    out = kept_or_out(asked)
    train = opened(asked["data"], asked, console)
    test = opened(asked["test"], asked, console) if asked["test"] else None
    result = judge(
        Path(asked["run"]),
        protocol,
        train,
        test,
        baselines=asked["baselines"],
        network=asked["network"],
        work=work_of(asked, console),
        out=out,
    )
    tell(result, console, asked["run"], out)
    return 0


_OTHER_IMAGES = {"segmentation": evaluate_segmentation, "transfer": evaluate_transfer, **DETECTING}
"""Protocols whose images are not one labeled set, by name."""


def _tell_protocols(console: Console) -> None:
    """Every protocol in a line or two."""
    console.result(inspect.cleandoc(evaluate.__doc__ or "") + "\n")
    known = protocols()
    about = {name: _in_short(kind) for name, kind in (*known.items(), *_OTHER_IMAGES.items())}
    about |= {name: f"Short for {kind.name}." for name, kind in known.items() if kind.name != name}  # pyright: ignore
    for name, told in about.items():
        console.result(
            textwrap.fill(f"{name:<19}{told}", columns(), subsequent_indent=" " * 19, break_on_hyphens=False)
        )
    console.result("\nvantage evaluate PROTOCOL --help tells the fields of one.")


def _in_short(kind: object) -> str:
    """What a protocol is, in a sentence without its sources."""
    words = re.sub(r" \([^()]*arXiv[^()]*\)", "", " ".join(spoken(kind).split("\n\n")[0].split()))
    sentence = re.split(r"(?<=[.;]) ", words)[0]
    return sentence.rstrip(".;") + "."


def export(words: list[str], console: Console) -> int:
    """Write the backbone for another library: vantage export RUN --to torchvision [--out FILE]."""
    asked = parse(Command("vantage export", export.__doc__ or "", {}), options(Exporting, ("run",)), words).values
    from vantage.frozen.export.backbone import export as write

    which = "" if asked["network"] is None else f"-{asked['network']}"
    kept = f"detectron2{which}" if asked["to"] == "detectron2" else f"backbone-{asked['to']}{which}.safetensors"
    default = Path(asked["run"]) / kept
    made = write(Path(asked["run"]), asked["to"], Path(asked["out"] or default), asked["network"])
    console.note(f"{made.file} is written. To use it:\n")
    console.result(made.how)
    return 0


def demo(words: list[str], console: Console) -> int:
    """Train on photographs that come with the installation, and compare: vantage demo (some minutes)."""
    asked = parse(Command("vantage demo", demo.__doc__ or "", {}), options(Demonstration), words).values
    from vantage.demo import demo as show
    from vantage.progress import progress_for

    for line in show(Path(asked["out"]), progress_for(console.silent)).lines():
        console.result(line)
    return 0
