"""A run's encoder is loaded as it was saved, without executing anything, or refused."""

import importlib
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from counting import Counting
from tiny import TinyBackbone, cpu_work, saved_run, tiny_run
from torch import Tensor, nn
from torch.testing import assert_close

from vantage.composition.codec import allowing
from vantage.data import Source
from vantage.encoders.encoder import Encoder
from vantage.encoders.heads import LinearHead
from vantage.encoders.roles import PerView, Role, Shared
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate import Outcome, evaluate
from vantage.frozen.encoder import FrozenEncoder, load, random_encoder, raw_pixels
from vantage.frozen.feature_cache import features_of
from vantage.frozen.features import embed
from vantage.recipes import moco_v2, simclr
from vantage.storage.files import digest_of_file
from vantage.training.backbone import evaluation_view
from vantage.training.folder import checkpoint
from vantage.views import (
    IMAGENET,
    Augmentation,
    EvaluationView,
    HorizontalFlip,
    RandomResizedCrop,
    Views,
    frequency_views,
)

ENCODER = Encoder(TinyBackbone(), LinearHead(8))
ROLES = [None, Shared(ENCODER), PerView((ENCODER, Encoder(TinyBackbone(20), LinearHead(8))))]
_EDITED = """
from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class Edited:
    def build(self):
        return EditedNetwork()


class EditedNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.width = nn.Conv2d(3, 4, 3), 4

    def forward(self, images):
        return self.layer(images).mean((2, 3)) ** {power}
"""


@dataclass(frozen=True)
class Pooled:
    """A convolution whose map is pooled in one of two ways."""

    pool: str

    def build(self) -> nn.Module:
        """The network."""
        return PooledNetwork(self.pool)


class PooledNetwork(nn.Module):
    """The network of `Pooled`."""

    def __init__(self, pool: str) -> None:
        super().__init__()
        self.layer, self.pool, self.width = nn.Conv2d(3, 4, 3), pool, 4

    def forward(self, images: Tensor) -> Tensor:
        """Features of images."""
        return getattr(self.layer(images), self.pool)((2, 3))


@pytest.mark.parametrize("role", ROLES, ids=["Momentum", "Shared", "PerView"])
def test_the_trained_network_comes_back(role: Role | None, tmp_path: Path) -> None:
    learner = saved_run(tmp_path, tiny_run(role)).eval()
    views = torch.randn(4, 3, 32, 32)
    for number, network in enumerate(learner.networks.encoders):
        encoder = load(tmp_path, number)
        assert torch.equal(encoder.backbone(views), network.features(views))
        assert encoder.width == network.backbone.width and encoder.checkpoint == checkpoint.latest(tmp_path)
        assert not encoder.backbone.training and not any(p.requires_grad for p in encoder.backbone.parameters())


@pytest.mark.parametrize("role", ROLES, ids=["Momentum", "Shared", "PerView"])
def test_frequencies_are_judged_on_their_bands(role: Role | None, tmp_path: Path) -> None:
    """Each encoder sees the band that it was trained on, one encoder for both sees them one after the other."""
    run = replace(tiny_run(role), views=frequency_views(32, sigma=1.5))
    learner = saved_run(tmp_path, run).eval()
    images = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)
    low, high = run.views.split(IMAGENET.normalize().apply(images / 255, torch.empty(4, 0)))  # pyright: ignore
    encoders: list[Any] = list(learner.networks.encoders) * (3 - len(learner.networks.encoders))
    expected = torch.cat([encoder.features(band) for encoder, band in zip(encoders[:2], (low, high), strict=True)], 1)
    frozen_encoder = load(tmp_path)
    assert_close(frozen_encoder.backbone(frozen_encoder.view.batch(images)), expected)  # pyright: ignore
    assert_close(frozen_encoder.view.finish(images), torch.cat([low, high], 1))
    assert frozen_encoder.width == expected.shape[1] and frozen_encoder.choice is None
    alone = load(tmp_path, 0)
    assert_close(alone.backbone(alone.view.finish(images)), encoders[0].features(low))
    assert raw_pixels(run).backbone(frozen_encoder.view.finish(images)).shape == (4, 6 * 32 * 32)
    assert random_encoder(run).width == frozen_encoder.width


def test_a_folder_may_be_named_by_text_as_in_training(tmp_path: Path) -> None:
    saved_run(tmp_path, tiny_run())
    assert load(str(tmp_path)).digest() == load(tmp_path).digest()
    with pytest.raises(UserError, match="holds no run"):
        load(str(tmp_path / "nowhere"))


def test_a_network_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    saved_run(tmp_path, tiny_run())
    with pytest.raises(UserError, match="network 1 was asked for, but the run trained 1"):
        load(tmp_path, 1)


def test_a_run_without_checkpoint_is_refused(tmp_path: Path) -> None:
    saved_run(tmp_path, tiny_run())
    (tmp_path / "checkpoint").rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="holds no checkpoint yet"):
        load(tmp_path)


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "gone", "facts"])
def test_a_damaged_checkpoint_is_refused(damage: str, tmp_path: Path) -> None:
    saved_run(tmp_path, tiny_run())
    newest = checkpoint.latest(tmp_path)
    assert newest is not None
    tensors = newest / "tensors.safetensors"
    content = bytearray(tensors.read_bytes())
    if damage == "flip":
        content[-5] ^= 1
        tensors.write_bytes(content)
    elif damage == "truncate":
        tensors.write_bytes(content[:-100])
    elif damage == "empty":
        tensors.write_bytes(b"")
    elif damage == "gone":
        tensors.unlink()
    else:
        (newest / "facts.json").write_text("{")
    with pytest.raises(UserError, match="is damaged"):
        load(tmp_path)


def test_a_pickle_instead_of_tensors_is_not_executed(tmp_path: Path) -> None:
    saved_run(tmp_path, tiny_run())
    newest = checkpoint.latest(tmp_path)
    assert newest is not None
    tensors, trace = newest / "tensors.safetensors", tmp_path / "trace"

    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (trace,)  # type: ignore[return-value]

    torch.save({"trap": Trap()}, tensors)
    facts = json.loads((newest / "facts.json").read_text())
    (newest / "facts.json").write_text(json.dumps({**facts, "sha256": digest_of_file(tensors)}))
    with pytest.raises(UserError, match="is damaged"):
        load(tmp_path)
    assert not trace.exists()


def test_settings_of_another_architecture_are_refused(tmp_path: Path) -> None:
    from vantage.training.folder import settings

    saved_run(tmp_path, tiny_run())
    settings.write(tiny_run(Shared(Encoder(TinyBackbone(5), LinearHead(8)))), tmp_path)
    with pytest.raises(UserError, match="does not fit"):
        load(tmp_path)


def test_a_random_encoder_follows_its_seed_and_leaves_the_generator_alone() -> None:
    before = torch.get_rng_state()
    one, same, other = (random_encoder(tiny_run(), seed).digest() for seed in (1, 1, 2))
    assert one == same != other
    assert torch.equal(before, torch.get_rng_state())


def test_a_digest_covers_every_buffer() -> None:
    encoder = random_encoder(tiny_run())
    before = encoder.digest()
    with torch.no_grad():
        encoder.backbone.get_submodule("bn1").get_buffer("running_var")[3] += 1e-6
    assert encoder.digest() != before


def test_a_digest_covers_what_only_the_settings_of_an_own_backbone_say() -> None:
    """Two backbones that pool differently have equal weights and print alike: neither may get the other's features from
    the cache, nor its row in a table."""
    runs = [tiny_run(Shared(Encoder(Pooled(name), LinearHead(8)))) for name in ("mean", "amax")]
    mean, maximum = map(random_encoder, runs)
    assert repr(mean.backbone) == repr(maximum.backbone)
    assert_close(dict(mean.backbone.state_dict()), dict(maximum.backbone.state_dict()), rtol=0, atol=0)
    assert mean.digest() != maximum.digest()
    assert mean.digest() == random_encoder(mean.run).digest()


def test_a_digest_covers_the_code_of_an_own_backbone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an edit of its code, features that were cached before are not its own."""
    digests = list[str]()
    for number, power in enumerate((2, 3, 2)):
        (tmp_path / f"edited_{number}.py").write_text(_EDITED.format(power=power))
        monkeypatch.syspath_prepend(tmp_path)
        module = importlib.import_module(f"edited_{number}")
        monkeypatch.setattr(module.Edited, "__module__", "edited")
        monkeypatch.setattr(module.EditedNetwork, "__module__", "edited")
        monkeypatch.setitem(sys.modules, "edited", module)
        digests.append(random_encoder(tiny_run(Shared(Encoder(module.Edited(), LinearHead(8))))).digest())
    assert digests[0] == digests[2] != digests[1]


def test_raw_pixels_are_the_normalized_pixels() -> None:
    encoder = raw_pixels(tiny_run())
    views = torch.randn(2, 3, 32, 32)
    assert torch.equal(encoder.backbone(views), views.flatten(1)) and encoder.width == 3072


def test_raw_pixels_of_large_images_are_averaged() -> None:
    encoder = raw_pixels(moco_v2(224))
    views = torch.randn(2, 3, 224, 224)
    means = views.unflatten(3, (32, 7)).unflatten(2, (32, 7)).mean((3, 5))
    torch.testing.assert_close(encoder.backbone(views), means.flatten(1))


@pytest.mark.parametrize(("size", "resize"), [(32, 32), (64, 64), (96, 96), (224, 256)])
def test_the_view_follows_the_run(size: int, resize: int) -> None:
    view = evaluation_view(simclr(size))
    assert (view.size, view.resize) == (size, resize)
    assert view.statistics.mean == (0.485, 0.456, 0.406)


def test_a_view_without_statistics_is_refused() -> None:
    views = Views((Augmentation(RandomResizedCrop(32), (HorizontalFlip(0.5),)),) * 2)
    with pytest.raises(UserError, match="without Normalize has no statistics"):
        evaluation_view(replace(tiny_run(), views=views))


def test_a_users_own_views_say_how_images_are_seen() -> None:
    class Strange:
        count = 2

        def crop(self, image, generator): ...
        def finish(self, crops, generator): ...
        def batch(self, images, generator): ...

    class Plain(Strange):
        def evaluation(self, view=None):
            return EvaluationView(20, 24, IMAGENET)

    run = replace(tiny_run(), views=Plain())
    assert evaluation_view(run) == EvaluationView(20, 24, IMAGENET)
    object.__setattr__(run, "views", Strange())  # as without the checks of types that tests run under
    with pytest.raises(UserError, match=r"Strange does not define .* a method evaluation"):
        evaluation_view(run)


def test_a_view_that_does_not_exist_is_refused() -> None:
    views = simclr(32).views
    assert views.evaluation() == views.evaluation(0) == views.evaluation(1)
    with pytest.raises(UserError, match="view 2 was asked for, but there are 2: choose 0 to 1"):
        views.evaluation(2)


def test_a_part_of_a_script_is_loaded_once_it_is_in_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script's own name says nothing to other processes, so --import could not help."""
    saved_run(tmp_path, tiny_run())
    file, own = tmp_path / "settings.json", "tiny:TinyBackbone"
    content = file.read_text()
    assert own in content
    file.write_text(content.replace(own, "__main__:TinyBackbone"))
    advice = r"was defined in a script or notebook.*write my_parts:TinyBackbone in place of __main__:TinyBackbone"
    for allowed in ((), ("__main__",)):
        with pytest.raises(UserError, match=advice) as refusal, allowing(*allowed):
            load(tmp_path)
        assert "--import __main__" not in str(refusal.value)
    file.write_text(file.read_text().replace("__main__:TinyBackbone", own))  # the advice
    with allowing("tiny"):
        assert load(tmp_path).width == 12
    file.write_text(content.replace(own, "__main__:TinyBackbone"))
    monkeypatch.setattr(TinyBackbone, "__module__", "__main__")  # in the process that defines it
    monkeypatch.setattr(sys.modules["__main__"], "TinyBackbone", TinyBackbone, raising=False)
    with pytest.raises(UserError, match=r"__main__:TinyBackbone is yours: allow it by vantage.allowing\('__main__'\)"):
        load(tmp_path)
    with allowing("__main__"):
        assert load(tmp_path).width == 12


@dataclass(frozen=True)
class ModeOfTheBackbone:
    """A protocol that says in which mode it gets the backbone."""

    name: ClassVar[str] = "mode"
    version: ClassVar[int] = 1

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        return Outcome({"training": float(encoder.backbone.training)}, len(train), len(test), {})


def test_a_backbone_in_training_mode_encodes_in_evaluation_mode_and_keeps_its_mode(tmp_path: Path) -> None:
    """A loop of the caller's own leaves it so; BatchNorm would then mix the images of a batch, and change."""
    encoder, source, work = random_encoder(tiny_run()), Counting(), cpu_work(tmp_path)
    usual = embed(encoder, source, work).vector
    digest = encoder.digest()
    encoder.backbone.train()
    assert torch.equal(embed(encoder, source, work).vector, usual)
    assert torch.equal(features_of(encoder, source, cpu_work(tmp_path / "another")), usual)
    result = evaluate(encoder, ModeOfTheBackbone(), source, work=work)
    assert result.outcomes[encoder.name].measures == {"training": 0.0}
    assert encoder.digest() == digest and all(module.training for module in encoder.backbone.modules())
