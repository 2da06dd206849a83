"""JCL (Cai et al., arXiv 2009.14776; S: its supplement). Single runs, top-1 in percent unless said."""

# fmt: off

from dataclasses import replace

from vantage.studies.lab.entries import jcl_ablations
from vantage.studies.lab.entries.jcl_arms import ARMS, AT_EQUAL_COST, FLOORS, GATE, LINEAR
from vantage.studies.lab.entry import Claim, Entry, Reason, paper
from vantage.studies.lab.judging.predicates import Above, Beats, Order, Predicate
from vantage.studies.lab.judging.shapes import Gains
from vantage.studies.lab.measures.mosaics import MIOU, MosaicSegmentation, frozen_arms
from vantage.studies.lab.measures.top_five import TOP_FIVE
from vantage.studies.lab.panel import Panel

__all__ = ["ENTRIES"]

KNN, ALIKE = "knn", "similarity"
_QUOTED = ("rows of other papers' networks: claim 1 has MoCo v2; claims a of interclr-table-1 and infomin-table-1"
    " compare NPID, LA, CMC, MoCo and SimCLR with InterCLR and InfoMin")
_NOT_CONTRASTIVE = "Vantage has no recipes of methods that are not contrastive"
_COCO = "150 photographs of COCO are here, which cannot rank features"
_OTHERS = ("RelativePosition", "Jigsaw", "Rotation", "Colorization", "DeepCluster", "BigBiGAN")
_CONTRASTIVE = ("InstDisc", "LocalAgg", "CPC v1", "CPC v2", "CMC", "SimCLR", "MoCo", "MoCo v2")

_ROWS = paper(
    "top-1 / top-5",
    ("RelativePosition", 51.4, 74.0),
    ("Jigsaw", 44.6, 68.0),
    ("Rotation", 55.4, 77.9),
    ("Colorization", 39.6, None),
    ("DeepCluster", 48.4, None),
    ("BigBiGAN", 61.3, 81.9),
    ("InstDisc", 54.0, None),
    ("LocalAgg", 60.2, None),
    ("CPC v1", 48.7, 73.6),
    ("CPC v2", 63.8, 85.3),
    ("CMC", 64.0, 85.5),
    ("SimCLR", 66.6, None),
    ("MoCo", 60.6, 83.1),
)
_NAMES = tuple(cell.name for cell in ARMS)
_SCALE = Reason("the loss itself: on one GPU, with a larger network and ten times the epochs, the claim is supported",
    ruled_out=True)
_LENGTH = Reason("the loss itself: after longer training, overnight and on one GPU, the claim is supported",
    ruled_out=True)
_SHORT = (
    "arms see equally many images, of which JCL encodes three times as many views, at twice the cost (claim e); the"
    " paper's runs see 256 million images at 224 px: accuracies here say nothing about its scale"
)


def _each(first: str, *others: str) -> tuple[Predicate, ...]:
    return tuple(Beats(first, other) for other in others)


TABLE_1 = Entry(
    "jcl-table-1",
    "JCL",
    "Table 1",
    "linear classification of ImageNet on frozen features, by method",
    cells=(*_ROWS, *FLOORS, *ARMS, AT_EQUAL_COST),
    claims=(
        Claim("1", "JCL is above MoCo v2", "§4.2", _each("JCL", "MoCo v2"), ("top-1",), LINEAR, True),
        Claim("2", "JCL is above MoCo v2 by top-5", "§4.2", _each("JCL", "MoCo v2"), ("top-5",), TOP_FIVE, True),
        Claim("3", "JCL is above every other method", "§4.2", _each("JCL", *_CONTRASTIVE, *_OTHERS), ("top-1",),
            note=_QUOTED),
        Claim("4", "JCL is above every method that is not contrastive", "§4.2", _each("JCL", *_OTHERS),
            ("top-1", "top-5"), note=_NOT_CONTRASTIVE),
        Claim("5", "every contrastive method is above every method that is not", "§4.2, for JCL only",
            tuple(Beats(one, other) for one in (*_CONTRASTIVE, "JCL") for other in _OTHERS), ("top-1",),
            note=_NOT_CONTRASTIVE),
        Claim("6", "MoCo v2 is above MoCo", "§4.2", _each("MoCo v2", "MoCo"), ("top-1", "top-5"),
            note="MoCo v1 is not among these cells: claim c of infomin-table-6 asks this"),
        Claim("a", "JCL is above MoCo v2 by nearest neighbors", "ours", _each("JCL", "MoCo v2"), (), KNN, True),
        Claim("b", "the variance term helps: JCL is above λ 0", "ours", _each("JCL", "JCL, λ 0"), (), LINEAR, True,
            part_of="claim 3 of jcl-figure-2b", reasons=(
                Reason("in so short a branch the variance term holds images together: JCL's vectors are less uniform"
                    " than those of λ 0", Beats("JCL", "JCL, λ 0"), "uniformity"),
                _SCALE,
            )),
        Claim("c", "the mean key helps: λ 0 is above MoCo v2", "ours", _each("JCL, λ 0", "MoCo v2"), (), LINEAR, True),
        Claim("d", "JCL is above InfoNCE's mean over the same five keys", "ours", _each("JCL", "five keys, Eq. 3"),
            (), LINEAR, True),
        Claim("e", "at equal cost, with half the images, JCL is above MoCo v2", "ours",
            _each("JCL", AT_EQUAL_COST.name), (), LINEAR, True),
    ),
    commands=(
        "vantage pretrain jcl --data IMAGENET#train --size 224 --batch-size 512 --epochs 200 --out runs/jcl",
        "vantage pretrain moco_v2 --data IMAGENET#train --size 224 --epochs 200 --out runs/moco_v2",
        *(f"vantage evaluate linear-moco runs/{recipe} --data IMAGENET#train --test IMAGENET#val --learning-rates 30"
            for recipe in ("jcl", "moco_v2")),
    ),
    gate=GATE,
    scale=_SHORT,
    panels=(
        Panel(LINEAR, {"": ("base", *_NAMES, AT_EQUAL_COST.name)}, paper_columns=("top-1",),
            paper_label="ImageNet, ResNet-50, top-1 (%)"),
        Panel(KNN, {"": ("base", *_NAMES, AT_EQUAL_COST.name)}),
    ),
)

_DETECTION = paper(
    "box / box 50 / box 75 / mask / mask 50 / mask 75 / keypoint / keypoint 50 / keypoint 75",
    ("random", 30.1, 48.6, 31.9, 28.5, 46.8, 30.4, 63.5, 85.3, 69.3),
    ("supervised", 38.2, 59.1, 41.5, 35.4, 56.5, 38.1, 65.4, 87.0, 71.0),
    ("MoCo", 37.1, 57.4, 40.2, 35.1, 55.9, 37.7, 65.6, 87.1, 71.3),
    ("MoCo v2", 37.6, 57.9, 40.8, 35.3, 55.9, 37.9, 66.0, 87.2, 71.4),
    ("JCL", 38.1, 58.3, 41.3, 35.6, 56.2, 38.3, 66.2, 87.2, 72.3),
)
_COLUMNS = tuple(_DETECTION[0].paper)
_FROZEN = {"random": FLOORS[1], "MoCo v2": ARMS[0], "JCL": ARMS[1]}
"""The arms of table 1 by the rows of table 2."""

TABLE_2 = Entry(
    "jcl-table-2",
    "JCL",
    "Table 2",
    "detection, instances and keypoints of COCO, 1× schedule, by pretraining",
    cells=tuple(replace(cell, experiment=_FROZEN[cell.name].experiment, measures=(MosaicSegmentation(),))
        if cell.name in _FROZEN else cell for cell in _DETECTION),
    claims=(
        Claim("1", "every pretraining is above no pretraining", "§4.3",
            tuple(Beats(name, "random") for name in ("MoCo", "MoCo v2", "JCL")), _COLUMNS,
            note=f"{_COCO}: claim a asks this of mosaics"),
        Claim("2", "JCL is above MoCo v2", "§4.3", _each("JCL", "MoCo v2"), _COLUMNS,
            note=f"{_COCO}: claim b asks this of mosaics"),
        Claim("3", "the gain at IoU .75 is larger than at .5", "§4.3",
            (Gains(("JCL @ box 75", "MoCo v2 @ box 75"), ("JCL @ box 50", "MoCo v2 @ box 50")),), ("box",),
            note=f"{_COCO}; a mosaic has pixels instead of boxes"),
        Claim("4", "masks: JCL is above supervised, supervised above MoCo v2", "§4.3",
            (Order(("MoCo v2", "supervised", "JCL")),), ("mask",),
            note=f"{_COCO}, and no network is trained with labels: claim b asks of mosaics about JCL and MoCo v2"),
        Claim("5", "random, MoCo, MoCo v2, JCL: each is above the one before", "numbers",
            (Order(("random", "MoCo", "MoCo v2", "JCL")),), ("box", "mask", "keypoint"),
            note=f"{_COCO}: claims a and b ask this of mosaics, without MoCo"),
        Claim("a", "every pretraining here is above no pretraining: mean IoU of a decoder for mosaics",
            "§4.3, for mosaics", (*_each("MoCo v2", "random"), *_each("JCL", "random")), (), MIOU, stand_in=True),
        Claim("b", "JCL is above MoCo v2: mean IoU of that decoder", "§4.3, for mosaics", _each("JCL", "MoCo v2"), (),
            MIOU, stand_in=True),
    ),
    commands=tuple(f"vantage export runs/{recipe} --to detectron2 --out detectron2/{recipe}"
        for recipe in ("jcl", "moco_v2", "moco_v1")),
    scale=f"{frozen_arms()}; 150 photographs of COCO cannot rank features, and the differences are .2 to .5 AP",
    panels=(Panel(MIOU, {"": tuple(_FROZEN)}, paper_columns=("mask",), paper_label="COCO, AP of masks"),),
)

_SPREAD = (
    Reason("at the start all images are alike; early in training they are still being spread apart, and JCL has spread"
        " them further", Beats("MoCo v2", "JCL"), "uniformity"),
    Reason("collapse: JCL tells images apart better", Beats("JCL", "MoCo v2"), "within − between", True),
    Reason("the variance term: it makes augmentations more alike than λ 0 does", Beats("JCL", "JCL, λ 0"), ALIKE, True),
    _LENGTH,
)
_DEEP = tuple(f"JCL @ similarity, {tenth}" for tenth in ("10 %", "50 %", "90 %"))

FIGURE_3 = Entry(
    "jcl-figure-3",
    "JCL",
    "Figures 3a and 3b",
    "how alike 32 augmentations of an image are",
    cells=(FLOORS[1], *ARMS),
    claims=(
        Claim("3a.1", "JCL's similarity is above MoCo v2's", "§4.5", _each("JCL", "MoCo v2"), (), ALIKE,
            note="similarity is highest before training (claim c)", reasons=_SPREAD),
        Claim("3a.2", "the 10, 50 and 90 % quantiles of JCL's similarity are above MoCo v2's", "figure",
            tuple(Beats(term, term.replace("JCL", "MoCo v2")) for term in _DEEP), (), ALIKE, reasons=_SPREAD),
        Claim("3b.1", "JCL's variance is below MoCo v2's", "§4.5", _each("MoCo v2", "JCL"), (), "variance",
            note="for unit vectors (1 − similarity)/128: claim 3a.1 again", reasons=_SPREAD, part_of="claim 3a.1"),
        Claim("3b.2", "the quantiles of the variance of JCL's augmentations are below MoCo v2's", "figure", (),
            note="the quantiles of claim 3a.2, since variance is (1 − similarity)/128"),
        Claim("a", "JCL separates images better: within − between", "ours", _each("JCL", "MoCo v2"), (),
            "within − between", note="similarity also rises when a network collapses"),
        Claim("b", "the variance term does it: λ 4 is above λ 0", "ours", _each("JCL", "JCL, λ 0"), (), ALIKE),
        Claim("c", "a random encoder's similarity is above JCL's", "ours", _each("random encoder", "JCL"), (), ALIKE,
            note="so similarity by itself says nothing about quality"),
    ),
    commands=("vantage analyse similarity runs/jcl runs/moco_v2 --data IMAGENET100#train",),
    scale="16 augmentations of 512 test images; the head's 128 outputs",
    panels=(
        Panel(ALIKE, {name: {f"{name} @ similarity, {tenth} %": tenth for tenth in (10, 50, 90)} for name in _NAMES},
            "quantile over images (%)", y_label="similarity of augmentations"),
        Panel("variance", {"": _NAMES}, y_label="variance of augmentations"),
        Panel("within − between", {"": _NAMES}, y_label="within − between images"),
    ),
)

_VARY = "error of the mean key, M′ 1"

SECTION_3 = Entry(
    "jcl-section-3",
    "JCL",
    "§3.3",
    "the bound: InfoNCE's mean over infinitely many Gaussian keys is at most L(λ = 1)",
    cells=(FLOORS[1], *ARMS[:2]),
    claims=(
        Claim("1", "the bound holds and is not tight, on average over images", "Eq. 7",
            (Above("JCL @ gap of the bound", 0.0), Above("MoCo v2 @ gap of the bound", 0.0)), (), "gap of the bound",
            note="a theorem: this tests how it is computed"),
        Claim("2", "training with JCL makes the gap smaller than it was before", "§3.3",
            (Beats("random encoder", "JCL"),), (), "gap of the bound",
            note="before any training all keys are nearly equal",
            reasons=(
                Reason("the gap grows with the variance of an image's keys, and training makes them vary",
                    Beats("JCL", "random encoder"), _VARY),
                Reason("the length of training: the result is the same at all three scales", ruled_out=True),
            )),
        Claim("a", "JCL's gap is below MoCo v2's", "ours", (Beats("MoCo v2", "JCL"),), (), "gap of the bound",
            reasons=(Reason("JCL's keys vary more at this length of training", Beats("JCL", "MoCo v2"), _VARY),
                _LENGTH)),
        Claim("3", "at the same memory JCL is above five keys", "S §2", (),
            note="with a momentum encoder no gradient reaches the keys in either, so both need the same memory: claim d"
            " of jcl-table-1 compares them"),
    ),
    scale="Gaussian keys with the mean and covariance of 32 augmentations of 256 test images; negatives are the mean"
    " keys of the other images; τ .2",
    panels=(
        Panel("gap of the bound", {"": ("random encoder", "MoCo v2", "JCL")}, y_label="gap of the bound (nats)",
            log=True),
    ),
)

ENTRIES = (TABLE_1, TABLE_2, *jcl_ablations.ENTRIES, FIGURE_3, SECTION_3)
"""JCL's tables and figures, in the paper's order."""
