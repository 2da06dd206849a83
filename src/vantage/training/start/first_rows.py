"""Vectors of images before the first step, for memories that start from them."""

import torch
from torch import nn

from vantage import draws
from vantage.branch import Branch
from vantage.data import Source, SourceSubset
from vantage.encoders import EncoderNetwork, PerView, RoleNetworks
from vantage.encoders.backbones.resnet import width_of
from vantage.encoders.modes import in_evaluation
from vantage.encoding import Work, encode_batches
from vantage.learner import Learner
from vantage.progress import Progress
from vantage.records import Keys
from vantage.training.backbone import evaluation_view
from vantage.training.run import Run

__all__ = ["begin", "fill", "key_encoder"]


def begin(learner: Learner, run: Run, source: Source, progress: Progress) -> None:
    """Fill every store that waits for first rows with the unit vectors of all images, before the first step."""
    for number in range(len(run.branches)):
        if learner.store(number).waits:
            fill(learner, run, number, source, progress, "the untrained network")


def fill(learner: Learner, run: Run, branch: int, source: Source, progress: Progress, name: str) -> None:
    """Give the store of a branch as many unit vectors of images as it has room for; `name` is shown with the progress.

    As in InterCLR's release, backbone and head are in evaluation mode, and images are seen as in evaluation
    (`evaluation_view`). A store with room for only some images gets random ones, in random order. The processes share
    the work. Each gets all rows, or its shard of them, bit for bit as on a single process.
    """
    store, choice = learner.store(branch), run.branches[branch]
    numbers = torch.arange(len(source))
    if store.room < len(source):
        seed = draws.mix(draws.Purpose.FIRST_ROWS, run.seed, branch)
        numbers = draws.permutation(len(source), seed)[: store.room]
    network = key_encoder(learner.networks, choice)
    view = evaluation_view(run, choice.pool_views[0] if isinstance(run.encoders, PerView) else 0)
    device = next(network.parameters()).device
    share = range(len(numbers))[store.share]
    rows = torch.empty(len(share), width_of(network))
    with in_evaluation(network):
        work = Work(device=str(device), num_workers=max(1, run.data.num_workers), progress=progress)
        for start, part in encode_batches(network, view, SourceSubset(source, numbers), work, name):
            first, last = max(start, share.start), min(start + len(part), share.stop)
            if first < last:
                rows[first - share.start : last - share.start] = part[first - start : last - start]
    store.begin(Keys(rows.to(device), numbers[store.share].to(device)))


def key_encoder(networks: RoleNetworks, branch: Branch) -> EncoderNetwork:
    """The network that makes the keys that a branch remembers."""
    encoders: nn.ModuleList = networks.key_encoders
    network = encoders[branch.pool_views[0] if len(encoders) > 1 else 0]
    assert isinstance(network, EncoderNetwork)
    return network
