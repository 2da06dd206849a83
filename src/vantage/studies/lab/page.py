"""The page of claims: a line for each, the paper's value and ours, the verdict; counts on top, and pictures."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from vantage.storage.files import write_result
from vantage.storage.tables import Table
from vantage.studies.lab.entry import Arm, Entry, Untrained
from vantage.studies.lab.figure import drawn
from vantage.studies.lab.judgement import Judged
from vantage.studies.lab.levels import LEVELS, Level
from vantage.studies.lab.making import arms_of
from vantage.studies.lab.points import Box, boxes
from vantage.studies.lab.results import numbers_in
from vantage.studies.lab.ruling import VERDICTS, Numbers, Ruling, rule

__all__ = ["PICTURES", "ours_in_words", "page", "pictured", "publish", "scale_of", "state_of"]

PICTURES = "images/claims"
"""Folder of the pictures, beside the page."""

_SHOWN = 3
"""Contrasts of a paper's numbers that a line has room for; of ours the least sure one is shown."""

_INTRODUCTION = """# What the papers claim, and what holds here

Written by `vantage reproduce --page`; nothing on this page is typed by hand. Every table and figure of JCL, CNCE
(Ring), InterCLR and InfoMin that holds an experiment is an entry of the lab, its claims are predicates over cells, and
the same question is asked at a small scale, which stands beside each entry: on two cores, and for some entries on one
GPU with a larger network for longer. A verdict is about that scale, not about the paper's.

* A difference is paired over seeds: the same base checkpoint, order of images and test images. Ours is its mean with
  the 95 % t interval; the verdict uses p after Holm's correction over the entry. Beside it: exact sign flips.
* *supported* and *refuted* need five pairs or more, and p below .05 for the claim or against it; all else is
  *undecided*. "Within ±δ" is two one-sided tests. Claims about accuracy are undecided unless the base is above raw
  pixels and above its random encoder (the gate).
* *void*: what the claim presupposes was not reached. *not run*: a cell is still to be made. *not asked*: it is not
  asked at this level, for the reason given.
* Every predicate is also applied to the paper's own numbers. ✗ marks those that contradict its text.
* Pictures: a large point is a mean over seeds with its 95 % t interval (from three seeds on), a faint line joins the
  points of a seed, hollow points are the paper's. Verdicts are about differences within seeds: intervals of two means
  may overlap where a claim is decided. *Floor*: the higher of raw pixels and the random encoder.
"""


def page(entries: Sequence[Entry], folder: Path) -> str:
    """The whole page, from the results in a folder."""
    asked = {entry.name: _asked(entry, folder) for entry in entries}
    parts = [_INTRODUCTION, _counts(entries, asked)]
    for paper in dict.fromkeys(entry.paper for entry in entries):
        parts.append(f"## {paper}\n")
        parts += [_section(entry, asked[entry.name]) for entry in entries if entry.paper == paper]
    return "\n".join(parts)


def publish(entries: Sequence[Entry], folder: Path, file: Path) -> None:
    """Write the page and, beside it, its pictures; those of entries that have none any more go."""
    write_result(file, page(entries, folder), "the page")
    for entry in entries:
        picture = file.parent / PICTURES / f"{entry.name}.svg"
        if points := pictured(entry, folder):
            write_result(picture, drawn(points), "the picture")
        else:
            picture.unlink(missing_ok=True)


def pictured(entry: Entry, folder: Path) -> tuple[Box, ...]:
    """What an entry's picture shows, from the results in a folder; empty where it has none."""
    levels = LEVELS if entry.panels else ()
    return boxes(entry, [(level.words, numbers_in(level.folder(folder), level.entry(entry))) for level in levels])


@dataclass(frozen=True)
class _Asked:
    """An entry at one level."""

    level: Level
    entry: Entry
    numbers: Numbers
    rulings: tuple[Ruling, ...]


def _asked(entry: Entry, folder: Path) -> tuple[_Asked, ...]:
    """The entry on two cores, and at every other level that has numbers of it."""
    results = []
    for level in LEVELS:
        made = level.entry(entry)
        numbers = numbers_in(level.folder(folder), made)
        if numbers or not results:
            results.append(_Asked(level, made, numbers, rule(made, numbers)))
    return tuple(results)


def scale_of(entry: Entry) -> str:
    """The scale of an entry at its level in words."""
    arms = [arm for cell in entry.made for arm in arms_of(_arm(cell.made))]
    if not arms:
        return ""
    bases = sorted({_views(arm) for arm in arms if arm.start is None})
    branches = sorted({_views(arm) for arm in arms if arm.start is not None})
    size = sorted({arm.run.data.max_images for arm in arms})
    words = f"{', '.join(dict.fromkeys(arm.images for arm in arms))}, {_listed(size)} training images at 32 px"
    words += f"; {_listed(bases)} images {'of warm base' if branches else 'seen'}"
    return words + (f", {_listed(branches)} of each branch" if branches else "")


def state_of(entry: Entry, numbers: Numbers) -> str:
    """How many seeds are complete."""
    if not entry.made:
        return "not asked on two cores"
    counts = {
        cell.name: min((len(row) for row in numbers.get(cell.name, {}).values()), default=0)
        for cell in entry.made
        if not (isinstance(cell.made, Untrained) and cell.made.pixels)
    }
    here = [count for count in counts.values() if count] or [0]
    later = [name for name, count in counts.items() if not count and any(here)]
    begun = f", {max(here)} are begun" if max(here) > min(here) else ""
    return f"{min(here)} of its seeds are complete{begun}" + (f"; to be made: {'; '.join(later)}" if later else "")


def _arm(made: object) -> object:
    return made.arm if isinstance(made, Untrained) else made


def _views(arm: Arm) -> int:
    return arm.run.epochs * (arm.run.data.max_images // arm.run.batch_size) * arm.run.batch_size


def _listed(numbers: Sequence[int]) -> str:
    return " or ".join(f"{number:,}" for number in numbers)


def _counts(entries: Sequence[Entry], asked: Mapping[str, tuple[_Asked, ...]]) -> str:
    rows = []
    for level in LEVELS:
        each = [(entry, one) for entry in entries for one in asked[entry.name] if one.level == level]
        for paper in (*dict.fromkeys(entry.paper for entry, _ in each), *([""] if each else [])):
            rulings = [one for entry, here in each if paper in ("", entry.paper) for one in here.rulings]
            verdicts = Counter(one.verdict for one in rulings)
            wrong = sum(bool(one.against) for one in rulings)
            counts = (*(str(verdicts[name]) for name in VERDICTS), str(wrong) if level is LEVELS[0] else "")
            rows.append((f"{paper or 'all'}, {level.words}", *counts))
    return Table(("paper", *VERDICTS, "✗ by its own numbers"), tuple(rows)).markdown() + "\n"


def _section(entry: Entry, asked: tuple[_Asked, ...]) -> str:
    head = f"### {entry.name}\n\n{entry.paper}, {entry.place}: {entry.what}."
    scales = [f"{_capital(one.level.words)}: {_scale(one)}" for one in asked]
    claims = zip(*(one.rulings for one in asked), strict=True)
    lines = [
        (f"{same[0].claim.name}. {same[0].claim.words} ({same[0].claim.place})", _paper(same[0]), *map(_verdict, same))
        for same in claims
    ]
    rows = [("claim", "paper", *(one.level.words for one in asked)), ("---",) * (2 + len(asked)), *lines]
    table = "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in rows)
    return "\n\n".join((head, *scales, table, _picture(entry, asked))) + "\n"


def _picture(entry: Entry, asked: tuple[_Asked, ...]) -> str:
    """The picture with its axes in words, or why there is none."""
    if points := boxes(entry, [(one.level.words, one.numbers) for one in asked]):
        axes = "; ".join(dict.fromkeys(box.panel.axes for box in points))
        sources = ", ".join(dict.fromkeys(box.source for box in points))
        return f"![{entry.place}: {axes}. Of {sources}.]({PICTURES}/{entry.name}.svg)"
    if not entry.made:
        return "No picture: nothing of it is made here."
    return "No picture yet: too few of its points are there." if entry.panels else "No picture: it has no axis."


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def _scale(asked: _Asked) -> str:
    entry = asked.entry
    scale = "; ".join(part for part in (scale_of(entry), entry.scale) if part)
    state = f" {_capital(state_of(entry, asked.numbers))}." if entry.made else ""
    return f"{scale or 'nothing is trained'}.{state}"


def _verdict(one: Ruling) -> str:
    word = f"**{one.verdict}**" if one.verdict in ("supported", "refuted") else one.verdict
    parts = (ours_in_words(one) if one.judged else "", one.reason)
    return ": ".join((word, "; ".join(part for part in parts if part))) if any(parts) else word


def _paper(one: Ruling) -> str:
    if not one.paper:
        return "no numbers"
    if len(one.paper) <= _SHOWN:
        words = "; ".join(f"{each.name}: {_signed(fmean(each.values))}" for each in one.paper)
    else:
        values = [fmean(each.values) for each in one.paper]
        words = f"{len(values)} differences, {_signed(min(values))} to {_signed(max(values))}"
    return words + "".join(f"; ✗ {each}" for each in one.against[:_SHOWN]) + (" …" if len(one.against) > _SHOWN else "")


def ours_in_words(one: Ruling) -> str:
    """The contrast that decides: the one that is least sure of a claim's."""
    if not one.judged:
        return "–"
    order = ("refuted", "undecided", "supported")
    least = min(one.judged, key=lambda each: (order.index(each.verdict), -each.p))
    more = f"; least sure of {len(one.judged)}" if len(one.judged) > 1 else ""
    return f"{_words(least)} ({one.claim.by}{more})" if " @ " not in least.name else _words(least) + more


def _words(one: Judged) -> str:
    between = "" if math.isinf(one.low) else f" [{_signed(one.low)}, {_signed(one.high)}]"
    flips = "" if one.flips is None else f", flips {one.flips:.2g}"
    return f"{one.name}: {_signed(one.mean)}{between}, n {one.n}, p {one.p:.2g}{flips}"


def _signed(value: float) -> str:
    """Three digits; a difference that is nothing but rounding is 0."""
    value = 0.0 if abs(value) < 1e-12 else value
    return f"{value:+.3g}" if abs(value) < 1_000 else f"{value:+,.0f}"
