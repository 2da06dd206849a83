"""Networks with weights from elsewhere, named like runs: `torchvision:resnet18=FILE`, `timm:NAME=FILE`.

FILE holds safetensors, as `vantage.encoders.weights` reads them. Such a network was not trained here, but it is
given the form of a run (the backbone, no head, and the view in which its library evaluates it), so it can be used
wherever a run can.

* torchvision's residual networks: images are resized to 256 pixels, cropped to the middle 224, and normalized by
  ImageNet's statistics. This is how torchvision evaluates its first weights of each network, and how MoCo and JCL
  evaluate theirs.
* timm's models: images are cropped to the middle, with the size, the crop's share and the statistics that timm has for
  the name. They are resized bilinearly, while timm resizes bicubically for many models.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from vantage.composition.suggest import no_such
from vantage.encoders import BACKBONES, Backbone, Encoder, ResNet, RoleNetworks, Shared, Timm, backbone_named
from vantage.encoders.backbones.resnet import width_of
from vantage.encoders.weights import build_without_numbers, fit_weights
from vantage.errors import UserError
from vantage.recipes import simclr
from vantage.storage.strangers import check_run_folder
from vantage.training.run import Run
from vantage.views import IMAGENET, Statistics, Views, moco_v2_views
from vantage.views.evaluation import EvaluationView

__all__ = ["OutsideWeights", "home_of", "outside_weights"]

_LIBRARIES = ("torchvision", "timm")
_WORD = re.compile(rf"({'|'.join(_LIBRARIES)}):([^=]*)(=?)(.*)", re.DOTALL)


@dataclass(frozen=True)
class OutsideWeights:
    """A network of another library with weights from a file."""

    library: str
    """torchvision or timm."""

    network: str
    """The library's name for it."""

    file: Path
    """Its weights."""

    @property
    def name(self) -> str:
        """Its name in tables."""
        return f"{self.library}:{self.network} ({self.file.name})"

    def run(self) -> Run:
        """The network in the form of a run: its architecture, its evaluation view, and MoCo v2's augmentations for
        analyses that need some. Raises `UserError` if its library has no such network."""
        backbone = self._choice()
        width = width_of(build_without_numbers(backbone.build))
        view = self._view()
        views = SeenAs(moco_v2_views(view.size, statistics=view.statistics).views, view)
        encoders = Shared(Encoder(backbone, NoHead(width)))
        return replace(simclr(224), recipe=f"{self.library}:{self.network}={self.file}", views=views, encoders=encoders)

    def fill(self, networks: RoleNetworks) -> None:
        """Load the weights. Raises `UserError` if they do not fit, or if the file is not in safetensors."""
        fit_weights(networks.encoders[0].get_submodule("backbone"), self.file)

    def _choice(self) -> Backbone:
        if self.library == "timm":
            return Timm(self.network)
        choice = self._residual()
        if not isinstance(choice, ResNet):
            raise UserError(
                f"torchvision:{self.network} is not a residual network, the only kind that is taken from torchvision:"
                " name another network, or timm:NAME=FILE"
            )
        return choice

    def _residual(self) -> Backbone | None:
        """The backbone of this name; None for a network of torchvision that is none of ours."""
        from torchvision.models import list_models

        name, theirs = self.network.strip().lower().replace("-", "_"), list_models()
        if name.isidentifier() and name not in (*BACKBONES, *theirs):
            raise no_such(
                "backbone", self.network, (known for known in BACKBONES if known in theirs), "those of torchvision"
            )
        return None if name in theirs and name not in BACKBONES else backbone_named(self.network, 224)

    def _view(self) -> EvaluationView:
        if self.library == "torchvision":
            return EvaluationView(224, 256, IMAGENET)
        from timm.models import get_pretrained_cfg

        facts: Any = get_pretrained_cfg(self.network, allow_unregistered=True)
        if facts is None:
            return EvaluationView(224, 256, IMAGENET)
        size = facts.input_size[-1]
        return EvaluationView(size, int(size / facts.crop_pct), Statistics(tuple(facts.mean), tuple(facts.std)))


@dataclass(frozen=True)
class NoHead:
    """No head: vectors are the features themselves."""

    width: int
    """Width of the features."""

    def build(self, features: int) -> nn.Module:
        """The identity."""
        return nn.Identity()


@dataclass(frozen=True)
class SeenAs(Views):
    """Views with an evaluation view that is given, not derived from them."""

    seen: EvaluationView
    """How an image is seen in evaluation."""

    def evaluation(self, view: int | None = None) -> EvaluationView:
        """The given view."""
        return self.seen


def outside_weights(run: Path | str) -> OutsideWeights | None:
    """What `torchvision:NAME=FILE` or `timm:NAME=FILE` names; None for the folder of a run.

    Raises `UserError` for a name without a file.
    """
    match = _WORD.fullmatch(str(run))
    if Path(run).is_dir():
        return None
    if match is None:
        _refuse_other_library(str(run))
        return None
    library, network, _, file = match.groups()
    if not network or not file:
        raise UserError(f"{run} names no weights: write {library}:{network or 'resnet18'}=FILE, a safetensors file")
    return OutsideWeights(library, network, Path(file))


def _refuse_other_library(word: str) -> None:
    """Raises `UserError` for a word that is written like weights of another library."""
    library, colon, rest = word.partition(":")
    if colon and "=" in rest and library.isidentifier():
        raise no_such("library of weights", library, _LIBRARIES, "libraries")


def home_of(run: Path) -> Path:
    """The folder where results about a run are kept: the run's own or, for weights from elsewhere, one beside their
    file, with its name without the ending. Raises `UserError` if it is not safe to open (`check_run_folder`)."""
    weights = outside_weights(run)
    home = run if weights is None else weights.file.with_suffix("")
    check_run_folder(home)
    return home
