"""Starting from another run, or a file of weights: it is a run like any other, and what cannot fit is refused."""

import json
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from small_runs import new_process
from tiny import TinyBackbone
from torch import Tensor
from warm_runs import Base, below, equal, linear, slow, small, tensors, train_until_killed

from vantage.data import Batch
from vantage.encoders import PerView
from vantage.errors import UserError
from vantage.training.loop import resume, train
from vantage.training.session import Session
from vantage.training.start.warm_start import read_start


@pytest.mark.parametrize("at", [slow(0), 4])
def test_it_resumes_bit_equal_without_the_first_run(at: int, folder: Path, base: Base, tmp_path: Path, monkeypatch):
    init = tmp_path / "first"
    shutil.copytree(base("instance_discrimination")[0], init)
    run = linear(small("interclr", folder))
    train(run, tmp_path / "whole", init=read_start(init))
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("file", ["settings.json", "provenance.json"])
def test_a_start_killed_between_its_first_files_forgets_no_start(file: str, folder: Path, base: Base, tmp_path: Path):
    """It would be trained from scratch, and nobody would be told."""
    init, run = base("moco_v1")[0], small("ring_moco", folder)
    train(run, tmp_path / "whole", init=init)
    process = new_process(train_until_killed, run, tmp_path / "cut", init, file)
    process.join()
    assert process.exitcode == -signal.SIGKILL and not (tmp_path / "cut" / file).exists()
    if (tmp_path / "cut" / "settings.json").exists():  # it is a run, as for `vantage resume` and the lab
        assert resume(tmp_path / "cut").finished
    else:
        train(run, tmp_path / "cut", init=init)
    assert equal(tensors(tmp_path / "whole"), tensors(tmp_path / "cut"))
    assert not list((tmp_path / "cut").glob("*.unfinished"))


def test_what_cannot_fit_is_refused_before_anything_is_written(folder: Path, base: Base, tmp_path: Path):
    init, out = base("moco_v1")[0], tmp_path / "run"
    run = small("moco_v2", folder)
    wider = replace(run.encoders, encoder=replace(run.encoders.encoder, backbone=TinyBackbone(16)))  # pyright: ignore
    with pytest.raises(UserError, match=r"is not the one of this run: .*conv2.weight: \(12, 8.*Choose the backbone"):
        train(replace(run, encoders=wider), out, init=init)
    theirs = r"(\w+\.)*TinyBackbone\(\)"
    with pytest.raises(UserError, match=rf"Choose the backbone that it was trained with: --backbone '{theirs}'$"):
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


@pytest.mark.slow
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
