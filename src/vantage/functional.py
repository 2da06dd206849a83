"""The losses as plain functions of tensors, for a training loop of your own.

Each compares the rows of `z1` with the rows of `z2`: row i of both shows the same image. Rows are normalized here, so
they need not have unit length. Gradients reach every tensor that requires one. Half-precision rows are converted to
float32, and autocast does not apply here.

* Without `negatives`, both views of the other images in the batch are the negatives, and the loss is the mean of both
  directions: SimCLR's NT-Xent.
* With `negatives` (such as a queue) the rows of `z1` are the queries, those of `z2` their positives, and only the rows
  of `negatives` are negatives: MoCo.

A batch of one image without `negatives` raises `UserError`, and so do rows that do not fit together: in number, width,
precision (float64 and others) or device. So does a temperature that requires a gradient, which would be wrong.

b: images   k: keys of an image   m: negatives   d: width
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from vantage.branch import Branch
from vantage.composition.field_types import expect
from vantage.cosines import full
from vantage.errors import UserError
from vantage.estimators import HCL, JCL, Debiased, Estimator, InfoNCE, TableEstimator
from vantage.memory import InBatch
from vantage.negatives import OtherImages, Ring, Rule
from vantage.positives import FixedViews, OtherViews, Positives
from vantage.records import Keys
from vantage.schedules import Constant

__all__ = ["debiased", "hcl", "info_nce", "jcl", "margin", "ring"]

_AXES = {
    "z1": ("images", "width"),
    "z2": ("images", "width"),
    "keys": ("images", "keys", "width"),
    "negatives": ("negatives", "width"),
}


def info_nce(
    z1: Float[Tensor, "b d"],
    z2: Float[Tensor, "b d"],
    temperature: float = 0.2,
    negatives: Float[Tensor, "m d"] | None = None,
) -> Float[Tensor, ""]:
    """InfoNCE (van den Oord et al., arXiv 1807.03748): log( e^(a/τ) + Σ e^(b/τ) ) − a/τ; see `vantage.InfoNCE`.

    >>> z1, z2 = torch.eye(4), torch.eye(4)
    >>> round(info_nce(z1, z2, temperature=1.0).item(), 4)  # log(e + 6) - 1: six rows of other images
    1.1654
    >>> queue = torch.eye(4)[:1]
    >>> round(info_nce(z1[1:], z2[1:], temperature=1.0, negatives=queue).item(), 4)  # log(e + 1) - 1
    0.3133
    """
    return _of_two_views(z1, z2, InfoNCE(temperature), negatives)


def margin(
    z1: Float[Tensor, "b d"],
    z2: Float[Tensor, "b d"],
    temperature: float = 0.1,
    margin: float = -0.5,
    negatives: Float[Tensor, "m d"] | None = None,
) -> Float[Tensor, ""]:
    """MarginNCE (InterCLR, Xie et al., arXiv 2008.11702, Eq. 5): InfoNCE with a − m in place of a. m > 0 demands more
    of the positive; m < 0, as in InterCLR's contrast between images, demands less.

    >>> z1, z2 = torch.eye(4), torch.eye(4)
    >>> round(margin(z1, z2, temperature=1.0, margin=1.0).item(), 4)  # log(1 + 6)
    1.9459
    """
    return _of_two_views(z1, z2, InfoNCE(temperature, margin), negatives)


def ring(
    z1: Float[Tensor, "b d"],
    z2: Float[Tensor, "b d"],
    temperature: float = 0.07,
    keep: float = 0.1,
    drop: float = 0.1,
    negatives: Float[Tensor, "m d"] | None = None,
) -> Float[Tensor, ""]:
    """InfoNCE against a ring of the negatives (Wu et al., arXiv 2010.02037): of a query's n negatives, the ⌊keep · n⌋
    most similar without the ⌊drop · ⌊keep · n⌋⌋ most similar of these, but at least one.

    >>> z1, z2 = torch.eye(4), torch.eye(4)
    >>> round(ring(z1, z2, temperature=1.0, keep=0.5).item(), 4)  # log(e + 3) - 1
    0.7437
    """
    return _of_two_views(z1, z2, InfoNCE(temperature), negatives, (Ring(Constant(keep), Constant(drop)),))


def debiased(
    z1: Float[Tensor, "b d"],
    z2: Float[Tensor, "b d"],
    temperature: float = 0.5,
    prior: float = 0.1,
    negatives: Float[Tensor, "m d"] | None = None,
) -> Float[Tensor, ""]:
    """The debiased contrastive loss (Chuang et al., arXiv 2007.00224); see `vantage.Debiased`. `prior` is τ⁺, the share
    of negatives that are of the query's own class; with 0 the loss is `info_nce`.

    >>> z1, z2 = torch.eye(4), torch.eye(4)
    >>> round(debiased(z1, z2, temperature=1.0, prior=0.1).item(), 4)  # log(e + (6 - .6 e) / .9) - 1
    1.0246
    """
    return _of_two_views(z1, z2, Debiased(temperature, prior), negatives)


def hcl(
    z1: Float[Tensor, "b d"],
    z2: Float[Tensor, "b d"],
    temperature: float = 0.5,
    hardness: float = 1.0,
    prior: float = 0.1,
    negatives: Float[Tensor, "m d"] | None = None,
) -> Float[Tensor, ""]:
    """Hard-negative weighting (Robinson et al., arXiv 2010.04592); see `vantage.HCL`. `hardness` is β: the larger it
    is, the more the hard negatives count; with 0 the loss is `debiased`.

    >>> z1, z2 = torch.eye(4), torch.eye(4)
    >>> round(hcl(z1, z2, temperature=1.0).item(), 4)  # all negatives are alike
    1.0246
    """
    return _of_two_views(z1, z2, HCL(temperature, hardness, prior), negatives)


def jcl(
    z1: Float[Tensor, "b d"],
    keys: Float[Tensor, "b k d"],
    temperature: float = 0.2,
    strength: float = 4.0,
    negatives: Float[Tensor, "m d"] | None = None,
) -> Float[Tensor, ""]:
    """JCL (Cai et al., arXiv 2009.14776, Eq. 8) for several keys of each image; see `vantage.JCL`. `strength` is λ, how
    much the spread of the keys counts.

    As in the paper, keys get no gradient as positives, and there is only one direction. Without `negatives`, the
    queries and keys of other images are the negatives. `negatives` of length 1 or less are used as they are: JCL's
    queue holds mean keys, which are shorter than 1. Longer ones are normalized.

    >>> z1, keys = torch.eye(4), torch.eye(4)[:, None].expand(4, 2, 4)
    >>> round(jcl(z1, keys, temperature=1.0).item(), 4)  # log(e + 9) - 1: equal keys have no spread
    1.4612
    """
    _check_shapes({"z1": z1, "keys": keys, "negatives": negatives})
    if negatives is not None:
        negatives = full(negatives)
        negatives = negatives / negatives.norm(dim=1, keepdim=True).clamp(min=1.0)
    return _loss(z1, keys, JCL(temperature, Constant(strength)), negatives, (), FixedViews())


def _of_two_views(
    z1: Float[Tensor, "b d"],
    z2: Float[Tensor, "b d"],
    estimator: Estimator | TableEstimator,
    negatives: Float[Tensor, "m d"] | None,
    rules: tuple[Rule, ...] = (),
) -> Float[Tensor, ""]:
    """One direction against negatives from outside, or the mean of both directions within the batch."""
    _check_shapes({"z1": z1, "z2": z2, "negatives": negatives})
    if negatives is not None:
        return _loss(z1, z2[:, None], estimator, normalize(full(negatives), dim=1), rules, OtherViews())
    first = _loss(z1, z2[:, None], estimator, None, rules, OtherViews())
    return (first + _loss(z2, z1[:, None], estimator, None, rules, OtherViews())) / 2


def _loss(
    query: Float[Tensor, "b d"],
    keys: Float[Tensor, "b k d"],
    estimator: Estimator | TableEstimator,
    negatives: Float[Tensor, "m d"] | None,
    rules: tuple[Rule, ...],
    positives: Positives,
) -> Float[Tensor, ""]:
    """The mean loss of one branch; the rows of `negatives` are used as they are."""
    image = torch.arange(len(query), device=query.device)
    query, keys = normalize(full(query), dim=1), normalize(full(keys), dim=2)
    if negatives is None:
        if len(query) < 2:
            found = "a batch of one image" if len(query) else "an empty batch"
            raise UserError(f"{found} has no negatives: give more images, or negatives")
        pool = Keys(torch.cat([query, keys.flatten(0, 1)]), torch.cat([image, image.repeat_interleave(keys.shape[1])]))
        rules = (OtherImages(), *rules)
    else:
        pool = Keys(negatives, image.new_full((len(negatives),), -1))
    branch = Branch(InBatch(), positives, rules, estimator, keys=tuple(range(1, 1 + keys.shape[1])))
    views = tuple(Keys(key, image) for key in keys.unbind(1))
    return branch.contrast(Keys(query, image), views, pool, 0).loss


def _check_shapes(rows: dict[str, Float[Tensor, "..."] | None]) -> None:
    """Raises `UserError` unless all tensors have their axes, and as many images and the same width as `z1`."""
    for name, value in rows.items():
        expect(value, Tensor | None, name, "a tensor")
    queries = rows["z1"]
    assert queries is not None
    if queries.is_meta:  # others on it are refused below
        raise UserError("z1 is on the meta device, which holds no numbers: give vectors on another device")
    for name, each in rows.items():
        if each is None:
            continue
        axes, shape = _AXES[name], tuple(each.shape)
        if len(shape) != len(axes):
            hint = "; one key for each image is keys[:, None]" if "keys" in axes else ""
            raise UserError(f"{name} has the shape {shape}: give ({', '.join(axes)}){hint}")
        if 0 in shape[1:]:
            raise UserError(f"{name} has the shape {shape}: give ({', '.join(axes)}), none of them 0")
        if axes[0] == "images" and shape[0] != len(queries):
            found = f"z1 has {len(queries):,} rows, {name} has {shape[0]:,}"
            raise UserError(f"{found}: row i of both shows the same image, so give equally many")
        if shape[-1] != queries.shape[-1]:
            found = f"the rows of z1 have {queries.shape[-1]:,} numbers, those of {name} {shape[-1]:,}"
            raise UserError(f"{found}: give vectors of the same width")
        if (each.dtype == torch.float64) != (queries.dtype == torch.float64) or each.device != queries.device:
            found = f"z1 is {_kind(queries)}, {name} is {_kind(each)}"
            raise UserError(f"{found}: give all in one precision, on one device")


def _kind(rows: Float[Tensor, "..."]) -> str:
    return f"{str(rows.dtype).removeprefix('torch.')} on {rows.device}"
