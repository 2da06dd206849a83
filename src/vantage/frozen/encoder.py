"""A frozen encoder and the view in which it sees images: the outcome of a run, or a baseline to compare it with.

b: images   c: channels   h, w: size of an image in pixels   d: width of the features
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vantage import draws
from vantage.composition.field_types import expect
from vantage.composition.own_code import own_code
from vantage.encoders.backbones.joint import Joined
from vantage.encoders.backbones.resnet import Backbone, width_of
from vantage.encoders.encoder import Encoder
from vantage.encoders.momentum import Momentum
from vantage.encoders.roles import PerView, Role, RoleNetworks, Shared
from vantage.facts.results import RANDOM_ENCODER, RAW_PIXELS
from vantage.frozen.outside import outside_weights
from vantage.frozen.own_backbone import own_backbone
from vantage.machine.usual_torch import usual_torch
from vantage.training.backbone import backbone_of, evaluation_view
from vantage.training.folder import checkpoint, settings
from vantage.training.run import Run
from vantage.views.evaluation import EvaluationView, Straight

__all__ = ["FrozenEncoder", "load", "random_encoder", "raw_pixels"]

_NETWORKS = "learner.networks."


@dataclass(frozen=True)
class FrozenEncoder:
    """A frozen encoder with the view in which it sees images. Baselines have this form too."""

    backbone: nn.Module
    """Images (b, c, h, w), seen through `view`, to features (b, d). In evaluation mode, without gradients."""

    view: EvaluationView | Straight
    """How an image is seen."""

    name: str
    """Its name in tables: the recipe, "random encoder" or "raw pixels"."""

    run: Run
    """The run it comes from, or is compared with."""

    choice: Backbone | None
    """The configuration of the backbone; None for raw pixels, and for several backbones joined."""

    checkpoint: Path | None
    """The checkpoint, or the file of weights, that its parameters were read from; None for baselines."""

    @property
    def width(self) -> int:
        """Width d of the features."""
        return width_of(self.backbone)

    def digest(self) -> str:
        """A hash of the architecture and of every parameter and buffer, which reveals any change of the backbone, also
        of a user's own (`own_backbone`), and of the code of own parts of the view, which prints alike after an edit."""
        return digest_of(self.backbone, [*own_backbone(self.run.encoders, self.backbone), *own_code(self.view)])


@usual_torch()
def load(run_folder: Path | str, network: int | None = None) -> FrozenEncoder:
    """The encoder of a run's newest checkpoint, on the CPU. Nothing in the folder is executed. In place of the folder,
    `torchvision:NAME=FILE` or `timm:NAME=FILE` names weights from elsewhere.

    If the run has a network per view, the encoder is all of them, their features joined, or only number `network`. The
    view follows the run: its side is that of the random crops, and pixels are normalized as in training. At a side of
    up to 96 pixels, whole images are seen; at a larger one, images are resized to 8/7 of it and cropped to their center
    (224 of 256). For another view: `dataclasses.replace(encoder, view=...)`.

    Raises `UserError` if there is no checkpoint, if it is damaged or altered, or if it does not fit the settings.
    """
    expect(run_folder, Path | str, "the folder", "that of a run, such as 'runs/first'")
    weights = outside_weights(run_folder)
    if weights is not None:
        run = weights.run()
        networks = _build(run.encoders, run.seed)
        weights.fill(networks)
        return _frozen(run, networks, network, weights.name, weights.file)
    run_folder = Path(run_folder)
    run = settings.read(run_folder)
    latest = checkpoint.newest(run_folder)
    checkpoint.check_fits(latest, run.encoders.build, _NETWORKS)
    networks = _build(run.encoders, run.seed)
    checkpoint.load_network(latest, networks, _NETWORKS)
    return _frozen(run, networks, network, run.recipe, latest)


@usual_torch()
def random_encoder(run: Run, seed: int = 0, network: int | None = None) -> FrozenEncoder:
    """The baseline of the same architecture and view, freshly initialized from `seed`. The difference from it shows
    what training added."""
    expect(run, Run, "the run", "a value, such as vantage.moco_v2()")
    return _frozen(run, _build(run.encoders, seed), network, RANDOM_ENCODER, None)


def raw_pixels(run: Run, network: int | None = None) -> FrozenEncoder:
    """The baseline without an encoder: the normalized pixels of the same view, averaged down to 32 x 32 if there
    are more."""
    view = evaluation_view(run, network)
    return FrozenEncoder(Pixels(view.size, len(view.channels)).eval(), view, RAW_PIXELS, run, None, None)


def digest_of(module: nn.Module, facts: Iterable[str] = ()) -> str:
    """A hash of a module's printed architecture, of further facts about it, and of name, type, shape and bytes of every
    parameter and buffer."""
    digest = hashlib.sha256(repr(module).encode())
    for fact in facts:
        digest.update(f"\n{fact}\n".encode("utf-8", "surrogateescape"))
    for name, tensor in module.state_dict().items():
        digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def _frozen(run: Run, networks: RoleNetworks, network: int | None, name: str, file: Path | None) -> FrozenEncoder:
    backbone = backbone_of(run, networks, network).eval().requires_grad_(False)
    choice = None if isinstance(backbone, Joined) else _choice(run.encoders, network or 0)
    return FrozenEncoder(backbone, evaluation_view(run, network), name, run, choice, file)


def _build(role: Role, seed: int) -> RoleNetworks:
    with draws.torch_seed(seed):
        return role.build()


def _choice(role: Role, network: int) -> Backbone | None:
    match role:
        case PerView(encoders):
            return encoders[network].backbone
        case Shared(Encoder() as encoder) | Momentum(Encoder() as encoder):
            return encoder.backbone
        case _:  # a user's own role
            return None


class Pixels(nn.Module):
    """Pixels as features: the backbone of the baseline without an encoder."""

    def __init__(self, size: int, channels: int = 3, most: int = 32) -> None:
        """For images of `size` by `size` pixels, averaged down to `most` by `most` if they are larger."""
        super().__init__()
        self.side = min(size, most)
        self.width = channels * self.side**2

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
        """Pixels of each image, channel by channel."""
        return F.adaptive_avg_pool2d(images, self.side).flatten(1)

    def extra_repr(self) -> str:
        """The side, which is part of the digest."""
        return f"side={self.side}"
