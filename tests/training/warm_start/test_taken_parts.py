"""Starting from another run: what is taken over, and what starts anew."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import IMAGES, SIZE
from torch import Tensor
from torch.nn.functional import normalize
from warm_runs import Base, below, equal, linear, slow, small, start, tensors

from vantage import draws
from vantage.learner import Learner
from vantage.memory import Queue
from vantage.memory.kmeans import kmeans
from vantage.progress import PlainProgress
from vantage.training.loop import train
from vantage.training.optimizers import LARS, AdamW, NoParameters
from vantage.training.run import Run


@pytest.mark.parametrize(
    "recipe", ["moco_v1", "instance_discrimination_nce", slow("jcl"), slow("cmc"), slow("interclr_moco")]
)
def test_the_same_recipe_goes_on_with_every_tensor(recipe: str, folder: Path, base: Base, tmp_path: Path, monkeypatch):
    init, before = base(recipe)
    state, parts = start(small(recipe, folder), init, tmp_path / "run", monkeypatch)
    assert set(parts.values()) == {"taken"}
    for prefix in ("learner.", "optimizer."):
        assert equal(below(prefix, state), below(prefix, before))


def test_a_queue_goes_to_ring_and_its_run_goes_on(folder: Path, base: Base, tmp_path: Path, capsys):
    init, _ = base("moco_v1")
    assert train(small("ring_moco", folder), tmp_path / "run", PlainProgress(), init=init).step == 6
    output = capsys.readouterr().err
    assert f"starting from {init}/checkpoint/step-000000006 (sha256 " in output
    parts = "network.backbone, network.head, slow.backbone, slow.head, optimizer, memory of branch 0"
    assert f"  taken: {parts}\n" in output
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 1


def test_a_bank_is_taken_by_clusters_of_another_recipe(folder: Path, base: Base, tmp_path: Path, monkeypatch):
    """Rows of instance discrimination, clustered at once, in both kinds of bank."""
    init, before = base("instance_discrimination")
    for recipe in ("interclr", "local_aggregation"):
        run = linear(small(recipe, folder))
        state, parts = start(run, init, tmp_path / recipe, monkeypatch)
        assert parts["memory of branch 0"] == "rows taken, then clustered" and parts["network.head"] == "taken"
        rows, labels = state["learner.stores.0.vector"], state["learner.stores.0.label"]
        assert torch.equal(rows, before["learner.stores.0.vector"])
        memory: Any = run.branches[0].memory
        assert [len(column.unique()) for column in labels.T] == [memory.clusters] * labels.shape[1]
        if recipe == "interclr":
            seed = int(state["learner.stores.0.seed"])
            assert torch.equal(labels[:, 0], kmeans(rows, memory.clusters, draws.mix(seed, 1), memory.iterations)[0])


def test_rows_of_another_head_are_made_by_the_warm_network(folder: Path, base: Base, tmp_path: Path, monkeypatch):
    """InterCLR's head is an MLP: rows of a linear head lie in another space, and would be noise."""
    init, before = base("instance_discrimination")
    run = small("interclr", folder)
    state, parts = start(run, init, tmp_path / "run", monkeypatch)
    assert parts["network.backbone"] == "taken" and parts["network.head"] == "starts anew"
    assert parts["memory of branch 0"] == "filled by the warm network"
    learner = Learner(run.encoders, run.branches, IMAGES, 0)
    learner.load_state_dict(below("learner.", state))
    assert equal(learner.networks.encoders[0].get_submodule("backbone").state_dict(),
                 below("learner.networks.network.backbone.", before))  # fmt: skip
    pixels = torch.from_numpy(np.load(folder / "images.npz")["images"]).permute(0, 3, 1, 2)
    with torch.no_grad():
        view = run.views.evaluation()  # pyright: ignore[reportAttributeAccessIssue]
        rows = learner.networks.encoders[0].eval()(view.finish(torch.stack([view.crop(each) for each in pixels])))
    torch.testing.assert_close(state["learner.stores.0.vector"], rows, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_keys_become_means_and_means_never_keys(folder: Path, base: Base, tmp_path: Path, monkeypatch):
    init, before = base("moco_v2")
    state, parts = start(small("jcl", folder), init, tmp_path / "jcl", monkeypatch)
    assert parts["memory of branch 0"] == "taken"
    assert torch.equal(state["learner.stores.0.vector"], before["learner.stores.0.vector"])
    state, parts = start(small("moco_v2", folder), base("jcl")[0], tmp_path / "moco_v2", monkeypatch)
    assert parts["slow.head"] == "taken" and parts["memory of branch 0"] == "filled by the warm network"
    queue = state["learner.stores.0.vector"]
    torch.testing.assert_close(queue, normalize(queue, dim=1))
    assert len(state["learner.stores.0.image"].unique()) == min(IMAGES, len(queue))


def test_one_network_answers_for_queries_and_keys(folder: Path, base: Base, tmp_path: Path, monkeypatch):
    """SimCLR to MoCo: the slow copy equals the network; of the optimizer what belongs to the backbone."""
    init, before = base("simclr")
    run = small("moco_v2", folder)
    optimizer = small("simclr", folder).optimizer
    state, parts = start(replace(run, optimizer=optimizer), init, tmp_path / "run", monkeypatch)
    for name in ("network", "slow"):
        ours = below(f"learner.networks.{name}.backbone.", state)
        assert equal(ours, below("learner.networks.network.backbone.", before)) and parts[f"{name}.head"] != "taken"
    assert equal(*(below(f"learner.networks.{name}.head.", state) for name in ("network", "slow")))
    assert parts["memory of branch 0"] == "filled by the warm network" and parts["optimizer"] == "taken"
    moments = below("optimizer.", state)
    assert 0 < len(moments) < len(below("optimizer.", before))
    _, parts = start(run if type(run.optimizer) is not type(optimizer) else replace(run, optimizer=AdamW()),
                     init, tmp_path / "other", monkeypatch)  # fmt: skip
    assert parts["optimizer"] == "starts anew"


@pytest.mark.slow
def test_moments_follow_their_parameters(folder: Path, tmp_path: Path, monkeypatch):
    """LARS and AdamW sort parameters into groups, so numbers differ where exclusions do."""
    for optimizer, slots in ((LARS(), {"velocity"}), (AdamW(), {"exp_avg", "exp_avg_sq", "step"})):
        run = replace(small("moco_v1", folder), optimizer=optimizer)
        name = type(optimizer).__name__
        train(run, tmp_path / name)
        other = replace(run, optimizer=replace(optimizer, exclude=NoParameters()))
        state, parts = start(other, tmp_path / name, tmp_path / f"{name} again", monkeypatch)
        assert parts["optimizer"] == "taken"
        before, after = by_parameter(run, tensors(tmp_path / name)), by_parameter(other, state)
        assert {slot for _, slot in before} == slots and equal_items(before, after)


def by_parameter(run: Run, state: dict[str, Tensor]) -> dict[tuple[str, str], Tensor]:
    """The optimizer's state by the name of its parameter."""
    learner = Learner(run.encoders, run.branches, IMAGES, 0)
    order = [id(p) for group in run.optimizer.build(learner).param_groups for p in group["params"]]
    names = {order.index(id(p)): name for name, p in learner.named_parameters() if id(p) in order}
    split = [(name.split(".", 1), value) for name, value in below("optimizer.", state).items()]
    return {(names[int(number)], slot): value for (number, slot), value in split}


def equal_items(ours: dict[tuple[str, str], Tensor], theirs: dict[tuple[str, str], Tensor]) -> bool:
    return ours.keys() == theirs.keys() and all(torch.equal(ours[key], theirs[key]) for key in ours)


@pytest.mark.slow
def test_several_networks_go_by_their_names(folder: Path, base: Base, tmp_path: Path, monkeypatch):
    init, before = base("cmc_softmax")
    state, parts = start(small("ring_cmc", folder), init, tmp_path / "run", monkeypatch)
    assert set(parts.values()) == {"taken"}
    for number in (0, 1):
        assert equal(*(below(f"learner.networks.networks.{number}.", each) for each in (state, before)))
        assert equal(*(below(f"learner.stores.{number}.vector", each) for each in (state, before)))


def test_other_images_take_no_memory(folder: Path, base: Base, tmp_path: Path, monkeypatch):
    init, _ = base("moco_v1")
    other = str(tmp_path / "other.npz")
    np.savez(other, images=np.random.default_rng(3).integers(0, 256, (IMAGES, SIZE, SIZE, 3), np.uint8))
    run = small("moco_v1", folder)
    _, parts = start(replace(run, data=replace(run.data, path=other)), init, tmp_path / "run", monkeypatch)
    assert parts.pop("memory of branch 0") == "filled by the warm network" and set(parts.values()) == {"taken"}
    queue = replace(run.branches[0], memory=Queue(100))  # longer than there are images
    state, parts = start(replace(run, branches=(queue,)), init, tmp_path / "long", monkeypatch)
    assert parts["memory of branch 0"] == "filled by the warm network"
    assert (state["learner.stores.0.image"] >= 0).sum() == IMAGES
