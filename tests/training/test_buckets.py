"""How gradients are laid out while processes add them up."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from vantage.training.computing.buckets import lay_out


@pytest.mark.parametrize(("channels", "kernel"), [(1, 3), (4, 1), (4, 3)])
def test_gradients_have_the_order_of_their_weights(channels: int, kernel: int, tmp_path: Path) -> None:
    """Torch warns of any other, which is an error here, and would copy each gradient in every step."""
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    try:
        network = nn.Conv2d(channels, 8, kernel).to(memory_format=torch.channels_last)  # pyright: ignore
        lay_out(DistributedDataParallel(network, gradient_as_bucket_view=True))
    finally:
        dist.destroy_process_group()
    for weight in network.parameters():
        assert weight.grad is not None and weight.grad.stride() == weight.stride() and not weight.grad.any()
