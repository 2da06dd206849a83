"""Runs that an earlier version wrote are read, resumed, embedded, evaluated and exported, with the results that it had.

`fixtures/make_runs.py` says what they are. Where a module or a public part has moved, the imports below may follow;
what is in `fixtures/runs` and `fixtures/settings.json` stays as it is.
"""

import json
import lzma
import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from safetensors.torch import load_file

import vantage
from vantage.encoding import Work
from vantage.evaluate import KNN, evaluate
from vantage.frozen.export.backbone import export
from vantage.learner import Step
from vantage.recipes import RECIPES
from vantage.studies.view_learning import learn, read_learning
from vantage.training.folder import settings
from vantage.training.run import Run
from vantage.views import learned_space

FIXTURES = Path(__file__).resolve().parent / "fixtures"
INTERRUPTED = ("queue", "clusters", "learned_color")
WRITTEN = json.loads((FIXTURES / "settings.json").read_text())


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))


def _copy_of(name: str, to: Path) -> tuple[Path, dict[str, np.ndarray]]:
    """A copy of a run that may be written to, and what the earlier version made of it."""
    shutil.copytree(FIXTURES / "runs" / name, to / name)
    with np.load(to / name / "reference.npz") as arrays:
        return to / name, dict(arrays)


def _images(to: Path) -> str:
    """The images of the runs, in another folder: the runs must be told where they are now."""
    return str(shutil.copyfile(FIXTURES / "runs" / "images.npz", to / "moved.npz"))


def _numbers(run: Path, name: str, first: int = 0) -> list[float]:
    return [json.loads(line)[name] for line in (run / "metrics.jsonl").read_text().splitlines()[first:]]


@contextmanager
def _losses() -> Iterator[list[float]]:
    """Every loss that a learner gives meanwhile."""
    losses: list[float] = []

    def record(module: torch.nn.Module, _: Any, output: Any) -> None:
        if isinstance(module, vantage.Learner):
            assert isinstance(output, Step)
            losses.append(float(output.loss.detach()))

    hook = torch.nn.modules.module.register_module_forward_hook(record)
    try:
        yield losses
    finally:
        hook.remove()


@pytest.mark.parametrize("name", INTERRUPTED)
def test_an_earlier_run_is_resumed(name: str, tmp_path: Path) -> None:
    run, reference = _copy_of(name, tmp_path)
    stored_run = settings.read(run)
    with_images = replace(stored_run, data=vantage.Data(_images(tmp_path)))
    with _losses() as losses:
        outcome = vantage.resume(run, with_images)
    assert outcome.finished and outcome.step == 18
    assert losses == pytest.approx(reference["losses"].tolist(), rel=0, abs=1e-5)
    assert _numbers(run, "loss") == pytest.approx(reference["epoch_losses"].tolist(), rel=0, abs=1e-5)
    if len(stored_run.branches) > 1:  # the checkpoint, in the middle of an epoch, has no losses of branches
        sums = [_numbers(run, f"loss.{number}", first=1) for number in range(len(stored_run.branches))]
        assert all(map(math.isfinite, chain(*sums)))
    assert _numbers(run, "rank") == pytest.approx(reference["epoch_ranks"].tolist(), rel=0, abs=1e-3)
    features = vantage.embed(vantage.load(run), vantage.open_source(_images(tmp_path)), Work("cpu"))
    np.testing.assert_allclose(features.vector.numpy(), reference["embedding_at_the_end"], rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", INTERRUPTED)
def test_an_earlier_run_is_embedded_and_evaluated(name: str, tmp_path: Path) -> None:
    run, reference = _copy_of(name, tmp_path)
    source, work = vantage.open_source(_images(tmp_path)), Work("cpu", cache=tmp_path / "features")
    encoder = vantage.load(run)
    features = vantage.embed(encoder, source, work)
    np.testing.assert_allclose(features.vector.numpy(), reference["embedding"], rtol=0, atol=1e-5)
    result = evaluate(run, KNN(5), source, work=work)
    assert list(result.outcomes) == [encoder.name]
    measures = list(result.outcomes[encoder.name].measures.values())
    assert measures == pytest.approx(reference["knn"].tolist(), abs=1e-6)


@pytest.mark.parametrize(
    ("name", "network", "prefix"),
    [
        ("queue", None, "backbone."),
        ("clusters", None, "backbone."),
        ("learned_color", 0, "backbone.backbones.0."),
        ("learned_color", 1, "backbone.backbones.1."),
    ],
)
def test_an_earlier_run_is_exported(name: str, network: int | None, prefix: str, tmp_path: Path) -> None:
    run, reference = _copy_of(name, tmp_path)
    tensors = load_file(export(run, "safetensors", tmp_path / "backbone.safetensors", network).file)
    values = {key.removeprefix(prefix): value for key, value in reference.items() if key.startswith(prefix)}
    assert tensors.keys() == values.keys()
    for key, value in values.items():
        np.testing.assert_array_equal(tensors[key].numpy(), value, strict=True)


@pytest.mark.parametrize("library", ["torchvision", "timm", "safetensors"])
def test_an_earlier_resnet_is_exported(library: Any, tmp_path: Path) -> None:
    run, reference = _copy_of("resnet", tmp_path)
    for archive in run.rglob("*.xz"):
        archive.with_suffix("").write_bytes(lzma.decompress(archive.read_bytes()))
    file = export(run, library, tmp_path / "backbone.safetensors").file
    tensors = load_file(file)
    assert tensors.keys() == reference.keys()
    for name, value in reference.items():
        assert (tensors[name] == torch.from_numpy(value).to(tensors[name].dtype)).all(), name
    network = torchvision.models.resnet18()
    network.conv1 = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    setattr(network, "fc", torch.nn.Identity())  # noqa: B010
    network.load_state_dict(tensors, strict=True)


def test_earlier_learned_views_are_read_and_learned_on(tmp_path: Path) -> None:
    folder, reference = _copy_of("learning", tmp_path)
    images = torch.linspace(0, 1, 2 * 3 * 4 * 4).reshape(2, 3, 4, 4)
    channels = learned_space(folder / "last.safetensors").convert(images)
    np.testing.assert_allclose(channels.numpy(), reference["channels"], rtol=0, atol=1e-5)
    outcome = learn(replace(read_learning(folder), data=vantage.Data(_images(tmp_path))), folder)
    assert outcome.finished and outcome.step == 10
    assert outcome.last is not None
    np.testing.assert_allclose(
        outcome.last.convert(images).numpy(), reference["channels_at_the_end"], rtol=0, atol=1e-4
    )
    assert _numbers(folder, "held_out.objective") == pytest.approx(reference["held_out"].tolist(), rel=0, abs=1e-4)


CHANGED = {
    **dict.fromkeys(("jcl", "jcl_vanilla", "jcl_ring", "jcl_interclr", "everything"), "keys are shuffled one by one"),
    **dict.fromkeys(("ring_ir", "ball_ir", "ring_cmc", "ball_cmc"), "the bank holds last epoch's rows"),
    **dict.fromkeys(("ring_ir_clusters", "ring_cmc_clusters"), "the bank holds last epoch's rows"),
    **dict.fromkeys(("cave_ir", "cave_cmc"), "the own row is left out; the bank holds last epoch's rows"),
}
"""Recipes that are nearer to their papers now. Earlier runs of them keep the settings that they were written with."""
CHANGED |= dict.fromkeys(("infomin", "infomin_linear"), "its cosine begins at epoch 1, as in PyContrast")
CHANGED_AT_224 = {name: "ResNet-18, and crops of images resized to 256" for name in ("ring_moco", "ball_moco")}
CHANGED_AT_224 |= {"local_aggregation": 'parameters with "bn" in their names do not decay, as in the release'}


@pytest.mark.parametrize("size", [32, 224])
@pytest.mark.parametrize("recipe", sorted(WRITTEN["recipes"]))
def test_earlier_settings_of_every_recipe_are_what_the_recipe_is_now(recipe: str, size: int, tmp_path: Path) -> None:
    content = {"schema": 1, "run": WRITTEN["recipes"][recipe][str(size)]}
    (tmp_path / "settings.json").write_text(json.dumps(content))
    now = {make.__name__: make for make in RECIPES}[recipe](size)
    assert isinstance(now, Run)
    equal = _with_pools(settings.read(tmp_path)) == _with_pools(now)
    assert equal != (recipe in CHANGED or size == 224 and recipe in CHANGED_AT_224)


def _with_pools(run: Run) -> Run:
    """The run with every pool written out: an omitted one means the views of the keys, which earlier versions wrote."""
    return replace(run, branches=tuple(replace(branch, pool=branch.pool_views) for branch in run.branches))


@pytest.mark.parametrize("name", sorted(WRITTEN["parts"]))
def test_every_part_that_an_earlier_version_could_write_is_read(name: str) -> None:
    """The same value, by the name that it had. If a part is gone for good, say so here, with the reason."""
    example = WRITTEN["parts"][name]
    part = settings.decode(example, Any)
    assert settings.decode(settings.encode(part), Any) == part
