"""The verdict, table and picture of a comparison with pretraining, on made-up cells; the interval against loops."""

import csv
from math import sqrt

import numpy as np
import pytest
import torch
from scipy import stats

from vantage.measures.significance import interval
from vantage.studies.benefit import BenefitResult, Budget, ClassifierResult, Gap, SplitImages, benefit_figure, sentences
from vantage.studies.benefit.result import pack_bits
from vantage.studies.benefit.verdict import markdown
from vantage.studies.benefit.ways import FROZEN, PIXELS, RANDOM, SCRATCH, TUNED

TEST, SEEDS = 400, 4


def cells(way: str, labels: int, accuracy: float, test: int = TEST) -> list[ClassifierResult]:
    """Cells of every seed that are right on about a share of the test images, mostly the easier ones."""
    difficulty = np.random.default_rng(0).uniform(size=test)
    results = []
    for seed in range(SEEDS):
        chance = np.random.default_rng([seed, labels, len(way)])
        right = difficulty + 0.05 * chance.standard_normal(test) < accuracy
        results.append(
            ClassifierResult(way, labels / 1000, labels, seed, pack_bits(torch.from_numpy(right)), {"l2": 0.1}, 1.0)
        )
    return results


def result_of(
    few: dict[str, float], every: dict[str, float], leaks: tuple[int, ...] = (), test: int = TEST
) -> BenefitResult:
    """A result with accuracies at 10 labels and at all 1,000."""
    results = [cell for labels, each in ((10, few), (1000, every)) for way, one in each.items()
            for cell in cells(way, labels, one, test)]  # fmt: skip
    return BenefitResult(tuple(results), tuple(few), SplitImages(1000, test, "a set of its own", leaks, 7), Budget())


FEW = {TUNED: 0.6, FROZEN: 0.5, SCRATCH: 0.4, RANDOM: 0.3, PIXELS: 0.45}
EVERY = {TUNED: 0.8, FROZEN: 0.6, SCRATCH: 0.8, RANDOM: 0.5, PIXELS: 0.7}


def test_bits_come_back() -> None:
    right = torch.from_numpy(np.random.default_rng(0).uniform(size=13) < 0.5)
    assert ClassifierResult(TUNED, 1.0, 5, 0, pack_bits(right), {}, 0.0).hits(13).tolist() == right.double().tolist()


def test_an_interval_adds_up_seeds_and_test_images() -> None:
    points = np.random.default_rng(1).normal(5, 20, (4, 30)) + np.random.default_rng(2).normal(0, 9, (4, 1))
    gap = Gap.of(points)
    by_seed = [sum(row) / 30 for row in points.tolist()]
    by_image = [sum(column) / 4 for column in points.T.tolist()]
    mean = sum(by_seed) / 4
    seeds = sum((one - mean) ** 2 for one in by_seed) / 3 / 4
    variance = sum((one - mean) ** 2 for one in by_image) / 29 / 30
    freedom = (seeds + variance) ** 2 / (seeds**2 / 3 + variance**2 / 29)
    half = stats.t.ppf(0.975, freedom) * sqrt(seeds + variance)
    assert (gap.mean, gap.low, gap.high) == pytest.approx((mean, mean - half, mean + half))
    assert gap.reverse == Gap(-gap.mean, -gap.high, -gap.low)


def test_without_spread_over_images_it_is_the_t_interval_of_the_seeds() -> None:
    values = [3.0, 5.0, 4.0, 8.0]
    gap = Gap.of(np.array(values)[:, None].repeat(50, 1))
    assert (gap.low, gap.high) == pytest.approx(interval(values))
    assert Gap.of(np.zeros((3, 5))) == Gap(0.0, 0.0, 0.0)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    chance, hits, rounds = np.random.default_rng(0), 0, 400
    for _ in range(rounds):
        points = 3 + chance.normal(0, 2, (5, 1)) + chance.normal(0, 30, (1, 300)) + chance.normal(0, 30, (5, 300))
        gap = Gap.of(points)
        hits += gap.low <= 3 <= gap.high
    assert 0.93 <= hits / rounds <= 0.995


def test_the_first_sentence_answers_the_question() -> None:
    result = result_of(FEW, EVERY)
    few, every = (result.gap(TUNED, SCRATCH, labels) for labels in (10, 1000))
    assert few.low > 0 > every.low and every.high > 0
    points = few.words.replace(" [", " points [")
    assert sentences(result)[0] == (
        f"With 10 labels (1 %), pretraining adds {points} over training from scratch; with "
        f"all 1,000 labels, pretraining adds {every.words} over training from scratch: no difference was seen."
    )
    worse = result_of({**FEW, TUNED: 0.2}, EVERY)
    words = worse.gap(TUNED, SCRATCH, 10).words.replace(" [", " points [")
    assert f"pretraining costs accuracy: {words} against training from scratch" in sentences(worse)[0]


def test_baselines_that_are_better_are_named() -> None:
    every = {**EVERY, SCRATCH: 0.7}
    result = result_of({**FEW, PIXELS: 0.7}, every)
    numbers = f"{result.mean(PIXELS, 10):.1f} % against {result.mean(TUNED, 10):.1f} %"
    start = "Without pretraining, one way"
    sentence = f"{start} is as good as the run or better: with 10 labels (1 %), raw pixels: {numbers}."
    assert sentence in sentences(result)
    assert not any(line.startswith(start) for line in sentences(result_of(FEW, every)))
    frozen = next(line for line in sentences(result) if line.startswith("Frozen"))
    above, below = result.gap(FROZEN, RANDOM, 10), result.gap(PIXELS, FROZEN, 10)
    assert (
        f"with 10 labels (1 %) the run is {above.words} above a random network and {below.words} below raw pixels"
        in frozen
    )


def test_other_weights_are_compared_with_the_run() -> None:
    more = {"imagenet, fine-tuned": 0.9, "imagenet, frozen": 0.5}
    lines = sentences(result_of(FEW | more, EVERY | more))
    tuned_line = next(line for line in lines if line.startswith("imagenet, fine-tuned:"))
    assert "with 10 labels (1 %) 3" in tuned_line and "above pretrained, fine-tuned" in tuned_line
    frozen = next(line for line in lines if line.startswith("imagenet, frozen:"))
    assert "not clearly different from pretrained, frozen" in frozen


def test_the_split_is_named() -> None:
    lines = sentences(result_of(FEW, EVERY, leaks=(0, 3, 9)))
    without = result_of(FEW, EVERY, leaks=(0, 3, 9)).gap(TUNED, SCRATCH, 10, leaks=False)
    rows = [number for number in range(TEST) if number not in (0, 3, 9)]
    result = result_of(FEW, EVERY)
    points = (result.points(TUNED, 10) - result.points(SCRATCH, 10))[:, rows]
    assert without == Gap.of(points)
    assert lines[-2].startswith("3 of 400 test images (0.8 %) are near-duplicates of training images; without them")
    assert without.words in lines[-2]
    assert lines[-1] == "The run was pretrained on 7 of the test images, without their labels."


def test_a_test_set_that_is_mostly_near_duplicates_is_doubted() -> None:
    lines = sentences(result_of(FEW, EVERY, leaks=tuple(range(300))))
    start = "300 of 400 test images (75.0 %) are near-duplicates of training images: they are copies, or the run's"
    assert lines[-2].startswith(f"{start} features mean nothing; without them")


def test_tables_hold_the_means() -> None:
    result = result_of(FEW, EVERY)
    text = markdown(result)
    top1 = np.array(
        [100 * cell.hits(TEST).mean() for cell in result.classifiers if (cell.way, cell.labels) == (TUNED, 10)]
    )
    assert f"{top1.mean():.1f} ± {top1.std(ddof=1):.1f}" in text
    assert result.gap(TUNED, SCRATCH, 10).words in text
    rows = list(csv.DictReader(result.csv().splitlines()))
    assert [float(row["top-1 (%)"]) for row in rows if (row["way"], row["labels"]) == (TUNED, "10")] == top1.tolist()


def test_the_picture_shows_means_and_intervals() -> None:
    result = result_of(FEW, EVERY)
    first, second = benefit_figure(result).axes
    assert [bars.get_label() for bars in first.containers] == list(result.ways)
    for bars, way in zip(first.containers, result.ways, strict=True):
        assert bars.lines[0].get_ydata().tolist() == [result.mean(way, labels) for labels in (10, 1000)]  # pyright: ignore
    gaps = [result.gap(TUNED, SCRATCH, labels) for labels in (10, 1000)]
    (bars,) = second.containers
    segments = bars.lines[2][0].get_segments()  # pyright: ignore
    assert [segment[:, 1].tolist() for segment in segments] == [pytest.approx([gap.low, gap.high]) for gap in gaps]


def test_a_small_share_is_not_said_to_be_none() -> None:
    for count, share in ((0, "0.0 %"), (1, "less than 0.1 %"), (2, "0.1 %"), (36, "1.4 %")):
        line = sentences(result_of(FEW, EVERY, tuple(range(count)), 2_500))[-2]
        assert line.startswith(f"{count} of 2,500 test images ({share}) ")
