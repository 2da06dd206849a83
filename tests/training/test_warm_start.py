"""Starting from another run: what is taken over, what starts new, and that the result is a run like any other."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from small_runs import IMAGES, SIZE, small_run, write_images
from tiny import TinyBackbone
from torch import Tensor
from torch.nn.functional import normalize

from vantage import draws
from vantage.data import Batch
from vantage.encoders import LinearHead, PerView, Shared
from vantage.errors import UserError
from vantage.learner import Learner
from vantage.memory import Queue
from vantage.memory.kmeans import kmeans
from vantage.progress import PlainProgress
from vantage.training.folder import checkpoint
from vantage.training.loop import resume, train
from vantage.training.optimizers import LARS, AdamW, NoParameters
from vantage.training.run import Monitoring, Run
from vantage.training.session import Session

Base = Callable[[str], tuple[Path, dict[str, Tensor]]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where this file's images and runs lie."""
    path = tmp_path_factory.mktemp("warm")
    write_images(path / "images.npz")
    return path


@pytest.fixture(scope="module")
def base(folder: Path) -> Base:
    """Runs of one epoch, each trained once: the folder and the tensors of its last checkpoint."""

    def train_once(recipe: str) -> tuple[Path, dict[str, Tensor]]:
        if not (folder / recipe).exists():
            train(small(recipe, folder), folder / recipe)
        return folder / recipe, tensors(folder / recipe)

    return train_once


@pytest.fixture(autouse=True)
def cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the tests' own."""
    monkeypatch.setenv("VANTAGE_CACHE", str(folder / "cache"))


def small(recipe: str, folder: Path) -> Run:
    """A recipe for one epoch of six steps."""
    run = small_run(recipe, str(folder / "images.npz"), epochs=1)
    return replace(run, monitoring=Monitoring(checkpoint_minutes=10.0))


def linear(run: Run) -> Run:
    """The run with the linear head of instance discrimination."""
    assert isinstance(run.encoders, Shared)
    return replace(run, encoders=replace(run.encoders, encoder=replace(run.encoders.encoder, head=LinearHead(128))))


def tensors(run: Path) -> dict[str, Tensor]:
    newest = checkpoint.latest(run)
    assert newest is not None
    return checkpoint.load(newest)[0]


def start(run: Run, init: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The state from which a run starts, and what its provenance says of each part."""

    class Stopped(Exception):
        pass

    def stops(*_: object) -> None:
        raise Stopped

    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(Session, "step", stops)
        train(run, out, init=init)
    record = json.loads((out / "provenance.json").read_text())[0]["init"]
    newest = checkpoint.latest(init)
    assert newest is not None
    assert record["from"] == str(newest) and record["sha256"] == checkpoint.digest_of(newest) and record["step"] == 6
    assert int(checkpoint.load(out / "checkpoint" / "step-000000000")[1]["step"]) == 0
    return tensors(out), record["parts"]


def below(prefix: str, state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def equal(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> bool:
    return len(ours) > 0 and ours.keys() == theirs.keys() and all(torch.equal(ours[n], theirs[n]) for n in ours)


def slow(*values: object) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


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


def test_branches_of_one_seed_see_the_same_images(folder: Path, base: Base, tmp_path: Path, monkeypatch):
    init, _ = base("moco_v1")
    order: dict[str, list[Tensor]] = {}
    step_of = Session.step

    def note_images(self: Session, batch: Batch, step: int) -> Tensor:
        assert step == len(order.setdefault(self.run.recipe, []))
        order[self.run.recipe].append(batch.image)
        return step_of(self, batch, step)

    monkeypatch.setattr(Session, "step", note_images)
    for recipe in ("moco_v1", "ring_moco"):
        train(small(recipe, folder), tmp_path / recipe, init=init)
    whole = [torch.cat(images) for images in order.values()]
    assert len(whole) == 2 and torch.equal(*whole)
    train(replace(small("ball_moco", folder), seed=1), tmp_path / "seed", init=init)
    assert not torch.equal(torch.cat(order["ball_moco"]), whole[0])


@pytest.mark.parametrize("at", [slow(0), 4])
def test_it_resumes_bit_equal_without_the_first_run(at: int, folder: Path, base: Base, tmp_path: Path, monkeypatch):
    init = tmp_path / "first"
    shutil.copytree(base("instance_discrimination")[0], init)
    run = linear(small("interclr", folder))
    train(run, tmp_path / "whole", init=init)
    step_of = Session.step

    def fail(self: Session, batch: Batch, step: int) -> Tensor:
        if step == at:
            raise KeyboardInterrupt
        return step_of(self, batch, step)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Session, "step", fail)
        train(run, tmp_path / "cut", init=init)
    shutil.rmtree(init)
    assert resume(tmp_path / "cut").finished
    assert equal(tensors(tmp_path / "whole"), tensors(tmp_path / "cut"))
    records = json.loads((tmp_path / "cut" / "provenance.json").read_text())
    assert "init" in records[0] and "init" not in records[1]


def test_a_start_killed_before_its_first_checkpoint_starts_there_again(folder: Path, base: Base, tmp_path: Path):
    init = tmp_path / "first"
    shutil.copytree(base("moco_v1")[0], init)
    run = small("ring_moco", folder)
    train(run, tmp_path / "whole", init=init / "checkpoint" / "step-000000006")
    shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    shutil.rmtree(tmp_path / "cut" / "checkpoint")
    assert resume(tmp_path / "cut").finished
    assert equal(tensors(tmp_path / "whole"), tensors(tmp_path / "cut"))
    shutil.rmtree(tmp_path / "cut" / "checkpoint")
    shutil.rmtree(init / "checkpoint" / "step-000000006")
    with pytest.raises(UserError, match="there is no checkpoint .*step-000000006: let the run reach it"):
        resume(tmp_path / "cut")
    shutil.copytree(base("moco_v2")[0] / "checkpoint" / "step-000000006", init / "checkpoint" / "step-000000006")
    with pytest.raises(UserError, match="has changed since: remove the folder"):
        resume(tmp_path / "cut")


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


def test_what_cannot_fit_is_refused_before_anything_is_written(folder: Path, base: Base, tmp_path: Path):
    init, out = base("moco_v1")[0], tmp_path / "run"
    run = small("moco_v2", folder)
    wider = replace(run.encoders, encoder=replace(run.encoders.encoder, backbone=TinyBackbone(16)))  # pyright: ignore
    with pytest.raises(UserError, match=r"is not the one of this run: .*conv2.weight: \(12, 8.*Choose the backbone"):
        train(replace(run, encoders=wider), out, init=init)
    cmc = small("cmc", folder)
    assert isinstance(cmc.encoders, PerView)
    with pytest.raises(UserError, match="is not the one of this run: .* of another shape"):
        train(cmc, out, init=init)
    with pytest.raises(UserError, match="trained 2 networks, this one trains 1"):
        train(run, out, init=base("cmc")[0])
    for folder_without_run in (tmp_path / "nowhere", folder):
        with pytest.raises(UserError, match="holds no run"):
            train(run, out, init=folder_without_run)
    shutil.copytree(init, tmp_path / "young")
    shutil.rmtree(tmp_path / "young" / "checkpoint")
    with pytest.raises(UserError, match="holds no checkpoint yet"):
        train(run, out, init=tmp_path / "young")
    shutil.copytree(init, tmp_path / "damaged")
    (tmp_path / "damaged" / "checkpoint" / "step-000000006" / "tensors.safetensors").write_bytes(b"damaged")
    with pytest.raises(UserError, match="is damaged"):
        train(run, out, init=tmp_path / "damaged")
    assert not out.exists()


def test_a_file_of_weights_gives_every_backbone_its_tensors(folder: Path, tmp_path: Path, monkeypatch):
    state = TinyBackbone().build().state_dict()
    weights = {f"module.encoder_q.{name}": value + value.new_tensor(3) for name, value in state.items()}
    save_file({**weights, "module.encoder_q.fc.weight": torch.zeros(2)}, tmp_path / "weights.safetensors")
    run = small("moco_v2", folder)

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Session, "step", fail)
        train(run, tmp_path / "run", init=tmp_path / "weights.safetensors")
    state = tensors(tmp_path / "run")
    for name in ("network", "slow"):
        assert equal(below(f"learner.networks.{name}.backbone.", state), below("module.encoder_q.", weights))
    assert equal(*(below(f"learner.networks.{name}.head.", state) for name in ("network", "slow")))
    parts = json.loads((tmp_path / "run" / "provenance.json").read_text())[0]["init"]["parts"]
    assert parts["module.encoder_q.fc.weight in the file"] == "left out"
    assert (parts["network.head"], parts["optimizer"]) == ("starts anew", "starts anew")
    assert parts["memory of branch 0"] == "filled by the warm network"
    (tmp_path / "weights.safetensors").unlink()
    assert resume(tmp_path / "run").finished
    save_file({"conv1.weight": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(UserError, match="other.safetensors are not those of this backbone: .* are missing from it"):
        train(run, tmp_path / "no", init=tmp_path / "other.safetensors")
    torch.save(weights, tmp_path / "weights.pth")
    with pytest.raises(UserError, match="convert it first, with `vantage convert"):
        train(run, tmp_path / "no", init=tmp_path / "weights.pth")
    assert not (tmp_path / "no").exists()
