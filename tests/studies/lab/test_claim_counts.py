"""The tables at the top of the page of claims, and what its sections do not repeat."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from vantage.studies.lab import ENTRIES, page
from vantage.studies.lab.entry import Reason
from vantage.studies.lab.judging.contrasts import ContrastResult, SeedContrast
from vantage.studies.lab.levels import LEVELS
from vantage.studies.lab.page.counts import LevelResults, count_table, entry_table
from vantage.studies.lab.page.verdict_tables import changes_by_level, verdict_tables
from vantage.studies.lab.verdicts import ClaimVerdict

RESULTS = "benchmarks/results/claims"
CLAIM = replace(ENTRIES[0].claims[0], part_of="", stand_in=False, place="§1")
ENTRY = replace(ENTRIES[0], claims=())


@pytest.fixture(scope="module")
def text(repository: Path) -> str:
    """The page of the published results."""
    return page(ENTRIES, repository / RESULTS)


def ruling(verdict: str, place: str = "§1", stand_in: bool = False, part_of: str = "") -> ClaimVerdict:
    return ClaimVerdict(replace(CLAIM, place=place, stand_in=stand_in, part_of=part_of), verdict)


def tables(*rulings: ClaimVerdict) -> list[dict[str, str]]:
    """The rows of both tables for one entry at the first level."""
    results = {ENTRY.name: (LevelResults(LEVELS[0], ENTRY, {}, rulings),)}
    rows: list[dict[str, str]] = []
    for table in (count_table((ENTRY,), results), entry_table((ENTRY,), results)):
        head, _, first, *_ = ([cell.strip() for cell in line[2:-2].split(" | ")] for line in table.splitlines())
        rows.append(dict(zip(head, first, strict=True)))
    return rows


def test_the_papers_claims_and_ours_are_counted_apart() -> None:
    counts, overview = tables(
        ruling("supported"),
        ruling("supported", "ours"),
        ruling("supported", "§4.2, ours"),
        ruling("refuted", "§4.3, for mosaics", stand_in=True),
        ruling("refuted", part_of="claim 1"),
        ruling("undecided"),
        ruling("void"),
        ruling("not asked", "ours"),
    )
    assert counts == {
        "claims": "JCL, two cores",
        "supported, papers": "1",
        "supported, ours": "2",
        "refuted, papers": "0",
        "refuted, ours": "1",
        "undecided, papers": "1",
        "undecided, ours": "0",
        "void": "1",
        "not run": "0",
        "not asked": "1",
        "repeated": "1",
        "✗ by its own numbers": "0",
    }
    assert overview["entry"] == "[jcl-table-1](#jcl-table-1)" and overview["what is compared"].startswith("Table 1: ")
    assert overview["two cores"] == "3 supported, 2 refuted, 1 undecided, 1 void, 1 not asked"


@pytest.mark.slow
def test_every_claim_is_counted_once(text: str) -> None:
    (row,) = re.findall(r"^\| all, two cores(.*)\|$", text, re.MULTILINE)
    counts = [int(cell) for cell in row.split("|")[1:]]
    assert sum(counts[:-1]) == sum(len(entry.claims) for entry in ENTRIES)


@pytest.mark.slow
def test_the_page_leads_to_every_entry(text: str) -> None:
    overview = text.partition("\n## JCL\n")[0]
    for entry in ENTRIES:
        assert f"[{entry.name}](#{entry.name})" in overview and f"\n### {entry.name}\n" in text


def test_claims_of_the_papers_are_listed_once() -> None:
    test = ContrastResult("a − b", 6, 1.234, 0.911, 1.557, 0.01, 0.03, "supported")
    reasons = (Reason("few images"), None), (Reason("a bug", ruled_out=True), None)
    rulings = (
        replace(ruling("supported"), results=(test,)),
        replace(ruling("refuted"), results=(test,), reasons=reasons),
        ruling("supported", "ours"),
        ruling("refuted", part_of="claim 1"),
        replace(ruling("undecided"), results=(test,), reason="few seeds"),
    )
    level = LEVELS[0]
    text = verdict_tables((ENTRY,), {ENTRY.name: (LevelResults(level, ENTRY, {}, rulings),)}, level)
    supported, refuted, undecided = (part.strip().splitlines()[4:] for part in text.split("### ")[1:])
    assert supported == [
        f"| [jcl-table-1](#jcl-table-1) | {CLAIM.text} (§1) | no numbers | a − b: +1.23 [+0.91, +1.56] (linear) |  |"
    ]
    assert len(refuted) == 1 and refuted[0].endswith("| few images; not a bug |")
    assert len(undecided) == 1 and undecided[0].endswith("| few seeds |")


def test_undecided_differences_below_all_of_the_papers_are_named_and_counted() -> None:
    """The interval of a difference ends below the smallest number of the paper for the same difference."""
    level = LEVELS[0]
    test = ContrastResult("a − b", 6, 0.1, -0.3, 0.5, 0.6, 0.5, "undecided")
    paper = (
        SeedContrast("a − b (top-1)", (1.1,)),
        SeedContrast("a − b (top-5)", (0.6,)),
        SeedContrast("c − b (x)", (0.1,)),
    )
    about, other = replace(CLAIM, accuracy=True), replace(CLAIM, accuracy=False)
    rulings = (
        ClaimVerdict(about, "undecided", (test,), "few images", paper),
        ClaimVerdict(about, "undecided", (replace(test, high=0.7),), "", paper),  # the paper has .6 too
        ClaimVerdict(about, "undecided", (test,), "", paper[2:]),  # nothing to compare
        ClaimVerdict(other, "undecided", (test,), "", paper),  # perhaps another unit
        ClaimVerdict(about, "undecided", (replace(test, is_difference=False),), "", paper),
        ClaimVerdict(about, "refuted", (replace(test, verdict="refuted"),), "", paper),
    )
    text = verdict_tables((ENTRY,), {ENTRY.name: (LevelResults(level, ENTRY, {}, rulings),)}, level)
    rows = [line for line in text.splitlines() if line.startswith("| [")]
    assert [line.endswith("| smaller than in the paper; few images |") for line in rows] == [False, True] + 4 * [False]
    assert text.count("smaller than in the paper") == 2
    assert "Of the 2 undecided differences in accuracy for which the paper has numbers, 1 is smaller" in text


def test_what_another_level_decides_otherwise_is_listed() -> None:
    first, _, last = LEVELS
    test = ContrastResult("a − b", 6, 1.234, 0.911, 1.557, 0.01, 0.03, "supported")
    short = ("refuted", "undecided", "supported", "undecided", "refuted", "supported")
    longer = ("supported", "supported", "supported", "undecided", "undecided", "not run")
    levels = tuple(
        LevelResults(level, ENTRY, {}, tuple(replace(ruling(verdict), results=(test,)) for verdict in verdicts))
        for level, verdicts in ((first, short), (last, longer))
    )
    lines = changes_by_level((ENTRY,), {ENTRY.name: levels}).splitlines()
    assert lines[2] == "| entry | claim | two cores | one GPU |"
    here, there = "a − b: +1.23 [+0.91, +1.56] (linear)", "**supported**: a − b: +1.23 [+0.91, +1.56] (linear) |"
    assert [line.partition("(§1) | ")[2] for line in lines[4:]] == [
        f"**refuted**: {here} | {there}",
        f"undecided: {here} | {there}",
    ]
    part = replace(levels[1], rulings=(ruling("supported", part_of="claim 1"),))
    assert changes_by_level((ENTRY,), {ENTRY.name: (replace(part, level=first), part)}) == ""
    assert changes_by_level((ENTRY,), {ENTRY.name: levels[:1]}) == ""


def test_as_many_claims_are_listed_as_counted(text: str) -> None:
    for place, verdict in enumerate(("Supported", "Refuted", "Undecided")):
        (rows,) = re.findall(rf"^### {verdict} on two cores\n\n((?:\|.*\n)+)", text, re.MULTILINE)
        (counts,) = re.findall(r"^\| all, two cores(.*)$", text, re.MULTILINE)
        assert len(rows.splitlines()) - 2 == int(counts.split("|")[1 + 2 * place])


def test_a_section_gives_a_reason_once(text: str) -> None:
    for section in text.split("\n### ")[1:]:
        reasons = [part for part in re.split("; | \\| ", section) if part.startswith(("why: ", "ruled out: "))]
        assert len(set(reasons)) == len(reasons), section.partition("\n")[0]


def test_the_readme_has_the_numbers_of_the_page(text: str, repository: Path) -> None:
    rows = re.findall(r"^\| (\w+), two cores +\| (\d+) +\| \d+ +\| (\d+) +\| \d+ +\| (\d+) ", text, re.MULTILINE)
    lines = ["| " + " | ".join(row) + " |" for row in rows if row[0] not in ("Ours", "all")]
    assert len(lines) == 4 and "\n".join(lines) in (repository / "README.md").read_text(encoding="utf-8")
