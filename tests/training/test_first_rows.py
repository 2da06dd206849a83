"""Banks that begin with what the untrained network makes of every image."""

from dataclasses import replace
from pathlib import Path

import begun_stores
import pytest
import ranks
import torch
from small_runs import IMAGES, small_run, write_images
from torch.nn.functional import normalize
from torch.testing import assert_close

from vantage.composition.codec import allowing
from vantage.learner import Learner
from vantage.memory.clustered import OnlineStore
from vantage.progress import QuietProgress
from vantage.training.backbone import evaluation_view
from vantage.training.folder import checkpoint
from vantage.training.images import open_images
from vantage.training.loop import resume, train
from vantage.training.start.first_rows import begin


@pytest.mark.parametrize("recipe, branch", [("interclr", 0), ("interclr_moco", 1), ("everything", 2)])
def test_rows_are_features_of_the_untrained_network(recipe: str, branch: int, tmp_path: Path) -> None:
    run = small_run(recipe, write_images(tmp_path / "images.npz"))
    source, _ = open_images(run.data)
    torch.manual_seed(0)
    learner = Learner(run.encoders, run.branches, IMAGES, run.seed)
    before = {name: tensor.clone() for name, tensor in learner.networks.state_dict().items()}
    begin(learner, run, source, QuietProgress())
    store, view = learner.store(branch), evaluation_view(run)
    assert isinstance(store, OnlineStore) and learner.networks.training
    assert_close(learner.networks.state_dict(), before, rtol=0, atol=0)
    encoder = learner.networks.encoders[0].eval()
    images = torch.stack([view.crop(source.image(number)) for number in range(IMAGES)])
    with torch.no_grad():
        features = encoder.get_submodule("head")(encoder.get_submodule("backbone")(view.finish(images)))
    assert_close(store.vector, normalize(features, dim=1), rtol=0, atol=1e-5)
    assert store.label.unique().numel() == store.choice.clusters and not store.waits


@pytest.mark.slow
def test_two_processes_begin_as_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit by bit, though each reads and encodes only half of the images."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    path, threads = write_images(tmp_path / "images.npz"), torch.get_num_threads()
    torch.set_num_threads(1)  # as each process has
    try:
        one = begun_stores.stores_begun(path)
    finally:
        torch.set_num_threads(threads)
    two = ranks.spawn(begun_stores.beginning, tmp_path)
    for recipe in begun_stores.BEGINNING:
        assert [results[recipe]["read"] for results in (one, *two)] == [IMAGES, IMAGES // 2, IMAGES // 2]
        stores = one[recipe]["stores"]
        flags = [name for name in stores if name.endswith(".begun")]
        assert len(flags) == 1 and bool(stores[flags[0]])
        for results in two:
            ours = results[recipe]["stores"]
            assert ours.keys() == stores.keys()
            assert [name for name, value in stores.items() if not torch.equal(ours[name], value)] == []


def test_a_run_begins_once_and_goes_on_with_the_same_clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    run = small_run("interclr", write_images(tmp_path / "images.npz"), epochs=2)
    with allowing("tiny"):
        train(run, tmp_path / "whole")
        train(replace(run, epochs=1), tmp_path / "half")
        first = checkpoint.latest(tmp_path / "half")
        assert first is not None
        tensors, _ = checkpoint.load(first)
        assert bool(tensors["learner.stores.0.begun"]) and int(tensors["learner.stores.0.writes"]) == 6
        resume(tmp_path / "whole")  # finished: nothing is started again
    last = checkpoint.latest(tmp_path / "whole")
    assert last is not None and int(checkpoint.load(last)[0]["learner.stores.0.writes"]) == 12
