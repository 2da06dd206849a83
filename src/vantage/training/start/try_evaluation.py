"""Try the view in which a run will be evaluated, before its first step: a mistake there would show after training."""

import torch
from torch import Tensor

from vantage.encoders.roles import PerView, RoleNetworks
from vantage.errors import UserError, first_line, naming
from vantage.training.backbone import backbone_of, evaluation_view
from vantage.training.run import Run
from vantage.views.evaluation import EvaluationView, Straight

__all__ = ["try_evaluation"]


def try_evaluation(run: Run, networks: RoleNetworks, image: Tensor) -> None:
    """Raises `UserError` if the views do not say how an image is seen in evaluation, or if a network, in evaluation
    mode, refuses that view of it."""
    for number in range(len(networks.encoders)) if isinstance(run.encoders, PerView) else (None,):
        method = f"{type(run.views).__name__}.evaluation({'' if number is None else number})"
        with naming(f"{method} cannot be used"):
            view = evaluation_view(run, number)
            if not isinstance(view, EvaluationView | Straight):
                raise UserError(f"{method} returns a {type(view).__name__}: return a vantage.views.EvaluationView")
            backbone = backbone_of(run, networks, number)
            seen = view.finish(view.crop(image)[None])
        try:
            with torch.no_grad():
                backbone(seen)
        except Exception as problem:  # a user's network may raise anything
            channels, height, width = seen.shape[1:]
            raise UserError(
                f"the encoder does not fit the view of {method}, which has {channels} channels and {height} x {width}"
                f" pixels: return one that shows what the network is trained on ({first_line(problem)})"
            ) from problem
