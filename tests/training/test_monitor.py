"""What a run reports about itself."""

import math
from dataclasses import replace

import pytest
import small_recipes
import synthetic
import torch
from torch.nn.functional import normalize
from torch.testing import assert_close

from vantage.estimators import InfoNCE
from vantage.measures import effective_rank
from vantage.recipes import RECIPES, cmc, simclr
from vantage.step import Watched
from vantage.training.watching.branches import epoch_lines, kept_losses, monitor_of
from vantage.training.watching.epoch_end import is_shown
from vantage.training.watching.monitor import Monitor, warning


def nearest(query: torch.Tensor, key: torch.Tensor, image: torch.Tensor) -> torch.Tensor:
    """Largest cosine with a key of another image."""
    return (query @ key.T).masked_fill(image[:, None] == image, -1.0).amax(1)


def facts_of(query: torch.Tensor, key: torch.Tensor, loss: float = 1.0) -> dict[str, float]:
    monitor = Monitor(query.shape[1])
    monitor.add(torch.tensor(loss), query, (query * key).sum(1), nearest(query, key, torch.arange(len(query))))
    return monitor.read()


def test_numbers_equal_their_loops():
    monitor, losses, right, distances, pairs, every = Monitor(5), [2.0, 3.0], [], [], [], []
    for batch in range(2):
        query, key = (
            synthetic.vectors(6, 5, batch),
            normalize(synthetic.vectors(6, 5, batch + 5) * 1.5 + synthetic.vectors(6, 5, batch)),
        )
        image = torch.tensor([0, 1, 2, 3, 4, 0])  # two queries of one image are no negatives of each other
        monitor.add(torch.tensor(losses[batch]), query, (query * key).sum(1), nearest(query, key, image))
        for i in range(6):
            others = [float(query[i] @ key[j]) for j in range(6) if image[i] != image[j]]
            right.append(float(query[i] @ key[i]) > max(others))
            distances.append(float((query[i] - key[i]).square().sum()))
            pairs += [math.exp(-2 * float((query[i] - query[j]).square().sum())) for j in range(6) if i != j]
        every.append(query)
    facts, joint = monitor.read(), torch.cat(every)
    assert facts["loss"] == 2.5
    assert abs(facts["accuracy"] - sum(right) / 12) < 1e-6 and 0 < facts["accuracy"] < 1
    assert abs(facts["alignment"] - sum(distances) / 12) < 1e-6
    assert abs(facts["uniformity"] - math.log(sum(pairs) / len(pairs))) < 1e-5
    assert abs(facts["deviation"] - float(joint.std(0, correction=0).mean()) * 5**0.5) < 1e-6
    share = torch.linalg.svdvals(joint)
    share = share / share.sum() + 1e-7
    assert abs(facts["rank"] - float(torch.exp(-(share * share.log()).sum()))) < 1e-4


def test_a_sphere_and_a_point():
    sphere, point = synthetic.vectors(2000, 8, 0), torch.ones(50, 8).double() / 8**0.5
    wide, collapsed = facts_of(sphere, sphere), facts_of(point, point)
    assert abs(wide["deviation"] - 1) < 0.02 and wide["rank"] > 7.9 and wide["alignment"] < 1e-6
    assert wide["accuracy"] == 1.0 and wide["uniformity"] < -3
    assert collapsed["deviation"] < 1e-3 and collapsed["rank"] < 1.1 and abs(collapsed["uniformity"]) < 1e-5
    assert collapsed["accuracy"] == 0.0


def test_warnings_are_of_what_happened():
    sphere, point = synthetic.vectors(500, 64, 0), torch.ones(500, 64).double() / 8
    line = normalize(torch.cat([synthetic.vectors(500, 1, 0), synthetic.vectors(500, 63, 1) * 1e-4], 1))
    assert warning(facts_of(sphere, sphere), 64) is None
    assert "nearly one point" in (warning(facts_of(point, point), 64) or "")
    assert "of 64 dimensions" in (warning({**facts_of(line, line), "deviation": 0.5}, 64) or "")


def test_every_branch_with_queries_of_its_own_is_watched_and_named():
    sphere, point = synthetic.vectors(500, 64, 0), torch.ones(500, 64).double() / 8
    monitor, later = (Monitor(64, branches=3, others=(2,)) for _ in range(2))
    for one, losses in ((monitor, [1.0, 2.0, 3.0]), (later, [3.0, 2.0, 1.0])):
        if one is later:
            one.load_state_dict(monitor.state_dict())
        one.add(torch.tensor(5.0), sphere, torch.ones(500), torch.zeros(500))
        one.add_branches(torch.tensor(losses), {2: Watched(point, torch.ones(500), torch.ones(500))})
    numbers, alone = later.read(), facts_of(point, point)
    assert [numbers[f"loss.{branch}"] for branch in range(3)] == [2.0, 2.0, 2.0]
    assert {name for name in numbers if name.endswith(".2")} == {f"{name}.2" for name in alone}
    assert numbers["accuracy"] == 1.0 and numbers["accuracy.2"] == 0.0 and numbers["rank"] > 50
    assert_close(numbers["rank.2"], alone["rank"], rtol=0, atol=1e-4)
    assert (warning(numbers, 64) or "").startswith("branch 2: the vectors of different images are nearly one point")
    both = warning({"deviation": 0.01, "rank": 9.0, "deviation.1": 1.0, "rank.1": 1.5}, 64) or ""
    assert both.startswith("branch 0: the vectors of different") and ". branch 1: the vectors use only" in both
    assert warning(numbers | {"rank.2": 9.0, "deviation.2": 0.9}, 64) is None
    later.reset()
    assert not any(buffer.any() for buffer in later.buffers())


@pytest.mark.parametrize(
    ("recipe", "watched"),
    [
        ("moco_v2", [0]),
        ("simclr", [0]),
        ("cmc", [0, 1]),
        ("pirl", [0, 1]),
        ("interclr_moco", [0]),
        ("moco_v2_multi_crop", [*range(7)]),
    ],
)
def test_a_run_watches_the_first_branch_of_each_query_view(recipe: str, watched: list[int]):
    run = small_recipes.shrink(next(each for each in RECIPES if each.__name__ == recipe)(32), None)
    learner = small_recipes.learner(run)
    monitor = monitor_of(run, learner)
    assert ["0", *monitor.others] == [*map(str, watched)] and set(watched) <= set(learner.watched)
    views, image = small_recipes.batches(1, small_recipes.shapes(run))[0]
    for number, (query, positive, near) in learner(views, image, 0).watched.items():
        branch = run.branches[number]
        vectors = learner.networks.queries({branch.query: views[branch.query]})
        assert_close(query, vectors[branch.query].detach())
        if run.recipe == "cmc":
            assert_close(positive, (query * learner.store(number).vector[image]).sum(1))
            assert (near < 1).all() and len(near) == len(image)


@pytest.mark.parametrize(("recipe", "rows"), [("cmc", True), ("pirl", True), ("interclr", True), ("moco_v2", False)])
def test_a_row_of_a_bank_is_measured_against_rows_of_the_bank(recipe: str, rows: bool):
    """Against fresh keys, 72 % of the queries of an unlearned CMC were right, and none of InterCLR."""
    run = small_recipes.shrink(next(each for each in RECIPES if each.__name__ == recipe)(32), None)
    learner = small_recipes.learner(run)
    views, image = small_recipes.batches(1, small_recipes.shapes(run))[0]
    step = learner(views, image, 0)
    for number, watched in step.watched.items():
        branch = run.branches[number]
        keys = learner.store(number).vector[image] if rows else step.fresh.vectors[branch.keys[0]]
        assert_close(watched.nearest, nearest(watched.query, keys, image))


@pytest.mark.parametrize("rank", [1, 2, 5])
def test_effective_rank_of_equal_directions(rank: int):
    outer = torch.diag(torch.tensor([3.0] * rank + [0.0] * (6 - rank)))
    assert abs(effective_rank(outer) - rank) < 1e-3


def test_sums_are_saved_and_reset():
    one, two = Monitor(4), Monitor(4)
    batches = [(synthetic.vectors(5, 4, n), torch.zeros(5)) for n in range(2)]
    for vector, rival in batches[:1]:
        one.add(torch.tensor(1.0), vector, torch.ones(5), rival)
    two.load_state_dict(one.state_dict())
    for monitor in (one, two):
        monitor.add(torch.tensor(3.0), batches[1][0], torch.ones(5), batches[1][1])
    assert one.read() == two.read() and one.read()["loss"] == 2.0
    one.reset()
    one.add(torch.tensor(7.0), batches[1][0], torch.ones(5), batches[1][1])
    assert one.read()["loss"] == 7.0


def test_losses_of_branches_are_means_that_are_saved_and_reset():
    vector = synthetic.vectors(5, 4, 0)
    monitor, later = Monitor(4, branches=3), Monitor(4, branches=3)
    monitor.add_branches(torch.tensor([1.0, 2.0, 4.0]), {})
    later.load_state_dict(monitor.state_dict())
    later.add(torch.tensor(9.0), vector, torch.ones(5), torch.zeros(5))
    later.add_branches(torch.tensor([3.0, 2.0, 5.0]), {})
    numbers = later.read()
    assert [numbers[f"loss.{branch}"] for branch in range(3)] == [2.0, 2.0, 4.5] and numbers["loss"] == 9.0
    later.reset()
    later.add(torch.tensor(9.0), vector, torch.ones(5), torch.zeros(5))
    later.add_branches(torch.tensor([7.0, 8.0, 9.0]), {})
    assert later.read()["loss.1"] == 8.0
    assert not [name for name in facts_of(vector, vector) if name.startswith("loss.")]


@pytest.mark.parametrize(
    ("recipe", "count"),
    [("moco_v2", 0), ("simclr", 0), ("cmc", 2), ("interclr_moco", 2), ("everything", 3), ("moco_v2_multi_crop", 7)],
)
def test_losses_of_branches_are_kept_unless_the_first_is_the_whole_story(recipe: str, count: int):
    run = next(each for each in RECIPES if each.__name__ == recipe)(32)
    assert kept_losses(run) == count


def test_two_directions_between_two_networks_are_not_the_same():
    run = simclr(32)
    assert kept_losses(replace(run, encoders=cmc(32).encoders)) == 2
    other = replace(run.branches[1], estimator=InfoNCE(0.9))
    assert kept_losses(replace(run, branches=(run.branches[0], other))) == 2


@pytest.mark.parametrize("branches", [0, 2, 3, 7])
def test_the_line_of_an_epoch_says_which_branch_it_is_of(branches: int):
    numbers = {"loss": 12.345, "accuracy": 1.0, "alignment": 0.25, "uniformity": -3.41, "rank": 98.0}
    losses = {f"loss.{branch}": 5.125 + branch for branch in range(branches)}
    lines = epoch_lines(100, numbers | losses)
    rest = "accuracy 100%, alignment 0.25, uniformity -3.41, rank 98"
    assert max(map(len, lines)) <= 80
    if not branches:
        assert lines == [f"epoch 100: loss 12.345, {rest}"]
        return
    words = f"branches, unweighted: {', '.join(f'{value:.3f}' for value in losses.values())}"
    if branches == 7:
        words = "7 branches, unweighted: 5.125 to 11.125"
    assert lines[-1] == f"  branch 0: {rest}"
    assert " ".join(" ".join(lines[:-1]).split()) == f"epoch 100: loss 12.345 ({words})"


def test_a_batch_of_one_image_does_not_break():
    vector = synthetic.vectors(1, 4, 0)
    assert math.isfinite(facts_of(vector, vector)["uniformity"])
    assert_close(facts_of(vector, vector)["alignment"], 0.0, rtol=0, atol=1e-6)


def test_short_epochs_are_printed_about_every_ten_seconds() -> None:
    """A plan of a minute printed a hundred lines."""
    assert [epoch for epoch in range(1, 53) if is_shown(epoch, 52, seconds=0.9 * epoch)] == [1, 12, 24, 36, 48, 52]
    assert all(is_shown(epoch, 20, seconds=10.0 * epoch) for epoch in range(1, 21)), "long ones always"
