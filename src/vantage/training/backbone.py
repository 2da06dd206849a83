"""The backbone of a run, and the view in which its images are evaluated."""

from dataclasses import replace

from torch import nn

from vantage.encoders.backbones.joint import Joined
from vantage.encoders.roles import PerView, RoleNetworks
from vantage.errors import UserError
from vantage.training.run import Run
from vantage.views.evaluation import EvaluationView

__all__ = ["backbone_of", "evaluation_view"]


def backbone_of(run: Run, networks: RoleNetworks, network: int | None) -> nn.Module:
    """The backbone of network `network`; if it is None, all backbones side by side, their features joined. A single
    network whose views are channels of an image sees each of these views, and its features of all views are joined.

    Raises `UserError` if there is no such network.
    """
    backbones = [network.get_submodule("backbone") for network in networks.encoders]
    if network is None:
        view_channels, views = evaluation_view(run).channels, len(backbones) if len(backbones) > 1 else run.views.count
        each = [run.views.evaluation(number).channels for number in range(views)]
        if len(backbones) > 1 or set(each) != {
            view_channels
        }:  # a single network sees the channels of one view after the other
            channels = [[view_channels.index(channel) for channel in some] for some in each]
            return Joined(backbones if len(backbones) > 1 else backbones * views, channels)
    if not 0 <= (network or 0) < len(backbones):
        choice = f"choose 0 to {len(backbones) - 1}" if len(backbones) > 1 else "leave --network out"
        raise UserError(f"network {network} was asked for, but the run trained {len(backbones)}: {choice}")
    return backbones[network or 0]


def evaluation_view(run: Run, network: int | None = None) -> EvaluationView:
    """The view in which a run's images are evaluated: by one of its networks, or by all of them.

    Raises `UserError` if the views do not define it, or if networks that are evaluated together see images differently.
    """
    if not hasattr(run.views, "evaluation"):
        raise UserError(
            f"{type(run.views).__name__} does not define how its images are seen in evaluation: give it a method"
            " evaluation(view=None) that returns an EvaluationView"
        )
    if network is not None or not isinstance(run.encoders, PerView):
        return run.views.evaluation(network)
    each = {run.views.evaluation(number) for number in range(len(run.encoders.encoders))}
    if len(each) == 1:
        return each.pop()
    whole = {replace(view, channels=run.views.evaluation().channels) for view in each}
    if len(whole) > 1:
        raise UserError("the networks of this run see images differently: choose one (--network 0)")
    return whole.pop()
