"""The model card beside an export: what the network is, what it learned from, how it was judged, in Markdown."""

import re
from collections.abc import Iterable

from vantage import __version__
from vantage.composition.printing import as_python
from vantage.durations import duration
from vantage.facts.results import BASELINES, LabeledResult
from vantage.facts.run_facts import RunFacts, facts_of
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.export.graph import Check
from vantage.frozen.export.metadata import colors_of, preparation
from vantage.planning.words import choices
from vantage.storage.tables import Table

__all__ = ["card_of"]

LICENSE = "Apache-2.0"
"""The license of Vantage's code."""


def card_of(encoder: FrozenEncoder, to: str, how: str, check: Check | None = None) -> str:
    """The card of an encoder that is exported to the format `to`; `how` says how to use the file.

    Facts are those of the run's folder: the data's fingerprint, the composition with every setting, the verdict on its
    curves, and the recorded results of this very backbone. Weights from elsewhere have no such folder.

    Raises `UserError` if the folder's provenance is damaged.
    """
    facts = _facts(encoder)
    parts = [
        f"# {_text(encoder.name)}, exported to {to}",
        f"A vision backbone that gives {encoder.width:,} features of an image, written by Vantage {__version__}.",
        *_use(encoder, to, how, check),
        *(_elsewhere(encoder) if facts is None else _training(facts)),
        *_results([] if facts is None else facts.results, encoder.digest()),
        *([] if facts is None else _origins(facts)),
        "## License",
        f"The code of Vantage is under {LICENSE}. That says nothing about these parameters: whether they may be passed"
        " on depends on the images they were learned from.",
    ]
    return "\n\n".join(parts) + "\n"


def _facts(encoder: FrozenEncoder) -> RunFacts | None:
    """The facts in the run's folder; None for weights from elsewhere and for baselines."""
    if encoder.checkpoint is None or not encoder.checkpoint.is_dir():  # weights from elsewhere are one file
        return None
    return facts_of([encoder.checkpoint.parent.parent])[0]


def _use(encoder: FrozenEncoder, to: str, how: str, check: Check | None) -> list[str]:
    view = encoder.view
    colors = "Color space and normalization are in the file."
    if check is None:
        colors = f"Then {colors_of(view)}."
    images = f"Images: RGB, {preparation(view)}. {colors}"
    agrees = [check.sentence().capitalize() + "."] if check else []
    return ["## Use", _block(how, "bash" if to == "detectron2" else "python"), images, *agrees]


def _training(facts: RunFacts) -> list[str]:
    return [
        "## What it learned from, and how",
        _listing(facts.settings()),
        *_plan(facts),
        _text(facts.verdict.sentence),
        "Every setting that differs from the defaults of its part:",
        _block(as_python(facts.run)),
    ]


def _plan(facts: RunFacts) -> list[str]:
    """The budget that the run was planned for, and what the plan chose; nothing for a run without a plan."""
    run = facts.run
    if not run.monitoring.minutes:
        return []
    seconds = facts.rows[-1].get("seconds") if facts.rows else None
    took = f" Training took {duration(seconds)}." if isinstance(seconds, int | float) else ""
    settings = [*choices(run), ("epochs", f"{run.epochs:,}")]
    if run.data.hold_out:
        settings.append(("held out to judge by", f"{100 * run.data.hold_out:g} % of the images"))
    return [
        f"These settings come from a plan for {duration(60 * run.monitoring.minutes)} of training on the machine"
        f" below. The command there gives the total time; the plan chose the settings that it does not name.{took}",
        _listing(settings),
    ]


def _elsewhere(encoder: FrozenEncoder) -> list[str]:
    facts = [("weights", encoder.run.recipe), ("backbone", repr(encoder.choice)), ("digest", encoder.digest())]
    return ["## What it learned from, and how", "These weights come from elsewhere.", _listing(facts)]


def _results(results: Iterable[LabeledResult], digest: str) -> list[str]:
    results_here = [result for result in results if result.encoder == digest]
    if not results_here:
        return ["## Results", "No evaluation of this backbone is recorded in the run's folder."]
    head = ("protocol", "settings", "measure", "run", *BASELINES, "test images")
    rows = [
        (
            f"{result.protocol}, version {result.version}",
            result.settings,
            result.measure,
            *(_number(value) for value in (result.value, *(result.baselines.get(name) for name in BASELINES))),
            f"{result.test_images:,}",
        )
        for result in results_here
    ]
    table = Table(head, tuple(tuple(map(_text, row)) for row in rows), left=(0, 1, 2)).markdown()
    return [
        "## Results",
        "In percent, unless a measure names another unit; raw pixels and a random encoder are the baselines.",
        table,
    ]


def _origins(facts: RunFacts) -> list[str]:
    parts = ["## Where it comes from"]
    for number, origin in enumerate(facts.origins()):
        parts += ["Started by:" if number == 0 else "Resumed by:", _listing(origin)]
    return parts if len(parts) > 1 else [*parts, "No record of the command and the versions."]


def _listing(pairs: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"* {name}: {_code(value)}" for name, value in pairs)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _code(text: str) -> str:
    """Text from outside as code, so that nothing in it acts as Markdown or HTML."""
    ticks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    line = " ".join(text.split())
    return f"{ticks} {line} {ticks}" if "`" in line else f"`{line}`"


def _text(words: str) -> str:
    """Words from outside, escaped for running text, on one line."""
    return re.sub(r"([\\`*_<>\[\]#])", r"\\\1", " ".join(words.split()))


def _block(code: str, language: str = "python") -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
    return f"{fence}{language}\n{code.rstrip()}\n{fence}"
