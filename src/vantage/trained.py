"""A frozen encoder and the view its images are seen in: what is left of a run, or a baseline to compare it with.

b: images   c: channels   h, w: size of an image in pixels   d: width of the features
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vantage import checkpoint, settings
from vantage.encoders.backbones import Backbone, width_of
from vantage.encoders.encoder import Encoder
from vantage.encoders.roles import Momentum, PerView, Role, RoleNetworks, Shared
from vantage.errors import UserError
from vantage.run import Run
from vantage.views.colour import Normalise
from vantage.views.evaluation import Evaluation
from vantage.views.geometry import RandomResizedCrop
from vantage.views.statistics import Statistics

__all__ = ["Trained", "digest_of", "evaluation_view", "load", "random_encoder", "raw_pixels"]

_NETWORKS = "learner.networks."
_WHOLE = 96
"""Up to this side, in pixels, images are seen whole; above it, the middle of a resize 8/7 as large, as 224 of 256."""


@dataclass(frozen=True)
class Trained:
    """A frozen encoder with the view its images are seen in. The baselines have this form too."""

    backbone: nn.Module
    """Images (b, c, h, w), seen through `view`, to features (b, d). In evaluation mode, without gradients."""

    view: Evaluation
    """How an image is seen."""

    name: str
    """What it is, in a table: the recipe, "random encoder" or "raw pixels"."""

    run: Run
    """The run it comes from, or is compared with."""

    choice: Backbone | None
    """What the backbone was built from; none for raw pixels."""

    checkpoint: Path | None
    """Where its parameters were read; none for baselines."""

    @property
    def width(self) -> int:
        """Width d of the features."""
        return width_of(self.backbone)

    def digest(self) -> str:
        """A hash of the architecture and of every parameter and buffer: whether the backbone is what it was."""
        return digest_of(self.backbone)


def load(run_folder: Path, network: int = 0, allow: tuple[str, ...] = ()) -> Trained:
    """The encoder of a run's newest checkpoint, on the CPU. Nothing in the folder is executed.

    `network` counts the trained networks of runs that have one per view; `allow` names modules of your own whose
    parts the run uses. The view follows the run: the side is that of its random crops, pixels are normalised as in
    training; images up to 96 pixels are seen whole, larger ones through the middle of a resize 8/7 as large (224
    of 256). Another view: `dataclasses.replace(trained, view=...)`.

    Raises `UserError` where there is no checkpoint, where it is damaged or altered, or where it does not fit the
    settings.
    """
    run = settings.read(run_folder, allow)
    newest = checkpoint.latest(run_folder)
    if newest is None:
        raise UserError(f"{run_folder} holds no checkpoint yet: train first, or let it reach the first one")
    networks = _build(run.encoders, run.seed)
    checkpoint.load_network(newest, networks, _NETWORKS)
    return _frozen(run, networks, network, run.recipe, newest)


def random_encoder(run: Run, seed: int = 0, network: int = 0) -> Trained:
    """The baseline of the same architecture and view, freshly initialised from `seed`: what training added is the
    difference."""
    return _frozen(run, _build(run.encoders, seed), network, "random encoder", None)


def raw_pixels(run: Run, network: int = 0) -> Trained:
    """The baseline without an encoder: the pixels of the same view, normalised, averaged down to 32 x 32 where it is
    larger."""
    view = evaluation_view(run, network)
    return Trained(_Pixels(view.size).eval(), view, "raw pixels", run, None, None)


def evaluation_view(run: Run, network: int = 0) -> Evaluation:
    """The view in which a run's images are evaluated; raises `UserError` where its views do not tell size and
    statistics."""
    views = getattr(run.views, "views", None)
    maker = views[network] if isinstance(views, tuple) and network < len(views) else run.views
    parts = list(_parts(maker))
    crops = [part for part in parts if isinstance(part, RandomResizedCrop)]
    normalised = [part for part in parts if isinstance(part, Normalise)]
    if not crops or not normalised:
        raise UserError(
            "the run's views have no RandomResizedCrop and Normalise, so size and statistics of an evaluation cannot be"
            " taken from them: add these operations to the views"
        )
    size = crops[0].size
    resize = size if size <= _WHOLE else round(size * 8 / 7)
    return Evaluation(size, resize, Statistics(normalised[-1].mean, normalised[-1].std))


def digest_of(module: nn.Module) -> str:
    """A hash of a module's printed architecture and of name, type, shape and bytes of every parameter and buffer."""
    digest = hashlib.sha256(repr(module).encode())
    for name, tensor in module.state_dict().items():
        digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def _frozen(run: Run, networks: RoleNetworks, network: int, name: str, source: Path | None) -> Trained:
    count = len(networks.kept)
    if not 0 <= network < count:
        raise UserError(f"network {network} was asked for, but the run trained {count}: choose 0 to {count - 1}")
    backbone = networks.kept[network].get_submodule("backbone").eval().requires_grad_(False)
    choice = _choice(run.encoders, network)
    return Trained(backbone, evaluation_view(run, network), name, run, choice, source)


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


def _parts(value: Any) -> Iterator[Any]:
    """A value of nested dataclasses and tuples, and all that is in it, from left to right."""
    yield value
    inside = value if isinstance(value, tuple) else ()
    if is_dataclass(value):
        inside = tuple(getattr(value, field.name) for field in fields(value))
    for part in inside:
        yield from _parts(part)


class _Pixels(nn.Module):
    """Pixels as features."""

    def __init__(self, size: int, most: int = 32) -> None:
        super().__init__()
        self.side = min(size, most)
        self.width = 3 * self.side**2

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
        return F.adaptive_avg_pool2d(images, self.side).flatten(1)

    def extra_repr(self) -> str:
        return f"side={self.side}"
