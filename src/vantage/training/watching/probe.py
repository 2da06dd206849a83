"""How good the backbone is so far, judged by labels of the training images: a check during training, not a result."""

import torch

from vantage.data import Source
from vantage.data.splits import hold_out_mask, with_labels
from vantage.encoders.modes import in_evaluation
from vantage.encoding import Work, encode_all
from vantage.errors import UserError
from vantage.learner import Learner
from vantage.machine.allocator import memory_of
from vantage.measures import accuracy, vote
from vantage.processes.sharing import gather_rows, own_slice
from vantage.training.backbone import backbone_of, evaluation_view
from vantage.training.run import Run

__all__ = ["check_labels", "knn_so_far"]

_SHARE = 0.1
_NEIGHBORS, _TEMPERATURE = 20, 0.07
_ROOM = 16  # a GPU whose memory the run fills is left no more than a sixteenth of it to find neighbors in


def check_labels(run: Run, source: Source) -> None:
    """Raises `UserError` if `knn_so_far` will run, but the images have no labels for it."""
    if not 0 < run.monitoring.knn_every <= run.epochs:
        return
    try:
        hold_out_mask(with_labels(source)[1], _SHARE, run.seed)
    except UserError as problem:
        every = run.monitoring.knn_every
        raise UserError(
            f"monitoring.knn_every is {every}, so training measures kNN accuracy: {problem}, or set it to 0"
        ) from problem


def knn_so_far(learner: Learner, run: Run, source: Source, device: torch.device) -> float:
    """kNN accuracy, in percent, of a tenth of each class of the training images against the others.

    The networks encode in evaluation mode and return to their previous mode. k is 20 and the temperature .07. The
    processes share the images and the votes, so all must call this, and all get the same number. The images were
    trained on (without their labels), so this compares epochs of a run; to compare encoders, use `vantage evaluate`.
    Raises `UserError` if the images have no labels.
    """
    part, label = with_labels(source)
    query = hold_out_mask(label, _SHARE, run.seed)
    backbone = backbone_of(run, learner.networks, None)
    work = Work(device=str(device), num_workers=max(1, run.data.num_workers))
    with in_evaluation(backbone):
        vector = encode_all(backbone, evaluation_view(run), part, work, run.recipe)
    classes, k = int(label.max()) + 1, min(_NEIGHBORS, int((~query).sum()))
    queries, place = vector[query], device if _ROOM * vector.nbytes <= memory_of(str(device)) else torch.device("cpu")
    own = queries[own_slice(len(queries))].to(place)
    guess = vote(vector[~query].to(place), label[~query].to(place), own, classes, k, _TEMPERATURE).cpu()
    return accuracy(gather_rows(guess, len(queries)), label[query], classes).top1
