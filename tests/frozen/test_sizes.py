"""Settings that name a network or a memory of any size are compared with their checkpoint before they are built."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from small_runs import small_run, write_images
from tiny import ALLOW, TinyBackbone, images, saved_run, tiny_run

from vantage.composition.codec import allowing, encode
from vantage.encoders import Convolutions, Encoder, LinearHead, Momentum, Role, Shared, SplitBatchNorm
from vantage.encoders.activations import bytes_for_backward, largest_output
from vantage.encoders.backbones.resnet import ResNet
from vantage.encoding import Work, encode_all
from vantage.errors import UserError
from vantage.frozen.encoder import load, random_encoder
from vantage.frozen.networks import trained_networks
from vantage.machine import allocator
from vantage.memory import Queue
from vantage.storage.provenance import provenance
from vantage.training.folder import settings
from vantage.training.loop import resume, train
from vantage.training.start.try_parts import try_networks
from vantage.views import Flow, RealNVP, Statistics, TwoSided, YDbDr, learned_space
from vantage.views.colors.learned import write_learned
from vantage.views.evaluation import EvaluationView, Straight

GIBIBYTE = 22_000_000 * 12 * 4  # of a head on twelve features


def memory_growth(read_run: Callable[[], object]) -> float:
    """Bytes by which the process grows at its peak while something is refused as unfit."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak of earlier tests does not count
    before = _kibibytes("VmRSS")
    with pytest.raises(UserError, match="does not fit the settings of its run"):
        read_run()
    return 1024.0 * (_kibibytes("VmHWM") - before)


def _kibibytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


@pytest.mark.parametrize(
    "role",
    [
        Shared(Encoder(TinyBackbone(), LinearHead(GIBIBYTE // 48))),
        Shared(Encoder(TinyBackbone(), LinearHead(10**15))),
        Shared(Encoder(TinyBackbone(), LinearHead(2**63 - 1))),
        Shared(Encoder(ResNet(152, width_multiplier=2.0**30), LinearHead(8))),
    ],
    ids=["a GiB", "more than there is", "the largest number", "a wide network"],
)
def test_a_network_of_any_size_takes_no_memory(role: Role, tmp_path: Path) -> None:
    saved_run(tmp_path, tiny_run())
    settings.write(tiny_run(role), tmp_path)
    with allowing(*ALLOW):
        assert memory_growth(lambda: load(tmp_path)) < GIBIBYTE / 8
        assert memory_growth(lambda: trained_networks(tmp_path)) < GIBIBYTE / 8


def test_a_queue_of_any_length_takes_no_memory(tmp_path: Path) -> None:
    """Also where provenance names more images than a bank could hold."""
    run = tiny_run()
    saved_run(tmp_path, run)
    for length in (GIBIBYTE // 64, 10**15):
        settings.write(replace(run, branches=(replace(run.branches[0], memory=Queue(length)),)), tmp_path)
        with allowing(*ALLOW):
            assert memory_growth(lambda: trained_networks(tmp_path)) < GIBIBYTE / 8
    settings.write(run, tmp_path)
    (tmp_path / "provenance.json").write_text(json.dumps([provenance("", 10**15)]))
    with allowing(*ALLOW):
        assert trained_networks(tmp_path).images == 10**15  # a queue does not count images


def test_a_run_of_any_size_is_not_resumed(tmp_path: Path) -> None:
    run = small_run("moco_v2", write_images(tmp_path / "images.npz"), epochs=1)
    train(run, tmp_path / "run")
    (step,) = (tmp_path / "run" / "checkpoint").glob("step-*6")
    facts = json.loads((step / "facts.json").read_text())
    encoder = Encoder(TinyBackbone(), LinearHead(GIBIBYTE // 48), SplitBatchNorm(2))
    assert isinstance(run.encoders, Momentum) and encode(run) == facts["run"]
    larger = replace(run, encoders=replace(run.encoders, encoder=encoder))
    settings.write(larger, tmp_path / "run")
    with allowing(*ALLOW), pytest.raises(UserError, match="encoders"):  # the checkpoint says what it was of
        resume(tmp_path / "run")
    seal_without_run(step)
    with allowing(*ALLOW):
        assert memory_growth(lambda: resume(tmp_path / "run")) < GIBIBYTE / 8


def seal_without_run(step: Path) -> None:
    """A checkpoint of version 0.1, which does not say what it is of; whoever can write a folder can seal it too."""
    from vantage.training.folder.checkpoint import _seal

    facts = {name: fact for name, fact in json.loads((step / "facts.json").read_text()).items() if name != "sha256"}
    del facts["run"]
    (step / "facts.json").write_text(json.dumps({**facts, "sha256": _seal(facts)}))


@pytest.mark.parametrize(
    "flow",
    [
        Flow(RealNVP(4, 2), 10**12),
        Flow(RealNVP(4, 10**12), 3),
        Flow(RealNVP(10**9, 2), 3),
        Flow(RealNVP(2**63 - 1, 2), 3),
    ],
    ids=["couplings", "layers", "hidden", "the largest number"],
)
def test_learned_views_of_any_size_take_no_memory(flow: Flow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, file = Flow(TwoSided(4, 2), 3), tmp_path / "views.safetensors"
    write_learned(file, good, good.build(), YDbDr(), Statistics((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
    learned_space(file)
    with safe_open(file, framework="pt") as tensors:
        state, metadata = {name: tensors.get_tensor(name) for name in tensors.keys()}, tensors.metadata()
    learned_views = {**json.loads(metadata["vantage.learned_views"]), "flow": encode(flow)}
    save_file(state, file, {"vantage.learned_views": json.dumps(learned_views)})
    if max(flow.couplings, getattr(flow.coupling, "layers", 0)) > 1_000:
        monkeypatch.setattr(Flow, "build", lambda flow: pytest.fail("it was built"))
    with pytest.raises(UserError, match="does not hold the flow that it names"):
        learned_space(file)
    assert torch.get_default_device() == torch.device("cpu")


@pytest.mark.parametrize(
    ("part", "name", "value", "message"),
    [
        ("RandomResizedCrop", "size", 10**6, "a crop's size must be 1 to 4,096 pixels"),
        ("Data", "num_workers", 10**6, "data.num_workers is 1000000: give at most 1,024"),
        ("Hardware", "devices", 2**20, "hardware.devices is 1048576: give at most 1,024"),
    ],
)
def test_settings_ask_for_no_more_than_a_machine_has(
    part: str, name: str, value: int, message: str, tmp_path: Path
) -> None:
    saved_run(tmp_path, tiny_run())
    content = json.loads((tmp_path / "settings.json").read_text())

    def edit(node: object) -> None:
        if isinstance(node, dict) and node.get("part") == part:
            node[name] = value
        for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            edit(inner)

    edit(content)
    (tmp_path / "settings.json").write_text(json.dumps(content))
    with allowing(*ALLOW), pytest.raises(UserError, match=message):
        load(tmp_path)


def test_views_that_fill_the_memory_are_refused_before_they_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocator, "memory_of", lambda device: 16 * 3 * 4 * 32**2 * 4 - 1)
    encoder, source = random_encoder(tiny_run()), images(16, 0)
    with pytest.raises(UserError, match="the views of 16 images at once take .* more than a quarter of this machine's"):
        encode_all(encoder.backbone, encoder.view, source, Work("cpu", batch_size=64), "x")
    encode_all(encoder.backbone, encoder.view, source, Work("cpu", batch_size=15), "x")
    with pytest.raises(UserError, match="give a smaller batch or view, or more accumulated parts"):
        try_networks(tiny_run(), source)


def test_views_of_parts_that_meet_are_held_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a shared network with a queue are not."""
    run, source = replace(tiny_run(), accumulate=2), images(16, 0)
    shared = replace(run, encoders=Shared(Encoder(TinyBackbone(), LinearHead(8), SplitBatchNorm(2))))
    each = run.views.count * 3 * 4 * 32**2
    monkeypatch.setattr(allocator, "memory_of", lambda device: 4 * each * run.batch_size // 2)
    with pytest.raises(UserError, match=f"the views of {run.batch_size} images at once .*: give a smaller batch or"):
        try_networks(run, source)
    try_networks(shared, source)


def test_layers_that_fill_the_memory_are_refused_before_a_batch_is_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first layer makes 256 channels of three, so a batch takes many times as much as its views."""
    wide = tiny_run(Shared(Encoder(Convolutions(widths=(256, 8)), LinearHead(8))))
    encoder, source, image = random_encoder(wide), images(16, 0), 256 * 4 * 16**2
    monkeypatch.setattr(allocator, "memory_of", lambda device: 16 * image - 1)
    with pytest.raises(UserError, match="a layer's output for 16 images at once takes .* --batch-size"):
        encode_all(encoder.backbone, encoder.view, source, Work("cpu", batch_size=64), "x")
    encode_all(encoder.backbone, encoder.view, source, Work("cpu", batch_size=15), "x")
    views = wide.batch_size * wide.views.count * 3 * 4 * 32**2
    monkeypatch.setattr(allocator, "memory_of", lambda device: 4 * views)
    with pytest.raises(UserError, match=r"the backward pass of \d+ images at once takes .* or more accumulated parts"):
        try_networks(wide, source)


def test_what_a_backward_pass_keeps_is_counted_once_and_without_weights() -> None:
    layer, image = torch.nn.Linear(5, 7), torch.randn(2, 5)
    assert bytes_for_backward(layer, lambda: layer(image)) == 4 * image.numel()
    twice = torch.nn.Sequential(layer, torch.nn.Tanh())
    assert bytes_for_backward(twice, lambda: twice(image).sum()) == 4 * (image.numel() + 2 * 7)
    assert largest_output(twice, lambda: twice(image)) == 4 * 2 * 7


@pytest.mark.parametrize("shape", [(3, 1, 3_000_000), (3, 3_000_000, 1)])
def test_a_strip_is_not_made_larger_than_the_memory(shape: tuple[int, ...]) -> None:
    view = EvaluationView(32, 36, Statistics((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
    strip = torch.full(shape, 7, dtype=torch.uint8)
    assert (view.crop(strip) == 7).all() and (Straight(view).crop(strip) == 7).all()
