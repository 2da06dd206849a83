import math
import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lab_entries import entry_of

from vantage.composition.fitting import everywhere, parts_of
from vantage.encoders import Convolutions, ResNet9
from vantage.memory import Queue
from vantage.negatives import Sample
from vantage.studies.lab import (
    ENTRIES,
    Arm,
    Claim,
    Entry,
    WorkOrder,
    completion,
    judge_claims,
    make_all,
    missing_pieces,
    numbers_in,
    page,
    smoke,
)
from vantage.studies.lab.levels import LEVELS, one_gpu, overnight
from vantage.studies.lab.making.collecting import write_collected
from vantage.studies.lab.making.compositions import arm_chain, composition
from vantage.studies.lab.making.results import outdated, read_results
from vantage.studies.lab.measures.mosaics import MIOU
from vantage.studies.lab.page.page import scale_of
from vantage.studies.lab.verdicts import VERDICTS
from vantage.training.run import Run

RESULTS = "benchmarks/results/claims"


def test_every_table_and_figure_has_an_entry_and_claims() -> None:
    names = [entry.name for entry in ENTRIES]
    assert len(set(names)) == len(names)
    assert Counter(entry.paper for entry in ENTRIES) == {"JCL": 7, "CNCE": 10, "InterCLR": 11, "InfoMin": 23, "Ours": 2}
    assert all(entry.claims and entry.name.startswith(entry.paper.lower()) for entry in ENTRIES)


def test_claims_that_nobody_asks_say_why() -> None:
    for entry in ENTRIES:
        for claim in entry.claims:
            assert claim.measure or claim.note, f"{entry.name}, {claim.name}"
            assert not (claim.measure and not claim.predicates)
            assert not (claim.accuracy and claim.measure) or entry.gate is not None


def test_what_is_asked_can_be_measured() -> None:
    for entry in ENTRIES:
        cells = {cell.name for cell in entry.runnable_cells}
        for claim in (claim for claim in entry.claims if claim.measure):
            terms = {term.partition(" @ ")[0] for predicate in claim.predicates for term in predicate.terms}
            assert terms <= cells, f"{entry.name}, {claim.name}: {terms - cells}"


def test_a_claim_that_is_part_of_another_has_no_cells_of_its_own() -> None:
    parts = [(entry, claim) for entry in ENTRIES for claim in entry.claims if claim.part_of]
    assert len(parts) == 12
    for entry, claim in parts:
        names, _, other = claim.part_of.removeprefix("claims ").removeprefix("claim ").partition(" of ")
        whole = entry_of(other) if other else entry
        claims = [one for one in whole.claims if one.name in names.split(" and ")]
        assert len(claims) == len(names.split(" and ")) and not any(one.part_of for one in claims), claim.part_of
        assert _experiments(entry, claim) <= set().union(*(_experiments(whole, one) for one in claims)), claim.part_of


def _experiments(entry: Entry, claim: Claim) -> set[str]:
    terms = {term.partition(" @ ")[0] for predicate in claim.predicates for term in predicate.terms}
    return {repr(entry.cell(term).experiment) for term in terms}


def test_the_papers_contradictions_are_found() -> None:
    entries = (entry_of(name) for name in ("jcl-table-1", "jcl-table-2", "cnce-table-1"))
    against = {
        (e.name, one.claim.name): one.contradictions
        for e in entries
        for one in judge_claims(e, {})
        if one.contradictions
    }
    assert set(against) == {
        ("jcl-table-1", "5"),
        ("jcl-table-2", "2"),
        ("cnce-table-1", "1, CMC"),
        ("cnce-table-1", "2"),
        ("cnce-table-1", "3"),
    }
    assert against["jcl-table-2", "2"] == ("JCL − MoCo v2 = 0 (keypoint 50)",)
    assert against["cnce-table-1", "1, CMC"] == ("CMCRing − CMC = 0 (CIFAR-100)",)
    assert "LA − MoCoRing + 4 = -2.6 (ImageNet)" in against["cnce-table-1", "3"], "more than by up to 4 %"
    assert len(against["jcl-table-1", "5"]) == 7  # CPC v1, InstDisc, LocalAgg and MoCo against BigBiGAN, and three more


def test_the_order_of_a_table_is_asked_of_every_set() -> None:
    """Without annealing IRing is below IR on ImageNet, and above it on CIFAR-10."""
    pairs = {one.claim.name: one.paper for one in judge_claims(entry_of("cnce-table-2"), {})}
    names = {name: [(each.name, round(each.values[0], 1)) for each in pairs[name]] for name in ("4", "4, CIFAR-10")}
    assert names == {"4": [("IR − no anneal (ImageNet)", 1.9)], "4, CIFAR-10": [("no anneal − IR (CIFAR-10)", 0.2)]}


def test_printed_gains_are_those_of_the_cells() -> None:
    by_name = {one.claim.name: one for one in judge_claims(entry_of("jcl-table-1"), {})}
    assert by_name["1"].paper[0].values == pytest.approx((1.1,))  # §4.2
    means = {one.claim.name: one for one in judge_claims(entry_of("cnce-table-3"), {})}["1"].paper
    assert [each.values[0] for each in means] == pytest.approx([0.411, 1.122, 1.067], abs=2e-3)


@pytest.mark.slow
def test_the_page_is_what_the_results_say(repository: Path) -> None:
    text = page(ENTRIES, repository / RESULTS)
    assert (repository / "docs" / "claims.md").read_text() == text, "run vantage reproduce --page docs/claims.md"


def test_results_in_the_repository_belong_to_entries_as_they_are(repository: Path) -> None:
    files = [(level, path) for level in LEVELS for path in sorted(level.folder(repository / RESULTS).glob("*.json"))]
    assert files
    for level, path in files:
        entry, record = level.entry(entry_of(path.stem)), read_results(path)
        assert record["level"] == level.name
        assert not outdated(path.parent, entry), f"{path.name} holds numbers that were made or measured otherwise"
        for name, cell in record["cells"].items():
            numbers = cell["measures"] if entry.cell(name).measures else ()
            assert set(cell["by"]) == set(numbers), f"{path.name}, {name}: collect it anew, to record its measures"
        values = [v for cell in record["cells"].values() for row in cell["measures"].values() for v in row.values()]
        assert all(map(math.isfinite, values)) and all(place["versions"]["torch"] for place in record["made_on"])


@pytest.mark.parametrize(
    ("level", "times", "faster", "network"),
    [(overnight, 5, 1, Convolutions((32, 64, 128, 256))), (one_gpu, 10, 4, ResNet9(32))],
)
def test_other_levels_ask_the_same_for_more_images(
    level: Callable[[Entry], Entry], times: int, faster: int, network: Convolutions | ResNet9
) -> None:
    """Arms differ in what they differed in; numbers of one level never count at another."""
    for entry in (entry_of("jcl-table-1"), entry_of("cnce-table-1")):
        larger = level(entry)
        for small, large in zip(entry.runnable_cells, larger.runnable_cells, strict=True):
            for arm, more in zip(arm_chain(small.experiment), arm_chain(large.experiment), strict=True):
                assert more.run.epochs == times * arm.run.epochs and more.run.data.max_images == 22_500
                assert backbones(more.run) == {network} and backbones(arm.run) == {Convolutions((32, 64, 128, 256))}
                assert everywhere(more.run.branches, sizes) == everywhere(arm.run.branches, sizes)
                assert more.run.batch_size == 256 and arm.run.batch_size == 64
                assert rate(more.run) == pytest.approx(faster * rate(arm.run))
                assert composition(more) != composition(arm)


def rate(run: Run) -> float:
    """The learning rate of the first step."""
    return run.learning_rate(0, 100, run.epochs)


def backbones(run: Run) -> set[Any]:
    """Without what the views decide."""
    networks = [part for part in parts_of(run.encoders) if isinstance(part, ResNet9 | Convolutions)]
    return {replace(network, in_channels=3) for network in networks}


def sizes(part: Any) -> Any:
    """A part without what the level changes."""
    match part:
        case Queue():
            return Queue(1)
        case Sample():
            return Sample(1)
    return part


def test_toys_are_not_made_at_other_levels() -> None:
    toy = entry_of("cnce-appendix-c")
    assert toy.runnable_cells and not one_gpu(toy).runnable_cells and not overnight(toy).runnable_cells


def test_scale_and_state_are_named() -> None:
    entry = entry_of("jcl-table-1")
    words = "7,500 training images at 32 px; 29,952 images of warm base, 7,488 or 14,976 of each branch"
    assert words in scale_of(entry)
    assert (
        completion(entry, {}) == "0 seeds complete"
        and completion(entry_of("infomin-table-3"), {}) == "not asked at this level"
    )
    from_scratch = "7,500 training images at 32 px; 14,976 images seen"
    assert from_scratch in scale_of(entry_of("jcl-figure-2c")), "what is not trained sees no images"
    words = "29,952 or 89,856 images of warm base, 7,488 of each branch; 7,488 images of each arm from scratch"
    assert words in scale_of(entry_of("cnce-figure-2a")), "a base that continues another has seen its images too"
    row = {0: 1.0, 1: 1.0}
    numbers = {cell.name: {"linear-cached": row} for cell in entry.runnable_cells if cell.name != "JCL"}
    assert completion(entry, numbers) == "2 seeds complete; still to run: JCL"


def test_an_entry_can_be_sent_to_a_process() -> None:
    for entry in ENTRIES:
        assert pickle.loads(pickle.dumps(entry)) == entry


ON_MOSAICS = {
    "infomin-figure-4": 1,
    **dict.fromkeys(("jcl-table-2", "cnce-table-4", "interclr-table-3", "infomin-table-2"), 2),
}
"""Entries with claims about segmentation, and how many."""


@pytest.mark.slow
def test_every_cell_of_every_entry_can_be_made(tmp_path: Path) -> None:
    entries = tuple(smoke(entry) for entry in ENTRIES)
    order = WorkOrder(entries, (0,), tmp_path, (), True, "cpu")
    assert make_all(order)
    maker = order.maker()
    assert missing_pieces(maker, entries, (0,)) == []
    write_collected(maker, entries, (0,), tmp_path / "results")
    for entry in entries:
        rulings = judge_claims(entry, numbers_in(tmp_path / "results", entry))
        assert all(one.verdict in VERDICTS for one in rulings)
        assert all(one.results for one in rulings if one.claim.measure), entry.name
        assert not any(one.verdict in ("supported", "refuted") for one in rulings)  # one seed
        on_mosaics = [one.verdict for one in rulings if one.claim.measure == MIOU]
        assert on_mosaics == ["undecided"] * ON_MOSAICS.get(entry.name, 0)


def test_arms_of_an_entry_share_their_base() -> None:
    arms = [cell.experiment for cell in entry_of("jcl-table-1").runnable_cells if isinstance(cell.experiment, Arm)]
    assert len({repr(arm.start) for arm in arms if arm.start}) == 1 and len(arms) == 6
