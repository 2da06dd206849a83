"""InfoMin: MoCo on stronger views, and a jigsaw that is compared with the same key."""

from dataclasses import replace

from vantage.encoders import MLP, Encoder, JigsawHead, LinearHead, Momentum, SplitBatchNorm
from vantage.estimators import InfoNCE
from vantage.memory import StoreOf
from vantage.recipes.backbones import is_small
from vantage.recipes.moco import moco_v2
from vantage.schedules import Constant, CosineByEpoch
from vantage.training.run import Run
from vantage.views import WithJigsaw, infomin_views, pycontrast_jigsaw

__all__ = ["infomin", "infomin_linear", "infomin_no_jigsaw", "with_jigsaw_head"]


def infomin(size: int = 224) -> Run:
    """MoCo on stronger views, and a jigsaw.

    InfoMin Aug (Tian et al., arXiv 2005.10243, section 3.4 and appendix C, Tables 1 and 6): MoCo with an MLP head on
    RandAugment and strong jitter, with half the loss for a jigsaw of the image, τ .15.

    An image and its jigsaw share their positive, the momentum encoder's key of another view, and their 65,536
    negatives; only whole images are remembered. `infomin_linear` has the linear head. The learning rate ends at
    a thousandth of its peak.

    Up to 96 pixels: `moco_v2`'s network, queue, momentum and weight decay for small images.
    """
    return _run("infomin", size, with_jigsaw_head(size), 0.15)


def infomin_linear(size: int = 224) -> Run:
    """The same with linear heads.

    `infomin` with linear heads, for an image and for each of its patches, and with τ .07 to match (Tian et al., arXiv
    2005.10243, appendix C.2)."""
    return _run("infomin_linear", size, with_jigsaw_head(size, LinearHead(128)), 0.07)


def infomin_no_jigsaw(size: int = 224) -> Run:
    """infomin_linear without its jigsaw: "RA-CJ-Blur" of appendix C.3, which adds jigsaw and head one by one."""
    base = infomin_linear(size)
    role = base.encoders
    assert isinstance(role, Momentum)
    return replace(
        base,
        recipe="infomin_no_jigsaw",
        views=infomin_views(size),
        encoders=replace(role, encoder=replace(role.encoder, jigsaw=None)),
        branches=(replace(base.branches[0], weight=Constant(1.0)),),
    )


def _run(name: str, size: int, encoders: Momentum, temperature: float) -> Run:
    base = moco_v2(size)
    whole = replace(base.branches[0], estimator=InfoNCE(temperature), weight=Constant(0.5))
    return replace(
        base,
        recipe=name,
        views=WithJigsaw(infomin_views(size), pycontrast_jigsaw(size)),
        encoders=encoders,
        branches=(whole, replace(whole, memory=StoreOf(0), query=2)),
        learning_rate=CosineByEpoch(0.03, final=3e-5, first=1),
    )


def with_jigsaw_head(size: int, head: LinearHead | MLP | None = None) -> Momentum:
    """MoCo v2's momentum encoder, with a head for the patches of a jigsaw: `head` (MoCo v2's MLP if omitted) for each
    patch, and a linear layer for all patches together."""
    role = moco_v2(size).encoders
    assert isinstance(role, Momentum)
    head = head or MLP(512 if is_small(size) else 2048, 128)
    return replace(role, encoder=Encoder(role.encoder.backbone, head, SplitBatchNorm(8), JigsawHead(head)))
