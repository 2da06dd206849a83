"""Flows over colors: exact inverses, volumes, and what they can do to the information between channels."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from vantage.errors import UserError
from vantage.views.colors.flows import Flow, FlowNetwork, RealNVP, TwoSided, VolumePreserving

KINDS = [VolumePreserving(8, 2), TwoSided(8, 3), RealNVP(8, 3), RealNVP(8, 3, bound=0.7)]
every_kind = pytest.mark.parametrize("coupling", KINDS, ids=str)


def flow_network(coupling, couplings: int = 6, seed: int = 0) -> FlowNetwork:
    """A flow that does something: all parameters moved off their start."""
    torch.manual_seed(seed)
    network = Flow(coupling, couplings).build().double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return network


def images(count: int = 2, side: int = 5) -> Tensor:
    return torch.randn(count, 3, side, side, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@every_kind
def test_25_the_inverse_is_exact(coupling):
    network, pixels = flow_network(coupling), images()
    outputs, _ = network(pixels)
    assert (outputs - pixels).abs().max() > 0.1
    assert_close(network.inverse(outputs), pixels, rtol=0, atol=1e-12)


@every_kind
def test_25_the_volume_is_that_of_the_jacobian(coupling):
    """Sum over the pixels of log |det|, by the whole Jacobian of a small image."""
    network, pixels = flow_network(coupling), images(1, 2)
    jacobian = torch.autograd.functional.jacobian(lambda x: network(x.view(1, 3, 2, 2))[0].flatten(), pixels.flatten())
    assert_close(network(pixels)[1][0], torch.linalg.slogdet(jacobian).logabsdet, rtol=0, atol=1e-10)
    if not isinstance(coupling, RealNVP):
        assert not network(pixels)[1].any(), "these preserve the volume exactly"


@every_kind
def test_25_pixels_are_changed_one_by_one(coupling):
    network, pixels = flow_network(coupling), images()
    order = torch.randperm(25, generator=torch.Generator().manual_seed(2))
    moved_pixels = pixels.flatten(2)[:, :, order].view_as(pixels)
    expected = network(pixels)[0].flatten(2)[:, :, order].view_as(pixels)
    assert_close(network(moved_pixels)[0], expected, rtol=0, atol=1e-14)


@every_kind
def test_25_an_untrained_flow_gives_images_back(coupling):
    outputs, volume = Flow(coupling).build().double()(images())
    assert torch.equal(outputs, images()) and not volume.any()


def test_each_channel_is_the_single_one_in_turn():
    """With one coupling the first channel stays as it is; with two, neither may."""
    pixels = images()
    once, twice = (flow_network(VolumePreserving(8, 2), count)(pixels)[0] for count in (1, 2))
    assert torch.equal(once[:, 0], pixels[:, 0]) and not torch.equal(twice[:, 0], pixels[:, 0])


def information(covariance: Tensor) -> float:
    """I(Y₁; Y₂₃) of Gaussian channels, in nats."""
    joint = torch.linalg.det(covariance)
    return 0.5 * math.log(float(covariance[0, 0] * torch.linalg.det(covariance[1:, 1:]) / joint))


def test_26_a_linear_step_takes_all_information_between_gaussian_channels():
    """So volume-preserving flows can remove all that views share, which is why labels are needed."""
    torch.manual_seed(0)
    root = torch.randn(3, 3, dtype=torch.float64)
    covariance = root @ root.T + 0.1 * torch.eye(3, dtype=torch.float64)
    assert information(covariance) > 0.1
    shear = torch.eye(3, dtype=torch.float64)
    shear[1:, 0] = -covariance[1:, 0] / covariance[0, 0]
    flow = Flow(VolumePreserving(2, 2), couplings=1).build().double()
    function = flow.layers[0].to_two  # pyright: ignore
    with torch.no_grad():  # F(x) = slope · x, of two ReLUs
        first, last = function[0], function[2]  # pyright: ignore
        assert isinstance(first, nn.Conv2d) and isinstance(last, nn.Conv2d) and first.bias is not None
        first.weight.copy_(torch.tensor([1.0, -1.0], dtype=torch.float64).view(2, 1, 1, 1))
        first.bias.zero_()
        last.weight.copy_(torch.stack((shear[1:, 0], -shear[1:, 0]), 1)[:, :, None, None])
    pixels = (torch.linalg.cholesky(covariance) @ torch.randn(3, 4000, dtype=torch.float64)).view(1, 3, 50, 80)
    assert_close(flow(pixels)[0].flatten(2)[0], shear @ pixels.flatten(2)[0], rtol=0, atol=1e-12)
    after = shear @ covariance @ shear.T
    assert abs(information(after)) < 1e-12
    assert_close(torch.linalg.det(after), torch.linalg.det(covariance), rtol=1e-12, atol=0)


def test_26_maps_of_either_side_leave_information_alone():
    torch.manual_seed(3)
    root = torch.randn(3, 3, dtype=torch.float64)
    covariance = root @ root.T + 0.1 * torch.eye(3, dtype=torch.float64)
    apart = torch.block_diag(torch.tensor([[1.7]]), torch.randn(2, 2)).double()
    assert abs(information(apart @ covariance @ apart.T) - information(covariance)) < 1e-10


def test_senseless_settings_are_refused():
    for make in (lambda: Flow(couplings=0), lambda: VolumePreserving(0), lambda: RealNVP(8, 1)):
        with pytest.raises(UserError):
            make()
