"""How well scores rank the images of a class before the others.

n: images   t: distinct scores
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from vantage.errors import UserError

__all__ = ["average_precision"]


def average_precision(score: Float[Tensor, "n"], positive: Bool[Tensor, "n"]) -> float:
    """The area under precision over recall, with all points interpolated (PASCAL VOC from 2010 on, and released
    code for linear SVMs on VOC07): the precision at a recall is the best at this recall or a higher one.

    In [0, 1]. Never below scikit-learn's `average_precision_score`, which does not interpolate; equal to it if
    precision falls with recall. Images with equal scores are ranked together, so the order of images does not matter.
    Raises `UserError` if no image is positive, since recall is then undefined.
    """
    if not bool(positive.any()):
        raise UserError(f"average precision needs a positive image, but none of the {len(positive)} is")
    score, order = score.double().sort(descending=True)
    right = positive[order].double().cumsum(0)
    last = torch.cat([score[1:] != score[:-1], torch.ones(1, dtype=torch.bool, device=score.device)])
    rank = torch.arange(1, len(score) + 1, dtype=torch.float64, device=score.device)[last]
    right = right[last]
    best = (right / rank).flip(0).cummax(0).values.flip(0)
    return float((best * right.diff(prepend=right.new_zeros(1))).sum() / right[-1])
