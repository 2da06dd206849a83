"""A comparison with pretraining as it is made: cells against the protocols by hand, what is kept, and time."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny import cpu_work, images, saved_run, tiny_run

from vantage.data import SourceSubset, labels_of
from vantage.data.splits import LabeledSplit, hold_out_mask, train_and_test
from vantage.errors import UserError
from vantage.evaluate import FineTune, LinearCached
from vantage.evaluate.protocols.finetune.finetune import share_of_each_class
from vantage.frozen.encoder import load, random_encoder, raw_pixels
from vantage.progress import QuietProgress
from vantage.storage.files import write_json
from vantage.studies.benefit import BenefitPlan, BenefitResult, Budget, comparison, measure_benefit
from vantage.studies.benefit.encoders import count_pretraining_images, encoders_by_name
from vantage.studies.benefit.timing import Job, UnitTimes, estimate_seconds, fit_budget
from vantage.studies.benefit.ways import (
    FROZEN,
    PIXELS,
    RANDOM,
    SCRATCH,
    TUNED,
    all_ways,
    train_classifier,
)
from vantage.training.images import training_part

BUDGET = Budget(1, 16, (0.05,), (1e-2,))
PLAN = BenefitPlan((0.25, 1.0), (0, 1), BUDGET)
SOURCE = images(60, 0, noise=90.0)
PACE = UnitTimes(0.01, 0.001, 1e-6, 0.5)


class Messages(QuietProgress):
    """Keeps the messages."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        """Remember it."""
        self.lines.append(text)

    warn = line


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run."""
    folder = tmp_path_factory.mktemp("benefit")
    saved_run(folder / "run", tiny_run())
    return folder


@pytest.fixture(scope="module")
def whole(home: Path) -> tuple[BenefitResult, list[str]]:
    """A comparison, and the messages meanwhile."""
    messages = Messages()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "measure_unit_times", lambda *_: PACE)
        patch.setattr(comparison, "write_benefit", lambda *_: [])  # pictures take long
        result = measure_benefit(
            home / "run", SOURCE, None, home / "out", PLAN, work=replace(cpu_work(home), progress=messages)
        )
    return result, messages.lines


@pytest.mark.slow
def test_every_way_is_judged_with_every_number_of_labels(whole: tuple[BenefitResult, list[str]], home: Path) -> None:
    result, lines = whole
    assert result.ways == (TUNED, FROZEN, SCRATCH, RANDOM, PIXELS)
    assert (result.images.train, result.images.test, result.labels) == (48, 12, [12, 48])
    expected = {(way, labels, seed) for way in result.ways for labels in (12, 48) for seed in (0, 1)}
    assert {(cell.way, cell.labels, cell.seed) for cell in result.classifiers} == expected
    assert any("20 of 20 classifiers are to be trained, each for at least 1 epoch: about" in line for line in lines)
    assert [path.name for path in (home / "out").iterdir() if not path.name.startswith("leaks")] == ["benefit.json"]


def test_cells_are_what_the_protocols_measure(whole: tuple[BenefitResult, list[str]], home: Path) -> None:
    result, own = whole[0], cpu_work(home / "hand")
    train, test, _ = train_and_test(SOURCE, None)
    run = tiny_run()
    rows = share_of_each_class(labels_of(train), 0.25, 1)
    subset = SourceSubset(train, rows)
    probe = LinearCached((1e-2,), seed=1)
    training = FineTune(1.0, epochs=10, batch_size=16, backbone_learning_rate=0.05, head_learning_rate=0.05, seed=1)
    encoder, random = load(home / "run"), random_encoder(run, 1)
    by_hand = {
        TUNED: training(encoder, subset, test, own),
        FROZEN: probe(encoder, subset, test, own),
        SCRATCH: training(random, subset, test, own),
        RANDOM: probe(random, subset, test, own),
        PIXELS: probe(raw_pixels(run), subset, test, own),
    }
    for way, outcome in by_hand.items():
        assert result.top1(way, 12)[1] == pytest.approx(outcome.accuracy.top1), way


def test_what_is_done_is_not_made_again(
    whole: tuple[BenefitResult, list[str]], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def again(shares: tuple[float, ...], minutes: float | None = None, epochs: int = 1) -> BenefitResult:
        plan = BenefitPlan(shares, (0, 1), replace(BUDGET, epochs=epochs))
        return measure_benefit(home / "run", SOURCE, None, home / "out", plan, minutes=minutes, work=cpu_work(home))

    monkeypatch.setattr(comparison, "write_benefit", lambda *_: [])
    monkeypatch.setattr(comparison, "train_classifier", lambda *_: pytest.fail("it was made again"))
    monkeypatch.setattr(comparison, "measure_unit_times", lambda *_: pytest.fail("it was timed again"))
    assert again((1.0, 0.25)) == whole[0]
    assert again((0.25, 1.0), minutes=5.0, epochs=9) == whole[0]  # the epochs of before
    assert again((1.0,)).classifiers == tuple(cell for cell in whole[0].classifiers if cell.labels == 48)
    with pytest.raises(UserError, match=r"out holds another comparison with pretraining: budget.epochs is 1 there, 9"):
        again((1.0,), epochs=9)
    with pytest.raises(UserError, match="holds no comparison with pretraining"):
        measure_benefit(home / "run", SOURCE, None, home / "run", PLAN, work=cpu_work(home))


@pytest.mark.slow
def test_a_stopped_comparison_goes_on(
    whole: tuple[BenefitResult, list[str]], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = json.loads((home / "out" / "benefit.json").read_text())
    lost_row = records["rows"].pop(7)
    write_json(tmp_path / "out" / "benefit.json", records)
    protocols_trained, train_one = [], train_classifier
    monkeypatch.setattr(
        comparison,
        "train_classifier",
        lambda *arguments: protocols_trained.append(arguments[0].name) or train_one(*arguments),
    )
    monkeypatch.setattr(comparison, "measure_unit_times", lambda *_: PACE)
    result = measure_benefit(home / "run", SOURCE, None, tmp_path / "out", PLAN, work=cpu_work(home))
    assert [lost_row["way"]] == protocols_trained
    assert [replace(cell, seconds=0.0) for cell in result.classifiers] == [
        replace(cell, seconds=0.0) for cell in whole[0].classifiers
    ]


@pytest.mark.slow
def test_the_learning_rate_is_chosen_on_images_held_out(home: Path) -> None:
    run, own, budget = tiny_run(), cpu_work(home), Budget(1, 16, (1e-6, 0.05, 1e30), (1e-2,))
    train, test, _ = train_and_test(SOURCE, None)
    label = labels_of(train)
    data, rows = LabeledSplit(train, label, test, labels_of(test)), share_of_each_class(label, 0.5, 0)
    scratch = all_ways(load(home / "run"), {}, None)[2]
    _, choice = train_classifier(scratch, 0, data, rows, budget, own)
    mask = hold_out_mask(label[rows], 0.2, 0)
    rest, out = SourceSubset(train, rows[~mask]), SourceSubset(train, rows[mask])
    trials = [one(random_encoder(run, 0), rest, out, own).accuracy.top1 for one in budget.trainings(len(rows), 0)[:2]]
    assert choice["held_out_top1"] == pytest.approx([*trials, 0.0])  # the last one diverges
    best = max(range(2), key=lambda number: (trials[number], number))  # of equals the middle one
    assert choice["learning_rate"] == budget.learning_rates[best]
    _, choice = train_classifier(scratch, 0, data, torch.tensor([0, 1, 2]), budget, own)  # one image of each class
    assert (choice["learning_rate"], choice["held_out_top1"]) == (0.05, [0.0, 0.0, 0.0])
    with pytest.raises(UserError, match="diverges at every learning rate"):
        train_classifier(scratch, 0, data, rows, Budget(1, 16, (1e30,)), own)


@pytest.mark.slow
def test_other_weights_and_leaks_are_reported(home: Path, tmp_path: Path) -> None:
    saved_run(tmp_path / "other", tiny_run(), seed=5)
    train = SourceSubset(SOURCE, range(48))
    test = SourceSubset(SOURCE, [*range(48, 60), 0, 1])
    plan, messages = BenefitPlan((0.01, 0.02, 1.0), (0, 1), BUDGET), Messages()
    own = replace(cpu_work(tmp_path), progress=messages)
    record = {"data": {"fingerprint": train.fingerprint(), "images": 48}}
    write_json(tmp_path / "run" / "provenance.json", [record])
    shutil.copytree(home / "run", tmp_path / "run", dirs_exist_ok=True)
    result = measure_benefit(
        tmp_path / "run", train, test, tmp_path / "out", plan, others=[tmp_path / "other"], work=own
    )
    assert result.images.in_pretraining is None  # names of another set say nothing
    assert result.ways[5:] == ("other, fine-tuned", "other, frozen") and result.labels == [3, 48]
    assert "2 % are the same 3 labels as 1 %" in messages.lines
    assert {12, 13} <= set(result.images.leaks)
    text = (tmp_path / "out" / "benefit.md").read_text()
    assert "near-duplicates of training images; without them pretraining adds" in text
    assert "other, frozen: with 3 labels (1 %) " in text
    assert (tmp_path / "out" / "leaks.csv").is_file() and (tmp_path / "out" / "leaks.png").is_file()
    with pytest.raises(UserError, match="other is named twice"):
        measure_benefit(home / "run", train, test, tmp_path / "new", plan, others=[tmp_path / "other"] * 2, work=own)
    assert not (tmp_path / "new").exists()


def test_others_with_one_name_are_distinguished_from_one_named_twice(home: Path, tmp_path: Path) -> None:
    paths = [shutil.copytree(home / "run", tmp_path / part / "other") for part in "ab"]
    assert list(encoders_by_name(home / "run", paths[:1])) == ["other"]
    with pytest.raises(UserError, match="two of the others are called other, .*/b/other and an earlier one"):
        encoders_by_name(home / "run", paths)


def test_images_of_pretraining_are_counted(home: Path, tmp_path: Path) -> None:
    encoder = load(home / "run")
    whole_run = replace(encoder.run, data=replace(encoder.run.data, hold_out=0.1))
    encoder = replace(encoder, run=whole_run)
    test = train_and_test(SOURCE, None)[1]
    assert count_pretraining_images(tmp_path, encoder, SOURCE, test) is None  # no record
    for source, count in ((training_part(SOURCE, whole_run.data), 6), (images(60, 1), None)):
        write_json(tmp_path / "provenance.json", [{"data": {"fingerprint": source.fingerprint(), "images": 54}}])
        # half of the fifth was held out of the run too
        assert count_pretraining_images(tmp_path, encoder, SOURCE, test) == count


def test_expected_time_is_the_sum_of_its_parts(home: Path) -> None:
    ways, budget = all_ways(load(home / "run"), {}, None), Budget(2, 16)
    tuned_job, linear_job = Job(ways[0], 0, 0.5, 40, True), Job(ways[4], 0, 0.5, 40, True)
    seconds = estimate_seconds([tuned_job, linear_job], {"": PACE}, budget, 80, 20)
    steps = 7 * 40 * (1 + 0.8 * 3)  # 7 epochs of 3 steps are at least 20 steps
    assert seconds[tuned_job] == pytest.approx(0.01 * steps + 0.001 * (20 + 40 * 4) + 0.5 * 4)
    assert seconds[linear_job] == pytest.approx(1e-6 * 3072 * 40 * 40 * 6 + 0.001 * 100)
    plan = BenefitPlan((0.5, 1.0), (0, 1), budget)
    for minutes in (1.0, 2.0, 1e6):
        epochs = fit_budget(plan, [tuned_job, linear_job], {"": PACE}, 80, 20, 60 * minutes).epochs
        budgets = (replace(budget, epochs=each) for each in (epochs, epochs + 1))
        totals = [sum(estimate_seconds([tuned_job, linear_job], {"": PACE}, each, 80, 20).values()) for each in budgets]
        assert totals[0] <= 60 * minutes and (epochs == 200 or totals[1] > 60 * minutes)
    with pytest.raises(UserError, match="even with 5 epochs, the 2 classifiers still .* about 0.9 minutes"):
        fit_budget(plan, [tuned_job, linear_job], {"": PACE}, 80, 20, 3.0)


@pytest.mark.parametrize(
    "mistake, words",
    [
        (lambda: BenefitPlan(shares=()), "shares"),
        (lambda: BenefitPlan(shares=(0.0, 1.0)), "shares of the labels: 0 100 %"),
        (lambda: BenefitPlan(shares=(1.5,)), "150 %"),
        (lambda: BenefitPlan(seeds=(0,)), "at least two"),
        (lambda: BenefitPlan(seeds=(0, 0)), "such as 0 1, each once"),
        (lambda: Budget(epochs=0), "epochs is 0: give at least 1"),
        (lambda: Budget(batch_size=1), "batch_size is 1: give at least 2"),
        (lambda: Budget(learning_rates=(0.1, 0.1)), "all different, finite"),
        (lambda: Budget(penalties=()), "at least one"),
    ],
)
def test_plans_that_make_no_sense_are_refused(mistake, words: str) -> None:
    with pytest.raises(UserError, match=words):
        mistake()
