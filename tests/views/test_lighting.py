"""Lighting: against the published loop, and its spread."""

import numpy as np
import pytest
import torch

from vantage.errors import UserError
from vantage.views import Lighting

EIGENVALUES = [0.2175, 0.0188, 0.0045]
EIGENVECTORS = [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]


def test_each_channel_gets_the_sum_over_the_components() -> None:
    alpha = torch.randn(5, 3, generator=torch.Generator().manual_seed(1)).double().numpy() * 0.1
    draws = Lighting(0.1).draw(5, torch.Generator().manual_seed(1))
    for image in range(5):
        for channel in range(3):
            shift = sum(EIGENVECTORS[channel][k] * alpha[image, k] * EIGENVALUES[k] for k in range(3))
            assert float(draws[image, channel]) == pytest.approx(shift, abs=1e-7)
    images = torch.rand(5, 3, 4, 6)
    torch.testing.assert_close(Lighting().apply(images, draws) - images, draws[:, :, None, None].expand(-1, -1, 4, 6))


def test_the_spread_is_that_of_the_components() -> None:
    draws = Lighting(0.1).draw(100_000, torch.Generator().manual_seed(0)).double().numpy()
    directions = np.array(EIGENVECTORS)
    expected = directions @ np.diag(np.square(EIGENVALUES)) @ directions.T * 0.01
    np.testing.assert_allclose(np.cov(draws.T), expected, atol=2e-6)


def test_no_strength_changes_nothing_and_less_is_refused() -> None:
    assert not Lighting(0.0).draw(4, torch.Generator().manual_seed(0)).any()
    with pytest.raises(UserError, match="strength must be at least 0"):
        Lighting(-1.0)
