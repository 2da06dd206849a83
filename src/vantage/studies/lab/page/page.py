"""The page of claims: counts, and for each claim the paper's value, ours and the verdict, with pictures."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from vantage.storage.files import write_result
from vantage.storage.tables import Table
from vantage.studies.lab.entry import Arm, Entry, Untrained
from vantage.studies.lab.levels import LEVELS, Level
from vantage.studies.lab.making.compositions import arm_chain, arm_of
from vantage.studies.lab.making.maps import read_map
from vantage.studies.lab.making.repeating import images_seen
from vantage.studies.lab.making.results import numbers_in, results_file
from vantage.studies.lab.page.claim_words import paper_in_words, verdict_in_words
from vantage.studies.lab.page.counts import LevelResults, count_table, entry_table
from vantage.studies.lab.page.figure import draw
from vantage.studies.lab.page.maps import draw_map, map_in_words
from vantage.studies.lab.page.overview import Effect, draw_overview, effects
from vantage.studies.lab.page.points import Box, boxes
from vantage.studies.lab.page.verdict_tables import changes_by_level, verdict_tables
from vantage.studies.lab.verdicts import Numbers, judge_claims

__all__ = ["PICTURES", "overview_of", "page", "picture_boxes", "publish", "scale_of", "completion"]

PICTURES = "images/claims"
"""Folder for the pictures, next to the page."""
_OVERVIEW = "overview"
"""Name of the picture of all papers."""

_ABOUT_OVERVIEW = (
    "The papers' claims about accuracy on two cores: the difference behind each, with its 95 % interval, and that in"
    " the paper; right of 0 it is as claimed"
)

_INTRODUCTION = """# What the papers claim, and what holds here

This page tests what four papers claim: JCL (arXiv 2009.14776), CNCE (Ring; 2010.02037), InterCLR (2008.11702) and
InfoMin (2005.10243). Each of their tables and figures that reports an experiment is an *entry*. Its *cells* are what
we ran for it: trained runs, baselines and toys. A claim is a statement about cells, such as "JCL is above MoCo v2".
Each entry states its scale, which is small: two cores; for some entries also *overnight*, the same two cores for
fifteen times as many images in batches of 256, or one GPU, with a larger network and thirty times as many. A verdict
applies to that scale, not to the paper's. *undecided* means that this scale cannot tell the difference from 0, or that
the base learned too little for accuracies to be compared. The last two entries are ours: parts of all four papers in
one run, and one at a time.

Runs on two cores are short. Their learning rate is therefore four times the papers' for a batch of their size, unless
the entry says otherwise; so is that of runs on a GPU, and overnight it is the papers'.

The table counts verdicts, *papers* and *ours* apart. Ours are claims marked "ours", and stand-ins, which test a paper's
claim on something else, such as mosaics of four images in place of COCO. A claim that is part of another one, decided
by the same cells, is counted under *repeated* only. [How to read the entries](#how-to-read-the-entries) explains the
other columns.

The picture shows the claims about accuracy; hollow points are the paper's own differences. A gray interval that is
narrow around 0, and far from the paper's, says that the effect is small here. After it, every claim of a paper that was
tested on two cores has a line with the difference that decides it, or the least certain one of several, and its 95 %
interval. A last table has what longer training decides otherwise, our own claims included. The sections below give
tests, pictures, reasons, the other scales, our own claims, and claims that are not tested here.
"""

_HOW_TO_READ = """## How to read the entries

This page is written by `vantage reproduce --page`. Its numbers, verdicts and pictures come from results files, which
also say how many images and views each network has seen, and the commands that make the numbers again. Only notes and
reasons are written by us.

* A difference is paired by seed: the same base checkpoint, order of images and test images. "Ours" is its mean with
  the 95 % t interval in brackets. *n* is the number of pairs. *p* is that of a paired t test after Holm's correction
  over all differences of the entry. *flips* is the exact p of sign flips; with five seeds it cannot be below .0625, or
  .031 where one side is tested ("within ±δ"). Intervals and flips are not corrected, so an interval may miss 0 although
  p is above .05. *linear* is a linear classifier, and *kNN* nearest neighbors, on frozen features.
* Many claims are about several differences. One of them is shown, *the least certain of k*: a refuted one if there is
  any, otherwise an undecided one if there is any, and among these the one with the largest p (of a best value that lies
  inside: one with the verdict of the claim). *equal in all seeds*: the differences have no spread, so there is no t
  test.
* *supported* and *refuted* need at least five pairs, and p below .05 for or against the claim; everything else is
  *undecided*. More than six pairs are a second look, after the first six were judged, which needs p below .0294, and
  more than twelve a third, which needs .0221 (Pocock's levels for two and three looks). "Within ±δ" is tested by two
  one-sided tests. Claims about accuracy are undecided unless the base is above raw pixels and above its random encoder
  (the gate).
* *void*: the claim's precondition does not hold. *not run*: a cell has not been run yet. *not asked*: the claim is not
  tested at this level, for the reason given.
* *Why* and *ruled out* follow a refuted claim: what the numbers of the same entry show about the reason, with a
  difference and an interval of its own, without correction; a reason without a difference is our reading.
* What a note or a reason of the same entry already says is not repeated: *as for claim 1*.
* Every claim is also tested on the paper's own numbers; ✗ marks numbers that contradict the paper's text.
* Pictures: a large point is a mean over seeds with its 95 % t interval (with three seeds or more), a faint line
  connects the points of a seed, and hollow points are the paper's. Verdicts are about differences within seeds, so the
  intervals of two means may overlap although a claim is decided. *Floor*: the higher of raw pixels and the random
  encoder; where bases have different ones, a short gray line in a base's row marks its own.
"""


def page(entries: Sequence[Entry], folder: Path) -> str:
    """The whole page, made from the results in a folder."""
    return _page(entries, _results(entries, folder))


def overview_of(entries: Sequence[Entry], folder: Path) -> tuple[Effect, ...]:
    """What the picture of all papers shows, from the results in a folder."""
    return effects(entries, _results(entries, folder), LEVELS[0])


def publish(entries: Sequence[Entry], folder: Path, file: Path) -> None:
    """Write the page and its pictures, and remove the pictures of entries that no longer have one."""
    results = _results(entries, folder)
    write_result(file, _page(entries, results), "the page")
    pictures = file.parent / PICTURES
    write_result(pictures / f"{_OVERVIEW}.svg", draw_overview(effects(entries, results, LEVELS[0])), "the picture")
    for entry in entries:
        points, maps = picture_boxes(entry, folder), results[entry.name][0].maps
        _replace(pictures / f"{entry.name}.svg", draw(points) if points else None)
        _replace(pictures / f"{entry.name}-map.svg", draw_map(maps) if maps else None)


def _replace(file: Path, picture: bytes | None) -> None:
    if picture is None:
        file.unlink(missing_ok=True)
    else:
        write_result(file, picture, "the picture")


def _page(entries: Sequence[Entry], results: Mapping[str, tuple[LevelResults, ...]]) -> str:
    parts = [
        _INTRODUCTION,
        count_table(entries, results),
        f"![{_ABOUT_OVERVIEW}.]({PICTURES}/{_OVERVIEW}.svg)\n",
        verdict_tables(entries, results, LEVELS[0]),
        changes_by_level(entries, results),
        _HOW_TO_READ,
        entry_table(entries, results),
    ]
    for paper in dict.fromkeys(entry.paper for entry in entries):
        parts.append(f"## {paper}\n")
        parts += [_section(entry, results[entry.name]) for entry in entries if entry.paper == paper]
    return "\n".join(parts)


def _results(entries: Sequence[Entry], folder: Path) -> dict[str, tuple[LevelResults, ...]]:
    return {entry.name: _results_by_level(entry, folder) for entry in entries}


def picture_boxes(entry: Entry, folder: Path) -> tuple[Box, ...]:
    """The boxes of an entry's picture, from the results in a folder; empty if there is no picture."""
    levels = _levels_of(entry, folder) if entry.panels else ()
    return boxes(entry, [(level.words, numbers_in(level.folder(folder), level.entry(entry))) for level in levels])


def _results_by_level(entry: Entry, folder: Path) -> tuple[LevelResults, ...]:
    """The entry at the two-cores level, and at every other level that has numbers for it."""
    results = []
    for level in _levels_of(entry, folder):
        entry_here = level.entry(entry)
        numbers = numbers_in(level.folder(folder), entry_here)
        if numbers or not results:
            maps = read_map(level.folder(folder), entry_here)
            results.append(LevelResults(level, entry_here, numbers, judge_claims(entry_here, numbers), maps))
    return tuple(results)


def _levels_of(entry: Entry, folder: Path) -> tuple[Level, ...]:
    """The two-cores level, and every other that has a file for the entry: the rest need no cells made for them."""
    others = (level for level in LEVELS[1:] if results_file(level.folder(folder), entry).exists())
    return (LEVELS[0], *others)


def scale_of(entry: Entry) -> str:
    """The scale of an entry at its level, in words."""
    images = [one for cell in entry.runnable_cells if isinstance(one := arm_of(cell.experiment), Arm)]
    if not images:
        return ""
    size = sorted({arm.run.data.max_images for arm in images})
    words = f"{', '.join(dict.fromkeys(arm.images for arm in images))}, {_alternatives(size)} training images at 32 px"
    arms = [cell.experiment for cell in entry.runnable_cells if isinstance(cell.experiment, Arm)]
    return f"{words}; {_training_length(arms)}" if arms else words


def _training_length(arms: Sequence[Arm]) -> str:
    """How many images trained arms see, in words; what a baseline would have seen does not count."""
    starts = [arm.start for arm in arms if arm.start is not None]
    alone = sorted({images_seen(arm) for arm in arms if arm.start is None and arm not in starts})
    if not starts:
        return f"{_alternatives(alone)} images seen"
    bases = sorted({sum(map(images_seen, arm_chain(start))) for start in starts})
    branches = sorted({images_seen(arm) for arm in arms if arm.start is not None and arm not in starts})
    words = f"{_alternatives(bases)} images of warm base, {_alternatives(branches)} of each branch"
    return words + (f"; {_alternatives(alone)} images of each arm from scratch" if alone else "")


def completion(entry: Entry, numbers: Numbers) -> str:
    """How many seeds are complete, in words."""
    if not entry.runnable_cells:
        return "not asked at this level"
    counts = {
        cell.name: min((len(row) for row in numbers.get(cell.name, {}).values()), default=0)
        for cell in entry.runnable_cells
        if not (isinstance(cell.experiment, Untrained) and cell.experiment.pixels)
    }
    here = [count for count in counts.values() if count] or [0]
    later = [name for name, count in counts.items() if not count and any(here)]
    complete = f"{min(here)} seed{'s' * (min(here) != 1)} complete"
    partly = f", {max(here)} begun" if max(here) > min(here) else ""
    return complete + partly + (f"; still to run: {'; '.join(later)}" if later else "")


def _alternatives(numbers: Sequence[int]) -> str:
    return " or ".join(f"{number:,}" for number in numbers)


def _section(entry: Entry, levels: tuple[LevelResults, ...]) -> str:
    head = f"### {entry.name}\n\n{entry.paper}, {entry.place}: {entry.summary}."
    scales = [f"{_capital(one.level.words)}: {_scale(one)}" for one in levels]
    claims = zip(*(one.rulings for one in levels), strict=True)
    said: dict[str, str] = {}
    lines = [
        (
            f"{same[0].claim.name}. {same[0].claim.text} ({same[0].claim.place})",
            paper_in_words(same[0]),
            *(verdict_in_words(one, said) for one in same),
        )
        for same in claims
    ]
    columns = ("claim", "paper", *(one.level.words for one in levels))
    table = Table(columns, tuple(lines), left=tuple(range(len(columns)))).markdown(padded=False)
    picture = _picture(entry, levels)
    if maps := levels[0].maps:
        picture += f"\n\n![{_capital(map_in_words(maps))}.]({PICTURES}/{entry.name}-map.svg)"
    return "\n\n".join((head, *scales, table, picture)) + "\n"


def _picture(entry: Entry, levels: tuple[LevelResults, ...]) -> str:
    """The picture with its axes in words, or the reason why there is none."""
    if points := boxes(entry, [(one.level.words, one.numbers) for one in levels]):
        axes = "; ".join(dict.fromkeys(box.panel.axes for box in points))
        sources = ", ".join(dict.fromkeys(source for box in points for source in box.sources))
        return f"![{entry.place}: {axes}. Points from {sources}.]({PICTURES}/{entry.name}.svg)"
    if not entry.runnable_cells:
        return "No picture: none of its cells are run here."
    return "No picture yet: too few points are done." if entry.panels else "No picture: its cells lie on no axis."


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def _scale(level: LevelResults) -> str:
    entry = level.entry
    scale = "; ".join(part for part in (scale_of(entry), entry.scale) if part)
    state = f" {_capital(completion(entry, level.numbers))}." if entry.runnable_cells else ""
    return f"{scale or 'nothing is trained'}.{state}"
