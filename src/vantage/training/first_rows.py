"""First rows of banks that start with the features of the untrained network."""

import torch

from vantage import processes
from vantage.data import Source
from vantage.encoders import EncoderNetwork, PerView
from vantage.encoding import Work, encode_all, in_evaluation
from vantage.learner import Learner
from vantage.progress import Progress
from vantage.training.backbone import evaluation_view
from vantage.training.run import Run

__all__ = ["begin"]


def begin(learner: Learner, run: Run, source: Source, progress: Progress) -> None:
    """Fill every store that waits for first rows with the unit vectors of all images, before the first step.

    As in InterCLR's release: backbone and head in evaluation mode, images as in evaluation (`evaluation_view`). The
    first process encodes and shares the rows with the others, so that all hold the same.
    """
    for number, branch in enumerate(run.branches):
        store = learner.store(number)
        if not store.waits:
            continue
        which = branch.pooled[0] if isinstance(run.encoders, PerView) else 0
        network = learner.networks.encoders[which]
        assert isinstance(network, EncoderNetwork)
        view = evaluation_view(run, which if isinstance(run.encoders, PerView) else None)
        device = next(network.parameters()).device
        rows = torch.zeros(len(source), network.width)
        if processes.rank() == 0:
            with in_evaluation(network):
                work = Work(device=str(device), num_workers=max(1, run.data.num_workers), progress=progress)
                rows = encode_all(network, view, source, work, "the untrained network")
        store.begin(processes.total(rows.to(device)))
