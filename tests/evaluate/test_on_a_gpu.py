"""Every protocol once on a CUDA device: it runs there, with the results of the CPU."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from multilabel_images import several
from PIL import Image
from test_bad_sets import BY_CLASS, BY_CLASS_NAME
from tiny import cpu_work, images, tiny_run
from tiny_maps import mapped_run, two_run

from vantage.data.sources.masked import open_masked, split_masked
from vantage.data.sources.source import Source
from vantage.evaluate import FineTune, LinearCached, LinearCMC, LinearMoCo, Outcome
from vantage.evaluate.protocols.finetune import tuning
from vantage.evaluate.protocols.finetune.tuning import TuningSchedule, tune
from vantage.evaluate.protocols.linear.pooled import training_view
from vantage.evaluate.protocols.segmentation.segmentation import Segmentation
from vantage.frozen.encoder import FrozenEncoder, random_encoder, raw_pixels
from vantage.frozen.feature_cache import features_of
from vantage.frozen.features import embed
from vantage.storage import state as kept_state
from vantage.views.augmentation import Augmentation
from vantage.views.operations.crops import SquareCrop

pytestmark = pytest.mark.gpu
DEVICE = "cuda"
TEST = 24
"""Test images. Rounding may change the guess for one of them, where two classes are nearly equal."""


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    """Convolutions and matrix products in float32, as on the CPU: by default a device may round numbers to TF32."""
    parts = (torch.backends.cudnn.conv, torch.backends.cuda.matmul)  # pyright: ignore[reportAttributeAccessIssue]
    before = [part.fp32_precision for part in parts]
    for part in parts:
        part.fp32_precision = "ieee"
    yield
    for part, precision in zip(parts, before, strict=True):
        part.fp32_precision = precision


def both(judge: Callable[[FrozenEncoder, Any], Any], run: Any, folder: Path, **change: Any) -> tuple[Any, Any]:
    """Outcomes on the CPU and on the GPU, of equal encoders with separate caches."""
    works = [replace(cpu_work(folder / device), device=device, **change) for device in ("cpu", DEVICE)]
    return judge(random_encoder(run), works[0]), judge(random_encoder(run), works[1])


def near(cpu: Outcome, gpu: Outcome, off: float) -> None:
    """Equal measures, up to `off` percent."""
    assert list(cpu.measures) == list(gpu.measures) and cpu.how == gpu.how
    assert dict(gpu.measures) == pytest.approx(dict(cpu.measures), abs=off)
    assert (cpu.train_images, cpu.test_images) == (gpu.train_images, gpu.test_images)


@pytest.mark.parametrize("resident", [0, 2**20])
@pytest.mark.parametrize("protocol", [*BY_CLASS_NAME, *BY_CLASS], ids=lambda one: one.name)
def test_a_protocol_gives_the_same_result(protocol: Any, resident: int, tmp_path: Path) -> None:
    sides: tuple[Source, Source] = (images(36, 0, noise=20), images(TEST, 1, noise=20))
    if protocol in BY_CLASS:
        sides = (several(90, 0), several(TEST, 1))
    run = two_run() if isinstance(protocol, LinearCMC) else mapped_run()

    def judge(encoder: FrozenEncoder, work: Any) -> Outcome:
        before = encoder.digest()
        outcome = protocol(encoder, *sides, work)
        assert encoder.digest() == before
        return outcome

    near(*both(judge, run, tmp_path, resident_bytes=resident), off=100.1 / TEST)


@pytest.mark.parametrize("size", [32, 40])
def test_features_agree(size: int, tmp_path: Path) -> None:
    source = images(40, 0, size=size)
    for run in (tiny_run(), mapped_run(), two_run()):
        cpu, gpu = both(lambda encoder, work: embed(encoder, source, work).vector, run, tmp_path)
        assert gpu.device.type == "cpu" and gpu.dtype == torch.float32
        torch.testing.assert_close(gpu, cpu, rtol=1e-4, atol=1e-5)
    pixels = raw_pixels(tiny_run())
    vectors = [embed(pixels, source, replace(cpu_work(tmp_path), device=device)).vector for device in ("cpu", DEVICE)]
    torch.testing.assert_close(*vectors, rtol=1e-5, atol=1e-5)


def test_features_of_both_devices_are_cached_separately(tmp_path: Path) -> None:
    for device in ("cpu", DEVICE, DEVICE):
        features_of(random_encoder(tiny_run()), images(20, 0), replace(cpu_work(tmp_path), device=device))
    assert len(list((tmp_path / "cache" / "features").glob("*.npy"))) == 2


@pytest.mark.parametrize("shape", [(32, 32), (50, 41)])
def test_training_views_agree(shape: tuple[int, int]) -> None:
    whole = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (6, 3, *shape), dtype=np.uint8))
    encoder = random_encoder(tiny_run())
    for view in (training_view(encoder, 0.2), Augmentation(SquareCrop(28, 32), encoder.view.operations)):
        cpu, gpu = (view.batch(whole.to(device), torch.Generator().manual_seed(4)) for device in ("cpu", DEVICE))
        torch.testing.assert_close(gpu.cpu(), cpu, rtol=1e-4, atol=1e-4)


def test_a_linear_classifier_learns_the_same_weights(tmp_path: Path) -> None:
    """Similar learning rates and many epochs: the draws are the same, so the accuracies on held-out images are too."""
    protocol = LinearMoCo((0.01, 0.1), epochs=4, batch_size=12)
    cpu, gpu = both(lambda t, work: protocol(t, images(60, 0, noise=90), images(TEST, 1), work), tiny_run(), tmp_path)
    near(cpu, gpu, 100.1 / TEST)
    assert gpu.chosen["held_out_accuracy"] == pytest.approx(cpu.chosen["held_out_accuracy"], abs=100.1 / 6)


def test_logistic_regression_chooses_the_same(tmp_path: Path) -> None:
    protocol = LinearCached((1e-3, 1e-1))
    cpu, gpu = both(lambda t, work: protocol(t, images(60, 0, noise=90), images(TEST, 1), work), tiny_run(), tmp_path)
    near(cpu, gpu, 100.1 / TEST)


def test_fine_tuning_agrees(tmp_path: Path) -> None:
    protocol = FineTune(1.0, epochs=3, batch_size=12, backbone_learning_rate=0.01, head_learning_rate=0.1)
    cpu, gpu = both(lambda t, work: protocol(t, images(36, 0), images(TEST, 1), work), tiny_run(), tmp_path)
    assert gpu.details["losses"][0] == pytest.approx(cpu.details["losses"][0], rel=1e-3)


def test_a_stopped_fine_tuning_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the order of sums, which a CUDA device does not keep."""
    encoder, source = random_encoder(tiny_run()), images(24, 0)
    label, schedule = torch.tensor([0, 1, 2] * 8), TuningSchedule(4, 8, (0.05, 0.2), 1e-4, 0.3, 1)
    work = replace(cpu_work(tmp_path), device=DEVICE)
    whole = tune(schedule, encoder, source, label, 3, work)
    monkeypatch.setattr(kept_state, "MINUTES", -1.0)
    plain = tuning._Training.epoch

    def stopping(state: tuning._Training, *rest: object) -> float:
        if len(state.losses) == 2:
            raise KeyboardInterrupt
        return plain(state, *rest)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(tuning._Training, "epoch", stopping)
    with pytest.raises(KeyboardInterrupt):
        tune(schedule, encoder, source, label, 3, work)
    monkeypatch.setattr(tuning._Training, "epoch", plain)
    again = tune(schedule, encoder, source, label, 3, work)
    assert again.losses == pytest.approx(whole.losses, rel=1e-4) and len(again.losses) == 4
    torch.testing.assert_close(again.head.weight, whole.head.weight, rtol=1e-3, atol=1e-5)


def test_moving_a_backbone_keeps_its_digest(tmp_path: Path) -> None:
    """A comparison runs many protocols on one encoder; the first one leaves it on the device."""
    encoder, train, test = random_encoder(mapped_run()), images(36, 0), images(TEST, 1)
    before, work = encoder.digest(), replace(cpu_work(tmp_path), device=DEVICE)
    for protocol in (BY_CLASS_NAME[0], BY_CLASS_NAME[3], BY_CLASS_NAME[7], BY_CLASS_NAME[-2], BY_CLASS_NAME[0]):
        protocol(encoder, train, test, work)
    assert encoder.digest() == before


def test_a_segmentation_agrees(tmp_path: Path) -> None:
    for part in ("images", "masks"):
        (tmp_path / part).mkdir()
    chance = np.random.default_rng(0)
    for number in range(16):
        mask = chance.integers(0, 3, (4, 4)).repeat(6, 0).repeat(6, 1).astype(np.uint8)
        color = np.array([[200, 60, 60], [60, 200, 60], [60, 60, 200]])[mask] + chance.normal(0, 20, (24, 24, 3))
        Image.fromarray(color.clip(0, 255).astype(np.uint8)).save(tmp_path / "images" / f"{number}.png")
        Image.fromarray(mask).save(tmp_path / "masks" / f"{number}.png")
    train, test = split_masked(open_masked(f"{tmp_path / 'images'}#{tmp_path / 'masks'}"))
    protocol = Segmentation(size=24, depth=0, width=8, epochs=8, batch_size=4)
    cpu, gpu = both(lambda encoder, work: protocol(encoder, train, test, work), mapped_run(), tmp_path)
    near(cpu, gpu, 5.0)
