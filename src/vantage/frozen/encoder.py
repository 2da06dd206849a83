"""A frozen encoder and the view its images are seen in: what is left of a run, or a baseline to compare it with.

b: images   c: channels   h, w: size of an image in pixels   d: width of the features
"""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vantage.encoders.backbones import Backbone, width_of
from vantage.encoders.depths import maps
from vantage.encoders.encoder import Encoder
from vantage.encoders.roles import Momentum, PerView, Role, RoleNetworks, Shared
from vantage.errors import UserError
from vantage.training import checkpoint, settings
from vantage.training.run import Run
from vantage.views.evaluation import EvaluationView, Straight

__all__ = [
    "Pixels",
    "FrozenEncoder",
    "backbone_of",
    "digest_of",
    "evaluation_view",
    "load",
    "random_encoder",
    "raw_pixels",
]

_NETWORKS = "learner.networks."


@dataclass(frozen=True)
class FrozenEncoder:
    """A frozen encoder with the view its images are seen in. The baselines have this form too."""

    backbone: nn.Module
    """Images (b, c, h, w), seen through `view`, to features (b, d). In evaluation mode, without gradients."""

    view: EvaluationView | Straight
    """How an image is seen."""

    name: str
    """What it is, in a table: the recipe, "random encoder" or "raw pixels"."""

    run: Run
    """The run it comes from, or is compared with."""

    choice: Backbone | None
    """What the backbone was built from; none for raw pixels, and for several backbones joined."""

    checkpoint: Path | None
    """Where its parameters were read; none for baselines."""

    @property
    def width(self) -> int:
        """Width d of the features."""
        return width_of(self.backbone)

    def digest(self) -> str:
        """A hash of the architecture and of every parameter and buffer: whether the backbone is what it was."""
        return digest_of(self.backbone)


def load(run_folder: Path, network: int | None = None) -> FrozenEncoder:
    """The encoder of a run's newest checkpoint, on the CPU. Nothing in the folder is executed.

    Of a run with a network per view all are taken, their features joined, or the one that `network` counts. The view follows the run: the side is that of its random crops, pixels are normalized as in
    training; images up to 96 pixels are seen whole, larger ones through the middle of a resize 8/7 as large (224
    of 256). Another view: `dataclasses.replace(trained, view=...)`.

    Raises `UserError` where there is no checkpoint, where it is damaged or altered, or where it does not fit the
    settings.
    """
    run = settings.read(run_folder)
    newest = checkpoint.latest(run_folder)
    if newest is None:
        raise UserError(f"{run_folder} holds no checkpoint yet: train first, or let it reach the first one")
    networks = _build(run.encoders, run.seed)
    checkpoint.load_network(newest, networks, _NETWORKS)
    return _frozen(run, networks, network, run.recipe, newest)


def random_encoder(run: Run, seed: int = 0, network: int | None = None) -> FrozenEncoder:
    """The baseline of the same architecture and view, freshly initialized from `seed`: what training added is the
    difference."""
    return _frozen(run, _build(run.encoders, seed), network, "random encoder", None)


def raw_pixels(run: Run, network: int | None = None) -> FrozenEncoder:
    """The baseline without an encoder: the pixels of the same view, normalized, averaged down to 32 x 32 where it is
    larger."""
    view = evaluation_view(run, network)
    return FrozenEncoder(Pixels(view.size, len(view.channels)).eval(), view, "raw pixels", run, None, None)


def evaluation_view(run: Run, network: int | None = None) -> EvaluationView:
    """The view in which a run's images are evaluated: by one of its networks, or by all of them.

    Raises `UserError` where the views do not say it, or where networks that are evaluated together see images
    differently.
    """
    if not hasattr(run.views, "evaluation"):
        raise UserError(
            f"{type(run.views).__name__} does not say how its images are seen in evaluation: give it a method"
            " evaluation(view=None) that returns an EvaluationView"
        )
    if not isinstance(run.encoders, PerView):
        return run.views.evaluation()
    if network is not None:
        return run.views.evaluation(network)
    each = {run.views.evaluation(number) for number in range(len(run.encoders.encoders))}
    if len(each) == 1:
        return each.pop()
    whole = {replace(view, channels=(0, 1, 2)) for view in each}
    if len(whole) > 1:
        raise UserError("the networks of this run see images differently: choose one (--network 0)")
    return whole.pop()


def digest_of(module: nn.Module) -> str:
    """A hash of a module's printed architecture and of name, type, shape and bytes of every parameter and buffer."""
    digest = hashlib.sha256(repr(module).encode())
    for name, tensor in module.state_dict().items():
        digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def backbone_of(run: Run, networks: RoleNetworks, network: int | None) -> nn.Module:
    """One of the trained backbones, or all of them side by side; raises `UserError` where there is no such network."""
    kept = [trained.get_submodule("backbone") for trained in networks.kept]
    if network is None and len(kept) > 1:
        seen = evaluation_view(run).channels
        each = [run.views.evaluation(number).channels for number in range(len(kept))]
        return _Joined(kept, [[seen.index(channel) for channel in channels] for channels in each])
    if not 0 <= (network or 0) < len(kept):
        raise UserError(
            f"network {network} was asked for, but the run trained {len(kept)}: choose 0 to {len(kept) - 1}"
        )
    return kept[network or 0]


def _frozen(run: Run, networks: RoleNetworks, network: int | None, name: str, source: Path | None) -> FrozenEncoder:
    backbone = backbone_of(run, networks, network).eval().requires_grad_(False)
    alone = 0 if len(networks.kept) == 1 else network
    choice = None if alone is None else _choice(run.encoders, alone)
    return FrozenEncoder(backbone, evaluation_view(run, network), name, run, choice, source)


def _build(role: Role, seed: int) -> RoleNetworks:
    with torch.random.fork_rng(devices=[]):  # the caller's generator stays where it is
        torch.manual_seed(seed)
        return role.build()


def _choice(role: Role, network: int) -> Backbone | None:
    match role:
        case PerView(encoders):
            return encoders[network].backbone
        case Shared(Encoder() as encoder) | Momentum(Encoder() as encoder):
            return encoder.backbone
        case _:  # a role of the user's own
            return None


class _Joined(nn.Module):
    """Several backbones side by side, each on its channels of the image; their features one after the other."""

    def __init__(self, backbones: list[nn.Module], channels: list[list[int]]) -> None:
        super().__init__()
        self.backbones, self.channels = nn.ModuleList(backbones), channels
        self.width = sum(width_of(backbone) for backbone in backbones)

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
        pairs = zip(self.backbones, self.channels, strict=True)
        return torch.cat([backbone(images[:, some]) for backbone, some in pairs], 1)

    def maps(self, images: Float[Tensor, "b c h w"]) -> list[Float[Tensor, "b d _ _"]]:
        """At each depth the maps of all backbones, channels of the first before those of the next."""
        pairs = zip(self.backbones, self.channels, strict=True)
        each = [maps(backbone, images[:, some]) for backbone, some in pairs]
        return [torch.cat(depth, 1) for depth in zip(*each, strict=True)]

    def extra_repr(self) -> str:
        return f"channels={self.channels}"


class Pixels(nn.Module):
    """Pixels as features: what the baseline without an encoder has for a backbone."""

    def __init__(self, size: int, channels: int = 3, most: int = 32) -> None:
        """Of images of `size` by `size` pixels, averaged down to `most` where they are larger."""
        super().__init__()
        self.side = min(size, most)
        self.width = channels * self.side**2

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
        """Pixels of each image, channel by channel."""
        return F.adaptive_avg_pool2d(images, self.side).flatten(1)

    def extra_repr(self) -> str:
        """The side: part of what tells two of them apart."""
        return f"side={self.side}"
