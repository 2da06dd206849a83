import math
import pickle
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vantage.cli import main
from vantage.composition.fitting import everywhere, parts_of
from vantage.encoders import Convolutions, ResNet9
from vantage.memory import Queue
from vantage.negatives import Sample
from vantage.studies.lab import (
    ENTRIES,
    Arm,
    Entry,
    WorkOrder,
    completion,
    judge_claims,
    make_all,
    missing_pieces,
    numbers_in,
    origins_of_runs,
    page,
    smoke,
)
from vantage.studies.lab.levels import LEVELS, one_gpu
from vantage.studies.lab.making.maker import arm_chain, composition
from vantage.studies.lab.making.results import outdated, read_results, write_collected
from vantage.studies.lab.measures.mosaics import MIOU
from vantage.studies.lab.page.page import scale_of
from vantage.studies.lab.verdicts import VERDICTS
from vantage.training.run import Run

RESULTS = "benchmarks/results/claims"


def entry_of(name: str) -> Entry:
    return next(entry for entry in ENTRIES if entry.name == name)


def test_every_table_and_figure_has_an_entry_and_claims() -> None:
    names = [entry.name for entry in ENTRIES]
    assert len(set(names)) == len(names)
    assert Counter(entry.paper for entry in ENTRIES) == {"JCL": 7, "CNCE": 9, "InterCLR": 11, "InfoMin": 23}
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
        ("jcl-table-2", "4"),
        ("cnce-table-1", "1, CMC"),
        ("cnce-table-1", "2"),
        ("cnce-table-1", "3"),
    }
    assert against["jcl-table-2", "2"] == ("JCL − MoCo v2 = 0 (keypoint 50)",)
    assert against["cnce-table-1", "1, CMC"] == ("CMCRing − CMC = 0 (CIFAR-100)",)
    assert len(against["jcl-table-1", "5"]) == 7  # CPC v1, InstDisc, LocalAgg and MoCo against BigBiGAN, and three more


def test_printed_gains_are_those_of_the_cells() -> None:
    by_name = {one.claim.name: one for one in judge_claims(entry_of("jcl-table-1"), {})}
    assert by_name["1"].paper[0].values == pytest.approx((1.1,))  # §4.2
    means = {one.claim.name: one for one in judge_claims(entry_of("cnce-table-3"), {})}["1"].paper
    assert [each.values[0] for each in means] == pytest.approx([0.411, 1.122, 1.067], abs=2e-3)


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


def test_one_gpu_asks_the_same_of_a_larger_network() -> None:
    """Arms differ in what they differed in; numbers of one level never count at the other."""
    for entry in (entry_of("jcl-table-1"), entry_of("cnce-table-1")):
        larger = one_gpu(entry)
        for small, large in zip(entry.runnable_cells, larger.runnable_cells, strict=True):
            for arm, more in zip(arm_chain(small.experiment), arm_chain(large.experiment), strict=True):
                assert more.run.epochs == 10 * arm.run.epochs and more.run.data.max_images == 22_500
                assert backbones(more.run) == {ResNet9(32)} and backbones(arm.run) == {Convolutions((32, 64, 128, 256))}
                assert everywhere(more.run.branches, sizes) == everywhere(arm.run.branches, sizes)
                assert composition(more) != composition(arm)


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


def test_toys_are_not_made_on_a_gpu() -> None:
    toy = next(entry for entry in ENTRIES if entry.name == "cnce-appendix-c")
    assert toy.runnable_cells and not one_gpu(toy).runnable_cells


def test_scale_and_state_are_named() -> None:
    entry = entry_of("jcl-table-1")
    words = "7,500 training images at 32 px; 29,952 images of warm base, 7,488 or 14,976 of each branch"
    assert words in scale_of(entry)
    assert (
        completion(entry, {}) == "0 seeds complete"
        and completion(entry_of("infomin-table-2"), {}) == "not asked at this level"
    )
    row = {0: 1.0, 1: 1.0}
    numbers = {cell.name: {"linear-cached": row} for cell in entry.runnable_cells if cell.name != "JCL"}
    assert completion(entry, numbers) == "2 seeds complete; still to run: JCL"


@pytest.mark.slow
def test_the_command_line_lists_shows_and_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "jcl-table-1", "--show"]) == 0
    output = capsys.readouterr().out
    for part in (
        "1: JCL is above MoCo v2 (§4.2); paper: JCL − MoCo v2 (top-1): +1.1",
        "JCL: paper: top-1 68.7, top-5 89; here: moco_v2 for 4 epochs, then jcl for 1 epoch",
        "vantage reproduce jcl-table-1 --level two-cores --data tiny-imagenet-50=PATH",
        "vantage pretrain jcl",
        "vantage pretrain moco_v2",
        "results: docs/claims.md#jcl-table-1",
    ):
        assert part in output
    assert main(["reproduce", "jcl-table-2", "--level", "paper"]) == 0
    output = capsys.readouterr().out
    assert "# runs/jcl is trained by the commands of jcl-table-1" in output and "here: " not in output
    lab = ["--out", str(tmp_path / "lab")]
    assert main(["reproduce", "jcl-table-1", *lab, "--missing"]) == 2
    assert "give --data tiny-imagenet-50=PATH" in capsys.readouterr().err
    for words, problem in (
        (["jcl-tabel-1"], "did you mean jcl-table-1"),
        (["jcl-table-1", "--data", "x"], "write NAME=PATH"),
        (["jcl-table-1", "--data", "imagenet=x"], "no set 'imagenet'"),
        (["jcl-table-1", "--seeds", "5..1"], "write FIRST..LAST"),
        (["jcl-table-1", "--jobs", "0"], "at least 1"),
    ):
        assert main(["reproduce", *words, *lab]) == 2
        assert problem in capsys.readouterr().err


@pytest.mark.parametrize("level", ["two-cores", "one-gpu"])
def test_the_list_shows_the_state_of_a_level_by_the_results_that_are_named(
    level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = next(each for each in LEVELS if each.name == level).entry(entry_of("jcl-table-1"))
    folder = next(each for each in LEVELS if each.name == level).folder(Path(RESULTS))
    state = completion(entry, numbers_in(folder, entry))
    assert main(["reproduce", "--level", level, "--results", RESULTS]) == 0
    assert f"; {state}; " in capsys.readouterr().out.splitlines()[0] and not state.startswith("0")


def test_the_list_says_where_published_results_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--out", str(tmp_path / "lab")]) == 0
    assert "published results are on the page docs/claims.md" in capsys.readouterr().err.splitlines()[-1]
    assert main(["reproduce", "--results", RESULTS]) == 0 and not capsys.readouterr().err
    assert main(["reproduce", "--level", "smoke", "--out", str(tmp_path / "lab")]) == 0
    assert "a seed" not in capsys.readouterr().out


def test_every_run_of_a_command_is_trained_by_some_command() -> None:
    for entry in ENTRIES:
        words = {word for line in entry.commands for word in line.split() if word.startswith("runs/")}
        trained = {line.partition(" --out ")[2].split()[0] for line in entry.commands if " pretrain " in line}
        assert words - trained == set(origins_of_runs(entry, ENTRIES)), entry.name


@pytest.mark.slow
def test_a_toy_is_made_and_judged_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reproduce", "cnce-appendix-c", "--level", "smoke", "--seeds", "0..1", "--out", str(tmp_path)]
    assert main([*words, "--missing"]) == 0
    assert "optimal critic: seed 0, toy" in capsys.readouterr().out
    assert main([*words, "--page", str(tmp_path / "claims.md")]) == 0
    output = capsys.readouterr()
    assert "to be done: 0 training runs of 0 images in all and 2 measurements" in output.err
    assert "CNCE's bias is at least as large as NCE's" in output.out
    assert "claims are not judged" in output.out and "4 differences computed, 2 seeds" in output.out
    assert not any(word in output.out for word in ("verdict", "undecided", "supported", "refuted"))
    assert "results of smoke are not on it" in output.err
    assert (tmp_path / "smoke-results" / "cnce-appendix-c.json").exists() and (tmp_path / "claims.md").exists()
    assert main([*words, "--quiet"]) == 0 and "to be done" not in capsys.readouterr().err


@pytest.mark.slow
def test_two_processes_share_an_entry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reproduce", "cnce-appendix-c", "--level", "smoke", "--seeds", "0..3", "--jobs", "2"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    assert "with 2 processes" in capsys.readouterr().err
    assert main([*words, "--out", str(tmp_path), "--missing"]) == 0 and not capsys.readouterr().out.strip()


def test_an_entry_can_be_sent_to_a_process() -> None:
    for entry in ENTRIES:
        assert pickle.loads(pickle.dumps(entry)) == entry


@pytest.mark.slow
def test_commands_of_the_papers_scale_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    lines = {line for entry in ENTRIES for line in entry.commands if "-toy" not in line}  # toys need no images
    assert lines
    for line in sorted(lines):
        program, *words = line.split()
        assert program == "vantage" and main(words) == 2, line  # the images are not here
        message = capsys.readouterr().err
        assert any(part in message for part in ("does not exist", "no run", "holds no", "is not a folder")), (
            f"{line}: {message}"
        )


ON_MOSAICS = {"infomin-figure-4", "jcl-table-2", "cnce-table-4"}
"""Entries with a claim about segmentation."""


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
        assert on_mosaics == ["undecided"] * (entry.name in ON_MOSAICS)


def test_arms_of_an_entry_share_their_base() -> None:
    arms = [cell.experiment for cell in entry_of("jcl-table-1").runnable_cells if isinstance(cell.experiment, Arm)]
    assert len({repr(arm.start) for arm in arms if arm.start}) == 1 and len(arms) == 6
