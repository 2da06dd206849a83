"""Purity, mutual information and churn against loops, and the labels of a trained run."""

import math
from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
import torch
from runs import run_of, work

from vantage.data import Arrays, Source, SourceSubset
from vantage.errors import UserError
from vantage.frozen.networks import trained_networks
from vantage.studies.analyse.labels import Labeling, Labelings, Labels, churn, mutual_information, purity

LABEL, TRUE = [4, 4, 4, 0, 0, 7, 7, 7, 7, 7], [0, 0, 1, 1, 1, 2, 2, 0, 2, 2]


def slow_purity(label: list[int], true: list[int]) -> float:
    right = sum(max(Counter(t for c, t in zip(label, true, strict=True) if c == k).values()) for k in set(label))
    return right / len(label)


def slow_information(label: list[int], true: list[int]) -> float:
    n = len(label)
    both, one, other = Counter(zip(label, true, strict=True)), Counter(label), Counter(true)
    shared = sum(c / n * math.log(c * n / (one[a] * other[b])) for (a, b), c in both.items())
    entropy = [-sum(c / n * math.log(c / n) for c in counts.values()) for counts in (one, other)]
    return shared / (sum(entropy) / 2)


def slow_churn(before: list[int], after: list[int]) -> float:
    """1 − the Rand index less what is expected by chance, over pairs of images."""
    pairs = list(combinations(range(len(before)), 2))
    a, b = ([x[i] == x[j] for i, j in pairs] for x in (before, after))
    together, expected = sum(x and y for x, y in zip(a, b, strict=True)), sum(a) * sum(b) / len(pairs)
    return 1 - (together - expected) / ((sum(a) + sum(b)) / 2 - expected)


def random_labels(seed: int) -> list[int]:
    return torch.randint(0, 4, (30,), generator=torch.Generator().manual_seed(seed)).tolist()


@pytest.mark.parametrize(("label", "true"), [(LABEL, TRUE), (random_labels(0), random_labels(1))])
def test_the_numbers_are_those_of_loops(label: list[int], true: list[int]) -> None:
    one, other = torch.tensor(label), torch.tensor(true)
    assert purity(one, other) == pytest.approx(slow_purity(label, true), abs=1e-12)
    assert mutual_information(one, other) == pytest.approx(slow_information(label, true), abs=1e-12)
    assert churn(one, other) == pytest.approx(slow_churn(label, true), abs=1e-12)


def test_a_case_computed_by_hand() -> None:
    assert purity(torch.tensor(LABEL), torch.tensor(TRUE)) == 0.8


def test_names_of_clusters_do_not_matter_to_churn() -> None:
    label = torch.tensor(random_labels(2))
    assert churn(label, 17 - label) == pytest.approx(0.0, abs=1e-12)
    apart, together = torch.arange(6), torch.zeros(6, dtype=torch.int64)
    assert churn(apart, apart + 5) == pytest.approx(0.0) and churn(apart, together) == pytest.approx(1.0)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source]:
    return run_of("interclr", tmp_path_factory.mktemp("interclr"))


def test_the_labels_of_a_run_are_compared_with_the_classes(run: tuple[Path, Source]) -> None:
    one, source = trained_networks(run[0]), run[1]
    findings = Labels()([one], source, work())
    (row,), (labeling,) = findings.table(), findings.labelings
    label, before = one.pool(0).clusters[:, 0], one.before()
    assert before is not None and before.step == one.step - 1
    assert torch.equal(labeling.label, label)
    true = [source.label(number) or 0 for number in range(48)]
    assert row["purity"] == pytest.approx(slow_purity(label.tolist(), true))
    assert row["churn"] == pytest.approx(churn(before.pool(0).clusters[:, 0], label))
    assert (row["churn_steps"], row["images"], row["clusters"]) == (1, 48, len(label.unique()))
    assert sorted(labeling.chance_label.tolist()) == sorted(label.tolist())
    assert "interclr" in findings.lines()[1]


def test_every_clustering_has_a_row(tmp_path: Path) -> None:
    folder, source = run_of("local_aggregation", tmp_path, epochs=1)
    one = trained_networks(folder)
    count = one.pool(0).clusters.shape[1]
    rows = Labels()([one], source, work()).table()
    assert count > 1 and [row["labels"] for row in rows] == [f"local_aggregation 0.{n}" for n in range(count)]


def test_images_without_a_class_count_for_sizes_only() -> None:
    label, true = torch.tensor([0, 0, 1, 1, 1]), torch.tensor([0, 0, 1, 0, -1])
    row = Labeling("x", label, true, torch.tensor([0, 1, 0, 1]), None, 0).row()
    assert (row["largest"], row["purity"], row["purity_by_chance"]) == (3, 0.75, 0.75)
    assert row["churn"] is None and row["churn_steps"] is None


def test_misfits_are_refused(run: tuple[Path, Source], tmp_path: Path) -> None:
    one, source = trained_networks(run[0]), run[1]
    with pytest.raises(UserError, match="was trained on 48 images .* but these are 40"):
        Labels()([one], SourceSubset(source, range(40)), work())
    with pytest.raises(UserError, match="was trained on 48 images"):
        Labels()([one], SourceSubset(source, range(47, -1, -1)), work())
    without_labels = Arrays(torch.zeros(48, 16, 16, 3, dtype=torch.uint8).numpy(), None, "bare")
    with pytest.raises(UserError, match="none of the 48 images has a class"):
        Labels()([one], without_labels, work())
    other, images = run_of("ring_moco", tmp_path, epochs=1)
    with pytest.raises(UserError, match="ring_moco keeps no clusters"):
        Labels()([trained_networks(other)], images, work())


def test_the_picture_has_bars_for_every_run_and_says_where_churn_is_unknown() -> None:
    label, true = torch.tensor(LABEL), torch.tensor(TRUE)
    first = Labeling("first", label, true, label.flip(0), label, 5)
    figure = Labelings((first, replace(first, name="second", before=None, steps=0))).figure()
    bars, sizes = figure.axes
    assert len(bars.patches) == 6 and [text.get_text() for text in bars.texts] == ["one checkpoint"]
    assert sizes.get_legend_handles_labels()[1] == ["first", "second"]
    assert float(bars.patches[0].get_height()) == 0.8
