from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vantage.errors import UserError
from vantage.studies.lab import ENTRIES, LEVELS, Cell, Claim, Entry, Gate, Reason, judge_claims, numbers_in
from vantage.studies.lab.entry import paper
from vantage.studies.lab.judging.predicates import Beats, Close
from vantage.studies.lab.making.results import PUBLISHED_RESULTS
from vantage.studies.lab.page.claim_words import ours_in_words, verdict_in_words
from vantage.studies.lab.verdicts import Numbers, numbers_of

GATE = Gate("base", ("raw",), "kNN")
ENTRY = Entry(
    "an-entry",
    "A",
    "Table 1",
    "two methods",
    claims=(
        Claim("1", "ours is above theirs", "§1", (Beats("ours", "theirs"),), ("top-1", "top-5"), "kNN", True),
        Claim("2", "they are within ± 1", "§2", (Close(("ours", "theirs"), 1.0),), (), "kNN"),
        Claim("3", "nobody can ask", "§3", (Beats("ours", "theirs"),), ("top-1",), note="too large"),
        Claim(
            "4",
            "given that ours is above 0",
            "§4",
            (Beats("ours", "theirs"),),
            (),
            "kNN",
            precondition=Beats("ours", "raw"),
        ),
    ),
    cells=(*paper("top-1 / top-5", ("ours", 2.0, 1.0), ("theirs", 1.0, 1.5)), Cell("base"), Cell("raw")),
    gate=GATE,
)


def numbers(ours: float, theirs: float, base: float = 5.0, raw: float = 1.0, seeds: int = 6) -> Numbers:
    chance = np.random.default_rng(0)
    means = {"ours": ours, "theirs": theirs, "base": base, "raw": raw}
    rows = {name: {seed: float(mean + chance.normal(0, 0.1)) for seed in range(seeds)} for name, mean in means.items()}
    return {name: {"kNN": row} for name, row in rows.items()}


def verdicts(rows: Numbers, entry: Entry = ENTRY) -> list[str]:
    return [one.verdict for one in judge_claims(entry, rows)]


def test_planted_effects_are_judged() -> None:
    assert verdicts(numbers(8.0, 5.0)) == ["supported", "refuted", "not asked", "supported"]
    assert verdicts(numbers(5.0, 8.0)) == ["refuted", "refuted", "not asked", "refuted"]
    assert verdicts(numbers(5.0, 5.0))[1] == "supported"


def test_without_numbers_nothing_is_judged() -> None:
    assert verdicts({}) == ["not run", "not run", "not asked", "not run"]


def test_the_gate_precedes_accuracy_alone() -> None:
    results = judge_claims(ENTRY, numbers(8.0, 5.0, base=1.0))
    assert [one.verdict for one in results] == ["undecided", "refuted", "not asked", "supported"]
    assert "base is not above raw" in results[0].reason
    unmeasured = {name: row for name, row in numbers(8.0, 5.0).items() if name != "raw"}
    assert "not measured" in judge_claims(ENTRY, unmeasured)[0].reason


def test_a_claim_may_have_gates_of_its_own() -> None:
    """All of them must be passed, and the entry's is not asked then."""
    other = Gate("theirs", ("raw",), "kNN")
    rows = numbers(8.0, 5.0, base=1.0)
    for gates, verdict in (((other,), "supported"), ((other, GATE), "undecided")):
        first = replace(ENTRY.claims[0], gates=gates)
        assert verdicts(rows, replace(ENTRY, claims=(first, *ENTRY.claims[1:])))[0] == verdict
    with pytest.raises(UserError, match="gate of claim 1: there is no cell 'other'"):
        replace(ENTRY, claims=(replace(ENTRY.claims[0], gates=(Gate("other", ("raw",), "kNN"),)),))


def test_a_precondition_that_is_not_reached_makes_void() -> None:
    (*_, last) = judge_claims(ENTRY, numbers(8.0, 5.0, raw=9.0))
    assert last.verdict == "void" and "ours − raw" in last.reason


def test_a_precondition_that_is_not_shown_decides_nothing() -> None:
    """Too few seeds, or an interval on both sides of 0, do not show that it does not hold."""
    for rows in (numbers(8.0, 5.0, raw=8.0), numbers(8.0, 5.0, raw=9.0, seeds=4), numbers(8.0, 5.0, seeds=1)):
        (*_, last) = judge_claims(ENTRY, rows)
        assert last.verdict == "undecided" and "its precondition is not shown: ours − raw" in last.reason


def test_what_has_no_t_test_is_shown_without_one() -> None:
    rows = {name: {"kNN": dict.fromkeys(range(5), value)} for name, value in {"ours": 3.0, "theirs": 3.0}.items()}
    first = judge_claims(replace(ENTRY, gate=None), rows)[0]
    assert verdict_in_words(first).startswith("undecided: ours − theirs: +0, equal in all seeds, n 5 (kNN")
    alone = judge_claims(ENTRY, numbers(8.0, 5.0, seeds=1))[0]
    assert "n 1 (kNN); the gate (base above raw) has 1 of at least 5 pairs" in verdict_in_words(alone)


def test_numbers_have_the_decimals_of_their_interval() -> None:
    one = judge_claims(ENTRY, numbers(8.0, 5.0))[0]
    words = []
    for mean, half, p in ((-0.0867, 0.1433, 0.0004), (1234.5, 310.0, 0.25), (3e-7, 4e-8, 1.0)):
        test = replace(one.results[0], mean=mean, low=mean - half, high=mean + half, p=p, flips=0.5)
        words.append(ours_in_words(replace(one, results=(test,))).removeprefix("ours − theirs: "))
    assert words == [
        "-0.09 [-0.23, +0.06], n 6, p < 0.001, flips 0.5 (kNN)",
        "+1,234 [+924, +1,544], n 6, p 0.25, flips 0.5 (kNN)",
        "+3.0e-07 [+2.6e-07, +3.4e-07], n 6, p 1, flips 0.5 (kNN)",
    ]


def test_four_seeds_decide_nothing() -> None:
    few = judge_claims(replace(ENTRY, gate=None), numbers(8.0, 5.0, seeds=4))
    assert [one.verdict for one in few[:2]] == ["undecided", "undecided"] and "4 of at least 5" in few[0].reason


def test_seeds_that_one_cell_lacks_do_not_count() -> None:
    rows = {name: {"kNN": dict(row["kNN"])} for name, row in numbers(8.0, 5.0).items()}
    del rows["ours"]["kNN"][5]
    assert judge_claims(ENTRY, rows)[0].results[0].n == 5


def test_the_papers_own_numbers_contradict_its_text() -> None:
    ours, equal, *_ = judge_claims(ENTRY, {})
    assert [each.values[0] for each in ours.paper] == pytest.approx([1.0, -0.5])
    assert ours.contradictions == ("ours − theirs = -0.5 (top-5)",)
    assert equal.paper == () and equal.contradictions == ()


def test_a_claim_about_no_cell_is_refused() -> None:
    with pytest.raises(UserError, match="there is no cell 'mine'"):
        replace(ENTRY, claims=(Claim("1", "mine", "§1", (Beats("mine", "ours"),)),))
    with pytest.raises(UserError, match="the same name"):
        replace(ENTRY, cells=(*ENTRY.cells, Cell("raw")))


def with_reasons(*reasons: Reason) -> Entry:
    first = replace(ENTRY.claims[0], reasons=reasons)
    return replace(ENTRY, claims=(first, *ENTRY.claims[1:]))


def test_a_refuted_claim_gives_the_reasons_that_its_numbers_show() -> None:
    shown = Reason("theirs is above the base", Beats("theirs", "base"), "kNN")
    wrong = Reason("ours is above the base", Beats("ours", "base"), "kNN")
    excluded = Reason("that nothing is learned", Beats("base", "raw"), "kNN", ruled_out=True)
    entry = with_reasons(shown, wrong, excluded, Reason("few classes"))
    first = judge_claims(entry, numbers(ours=3.0, theirs=8.0))[0]
    assert first.verdict == "refuted"
    words = verdict_in_words(first)
    assert "; why: theirs is above the base (theirs − base: +" in words and "; why: few classes" in words
    assert "; ruled out: that nothing is learned (base − raw: +" in words and "ours is above the base" not in words


def test_what_an_entry_has_said_is_not_said_again() -> None:
    reason, other = Reason("few classes"), Reason("few images", ruled_out=True)
    claims = [replace(ENTRY.claims[0], name=name, reasons=reasons) for name, reasons in
        (("1", (reason,)), ("2", (reason, other)), ("3", (other, reason)))]  # fmt: skip
    said: dict[str, str] = {}
    rulings = judge_claims(replace(ENTRY, claims=tuple(claims)), numbers(ours=3.0, theirs=8.0))
    first, second, third = (verdict_in_words(one, said) for one in rulings)
    assert first.endswith("; why: few classes")
    assert second.endswith("; ruled out: few images; as for claim 1") and "few classes" not in second
    assert third.endswith("; as for claim 2; as for claim 1") and "few" not in third.partition("(kNN)")[2]
    assert verdict_in_words(rulings[0], said).endswith("; as on the left")
    assert all("ours − theirs: -5" in words or "ours − theirs: -4.9" in words for words in (first, second, third))


def test_reasons_are_given_of_refuted_claims_only() -> None:
    entry = with_reasons(Reason("few classes"))
    for ours in (8.0, 3.02):
        assert judge_claims(entry, numbers(ours=ours, theirs=3.0))[0].reasons == ()


def test_reasons_are_about_cells_of_the_entry() -> None:
    with pytest.raises(UserError, match="there is no cell 'other'"):
        with_reasons(Reason("another entry", Beats("other", "base"), "kNN"))


@pytest.mark.slow
def test_refuted_claims_say_why_or_what_was_ruled_out(repository: Path) -> None:
    for level in LEVELS:
        for entry in map(level.entry, ENTRIES):
            rulings = judge_claims(entry, numbers_in(level.folder(repository / PUBLISHED_RESULTS), entry))
            for one in (one for one in rulings if one.verdict == "refuted"):
                assert one.reasons, f"{entry.name}, {one.claim.name}: look for the reason, and write what was ruled out"


def test_the_spread_over_seeds_is_a_measure() -> None:
    """As distances from the median over the seeds; a paper gives its own number under the same name."""
    rows = {"wide": {0: 1.0, 1: 5.0, 2: 9.0}, "narrow": {0: 4.0, 1: 5.0, 2: 6.0}}
    values: Numbers = {name: {"kNN": row} for name, row in rows.items()}
    assert numbers_of(values, "kNN, SD", "wide") == {0: 4.0, 1: 0.0, 2: 4.0}
    assert numbers_of(values, "kNN", "narrow @ kNN, SD") == {0: 1.0, 1: 0.0, 2: 1.0}
    assert numbers_of(values, "other, SD", "wide") == {}
