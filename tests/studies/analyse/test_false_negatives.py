"""The share of false negatives by hand, against loops, and on trained runs."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from runs import run_of, work
from synthetic import vectors
from torch import Tensor

from vantage.data import Arrays, Source, SourceSubset
from vantage.draws import query_seeds
from vantage.errors import UserError
from vantage.frozen.networks import trained_networks, untrained_networks
from vantage.negatives import Rule
from vantage.records import Keys
from vantage.studies.analyse.false_negative_table import FalseNegativeTable, RuleNegatives
from vantage.studies.analyse.false_negatives import FalseNegatives, _own_rows, shares
from vantage.training.images import training_part

IMAGES, QUERIES = 40, 9


def queries_and_pool() -> tuple[Keys, Keys, Tensor]:
    """Random queries and keys with clusters; row i of the pool is image i. Some images have no class."""
    chance = torch.Generator().manual_seed(5)
    true = torch.randint(-1, 3, (IMAGES,), generator=chance)
    image = (true >= 0).nonzero().squeeze(1)[:QUERIES]
    cluster = torch.randint(0, 4, (IMAGES, 1), generator=chance)
    pool = Keys(vectors(IMAGES, 6, 1), torch.arange(IMAGES), cluster)
    return Keys(vectors(QUERIES, 6, 2), image, seed=query_seeds(0, 0, image), step_seed=3), pool, true


def slow(name: str, query: Keys, pool: Keys, row: int, share: float) -> list[int]:
    """Rows of the pool that a rule without a draw chooses, by sorting."""
    image = int(query.image[row])
    cosine = (pool.vector @ query.vector[row]).tolist()
    mates = [j for j in range(IMAGES) if int(pool.clusters[j, 0]) == int(pool.clusters[image, 0])]
    others = [j for j in range(IMAGES) if j not in mates]
    best, best_others = (sorted(some, key=lambda j: -cosine[j]) for some in (range(IMAGES), others))
    count = int(share * IMAGES)
    return {
        "all": list(best),
        "ring": best[int(share * count) : count],
        "ball": best[:count],
        "own cluster": mates,
        "other clusters": others,
        "others, hardest": best_others[:5],
        "others, semi-hard": best_others[: int(share * len(others))],
        "others, semi-easy": best_others[len(others) - int(share * len(others)) :],
    }[name]


@pytest.mark.parametrize(
    "name",
    [
        "all",
        "ring",
        "ball",
        "own cluster",
        "other clusters",
        "others, hardest",
        "others, semi-hard",
        "others, semi-easy",
    ],
)
def test_shares_are_those_of_a_loop_over_sorted_keys(name: str) -> None:
    query, pool, true = queries_and_pool()
    choice = FalseNegatives(share=0.5, drawn=100 if "semi" in name else 5)
    rules = next(rules for title, rules in choice.rules() if title.startswith(name))
    count, share = shares(query, pool, rules, true, 0)
    for row in range(QUERIES):
        image = int(query.image[row])
        negatives = [j for j in slow(name, query, pool, row, 0.5) if j != image and int(true[j]) >= 0]
        assert int(count[row]) == len(negatives)
        assert float(share[row]) == pytest.approx(
            sum(int(true[j]) == int(true[image]) for j in negatives) / len(negatives)
        )


def test_draws_have_the_requested_number_from_allowed_keys() -> None:
    query, pool, true = queries_and_pool()
    rules: dict[str, tuple[Rule, ...]] = dict(FalseNegatives(drawn=7).rules())
    count, _ = shares(query, pool, rules["others, random"], true.clamp(min=0), 0)
    assert count.tolist() == [7] * QUERIES
    assert len(rules) == 10


def test_a_query_without_negatives_is_left_out() -> None:
    query, pool, true = queries_and_pool()
    alone = replace(pool, cluster=torch.arange(IMAGES)[:, None])
    count, share = shares(query, alone, dict(FalseNegatives().rules())["own cluster"], true, 0)
    assert count.tolist() == [0] * QUERIES and bool(share.isnan().all())
    row = RuleNegatives("x", "y", 0.0, share).row()
    assert (row["queries"], row["false_%"], row["error_%"]) == (0, None, None)
    half = RuleNegatives("x", "y", 1.0, torch.tensor([0.0, 1.0, torch.nan]))
    assert (half.mean, half.row()["queries"]) == (50.0, 2) and half.error == pytest.approx(50.0)


class CountedSource(SourceSubset):
    """All images of a source; notes which are decoded."""

    def __init__(self, source: Source, decoded: list[int]) -> None:
        super().__init__(source, range(len(source)))
        self.decoded = decoded

    def image(self, number: int) -> Tensor:
        """One image."""
        self.decoded.append(number)
        return super().image(number)

    def fingerprint(self) -> str:
        """That of the images."""
        return self.source.fingerprint()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source]:
    return run_of("interclr", tmp_path_factory.mktemp("interclr"))


def test_the_rules_of_a_run_stand_beside_the_others(run: tuple[Path, Source]) -> None:
    one = trained_networks(run[0])
    findings = FalseNegatives(images=20, drawn=8)([one], run[1], work())
    rows = findings.table()
    assert [row["encoder"] for row in rows] == ["interclr"] * 12 + ["random encoder"] * 10
    assert [row["rule"] for row in rows[10:12]] == [
        "the run's 0: Sample, OtherImages",
        "the run's 1: Subset, OtherClusters, Hardest",
    ]
    every = rows[0]
    assert every["negatives"] == 47 and every["false_%"] == pytest.approx(100 * 15 / 47) and every["queries"] == 20
    mates = one.pool(0).clusters[:, 0]
    own = next(row for row in rows if row["rule"] == "own cluster")
    image = findings.chosen[0].same  # as many queries as were asked for
    assert len(image) == 20 and 0 < own["negatives"] <= int(mates.unique(return_counts=True)[1].max()) - 1
    assert "not counted" in findings.lines()[-1]


@pytest.mark.slow
def test_fewer_keys_are_drawn_from_the_images_and_queries_from_them(run: tuple[Path, Source]) -> None:
    """With the classes and clusters of the images that were drawn."""
    one = trained_networks(run[0])
    encoded: list[int] = []
    few = FalseNegatives(images=20, keys=30, drawn=8, random_encoder=False)
    rows = few([one], CountedSource(run[1], encoded), work()).table()
    assert len(set(encoded)) == 30 and len(encoded) == 20 + 30
    assert rows[0]["negatives"] == 29 and rows[0]["queries"] == 20
    assert few([one], run[1], work()).table() == rows
    assert replace(few, seed=1)([one], run[1], work()).table() != rows
    assert replace(few, keys=0)([one], run[1], work()).table() == replace(few, keys=99)([one], run[1], work()).table()
    label = torch.empty_like(one.pool(0).clusters[:, 0])
    label[one.pool(0).image] = one.pool(0).clusters[:, 0]
    mates = [int((label[sorted(set(encoded))] == label[number]).sum()) - 1 for number in encoded[:20]]
    own = next(row for row in rows if row["rule"] == "own cluster")
    assert own["negatives"] == pytest.approx(sum(mates) / 20)
    every = FalseNegatives(images=48, keys=30, drawn=8, random_encoder=False)([one], run[1], work())
    assert len(every.chosen[0].same) == 30


def test_the_part_of_the_images_that_training_took_is_enough(run: tuple[Path, Source]) -> None:
    """Its numbers are those of the clusters; other images are refused before one is encoded."""
    one, encoded = trained_networks(run[0]), list[int]()
    whole, data = CountedSource(run[1], encoded), replace(one.run.data, max_images=30)
    part = training_part(whole, data)
    assert isinstance(part, SourceSubset)
    few = untrained_networks(replace(one.run, data=data), 30, 0)
    few = replace(few, name="few", folder=run[0], fingerprint=part.fingerprint())
    analysis = FalseNegatives(images=4, drawn=8, random_encoder=False)
    with pytest.raises(UserError, match="interclr was trained on 48 images"):
        analysis([few, one], whole, work())
    assert not encoded
    analysis([few], whole, work())
    assert set(encoded) == set(part.numbers.tolist())


def test_two_views_with_a_network_each(tmp_path: Path) -> None:
    """Two branches of one step draw the same images, as CMC needs, so their rows are equal."""
    folder, source = run_of("cmc_softmax", tmp_path, epochs=1)
    findings = FalseNegatives(images=10, drawn=8, random_encoder=False)([trained_networks(folder)], source, work())
    assert [row["rule"] for row in findings.table()[10:]] == ["the run's 0, 1: Sample"]


@pytest.mark.slow
def test_branches_of_equal_rows_are_named_in_one(tmp_path: Path) -> None:
    """Both of SimCLR's branches, and those of small views, keep every key: their rows are the same six times."""
    folder, source = run_of("moco_v2_multi_crop", tmp_path, epochs=1)
    encoded: list[int] = []
    findings = FalseNegatives(images=10, drawn=8)([trained_networks(folder)], CountedSource(source, encoded), work())
    rows = [(row["encoder"], row["rule"]) for row in findings.table()]
    assert rows[10:12] == [(rows[0][0], "the run's 0 to 6: all"), ("random encoder", "all")]
    assert len(encoded) == (7 + 1) * (10 + len(source)), "the random encoder sees the views of one branch only"


def test_branches_with_other_numbers_or_rules_keep_rows_of_their_own() -> None:
    share = torch.tensor([0.5, torch.nan])
    row = RuleNegatives("run", "all", 3.0, share)
    others = [replace(row, rule="Ring"), row, replace(row, same=torch.tensor([0.5, 0.0])), replace(row, rule="Ring")]
    assert [one.rule for one in _own_rows([row, *others])] == [
        "the run's 0, 2: all",
        "the run's 1, 4: Ring",
        "the run's 3: all",
    ]
    assert [one.rule for one in _own_rows([row])] == ["the run's: all"]


def test_clusters_of_other_images_are_refused_and_so_are_images_without_classes(run: tuple[Path, Source]) -> None:
    one = trained_networks(run[0])
    with pytest.raises(UserError, match="was trained on 48 images"):
        FalseNegatives(images=4)([one], SourceSubset(run[1], range(30)), work())
    without_labels = Arrays(torch.zeros(48, 16, 16, 3, dtype=torch.uint8).numpy(), None, "bare")
    with pytest.raises(UserError, match="none of the 48 images has a class"):
        FalseNegatives()([one], without_labels, work())


@pytest.mark.parametrize(
    ("field", "value"), [("images", 0), ("keys", -1), ("drawn", 0), ("clusters", -1), ("share", 0.0)]
)
def test_settings_that_make_no_sense_are_refused(field: str, value: float) -> None:
    with pytest.raises(UserError, match=f"{field} is {value}"):
        FalseNegatives(**{field: value})


def test_the_picture_has_a_panel_for_each_encoder() -> None:
    same = torch.tensor([0.2, 0.4])
    rows = tuple(RuleNegatives(e, r, 3.0, same) for e in ("one", "two") for r in ("all", "ring"))
    figure = FalseNegativeTable((*rows, RuleNegatives("two", "own", 0.0, same * torch.nan))).figure()
    assert [panel.get_title() for panel in figure.axes] == ["one", "two"]
    assert [bar.get_width() for bar in figure.axes[0].patches] == pytest.approx([30, 30])
    assert [text.get_text() for text in figure.axes[1].texts] == ["30.0", "30.0", "none"]
