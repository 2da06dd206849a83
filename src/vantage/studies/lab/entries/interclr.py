"""InterCLR (Xie et al., arXiv 2008.11702 v1): the paper's values and claims. Its studies are in
`interclr_study`."""

# fmt: off

from vantage.studies.lab.entries import from_scratch, interclr_study
from vantage.studies.lab.entries.interclr_arms import FLOORS, GATE, RARE_MATES, SCALE, with_weight
from vantage.studies.lab.entry import Cell, Claim, Entry, Reason, Untrained, paper
from vantage.studies.lab.judging.predicates import Above, Beats
from vantage.studies.lab.judging.shapes import Gains
from vantage.studies.lab.measures.class_structure import NeighborClasses
from vantage.studies.lab.measures.transfer import FewShotAccuracy, FineTunedAccuracy
from vantage.studies.lab.panel import Panel
from vantage.studies.lab.two_cores import floors, gate

__all__ = ["ENTRIES"]

LINEAR = "linear-cached"
_LONG = "1,000 epochs"
_FINE = "rows of other papers' networks, which are not trained here: claim a has the controlled pair"
_ELSEWHERE = "VOC07 and Places205 are not here: claim c has few shots"
_DETECTION = "gaps of .3 AP50 cannot be seen on two cores, only that pretraining is better than none"
_ALL = ("ImageNet", "Places205", "VOC07", "low-shot")

_TABLE_1 = paper(
    " / ".join(_ALL),
    ("Supervised", 75.5, 52.5, 88.0, 75.4),
    ("Random", 13.7, 16.6, 9.6, 9.0),
    ("Colorization", 39.6, 37.5, 55.6, 33.3),
    ("Jigsaw", 45.7, 41.2, 64.5, 39.2),
    ("NPID", 54.0, 45.5, None, None),
    ("Rotation", 48.9, 41.4, 63.9, None),
    ("BigBiGAN", 56.6, None, None, None),
    ("LA", 58.8, 49.1, None, None),
    ("MoCo", 60.6, 50.2, 79.3, 57.9),
    ("SimCLR", 61.9, 51.6, 79.0, 58.4),
    ("InterCLR", 65.5, 52.2, 82.6, 65.5),
    ("SeLa", 61.5, None, None, None),
    ("ODC", 57.6, 49.3, 78.2, 57.1),
    ("PIRL", 63.6, 49.8, 81.1, None),
    ("SimCLR 1000", 69.3, None, None, None),
    ("InterCLR 1000", 69.6, 53.4, 85.7, 70.0),
)
_RIVALS = ("Colorization", "Jigsaw", "NPID", "LA", "MoCo", "SimCLR")
_NAMES = ("NPID", "LA", "MoCo", "SimCLR", "InterCLR", "InterCLR, MoCo", "SimCLR 1000", "InterCLR 1000")
_SHOTS = ("InterCLR", "MoCo", "SimCLR")
_METHODS = {name: from_scratch.METHODS[name] for name in _NAMES}
_BASES = ("moco_v1", "simclr", "interclr_intra_only")
"""The recipes that InterCLR is compared with; the last one is InterCLR without its contrast between images."""
_RECIPES = ("interclr", "instance_discrimination_nce", "local_aggregation", "moco_v1", "simclr", "interclr_moco")
_LONG_RECIPES = ("interclr_1000", "simclr_1000")
_WHY_BELOW = (
    Reason("its bank, or its augmentation, which leaves brightness and contrast to tell images apart by: on MoCo, with"
        " MoCo's augmentation, the same contrast between images is above it", Beats("InterCLR, MoCo", "InterCLR"),
        LINEAR),
    Reason("the contrast between images as such: it adds to MoCo", Beats("InterCLR, MoCo", "MoCo"), LINEAR, True),
)

TABLE_1 = Entry(
    "interclr-table-1",
    "InterCLR",
    "Table 1",
    "linear classification, SVM and low-shot, by method",
    cells=(*floors(_METHODS["MoCo"]), *from_scratch.with_arms(_TABLE_1, _METHODS), *(Cell(f"{name}, few shots",
        _METHODS[name], (FewShotAccuracy(),)) for name in _SHOTS)),
    claims=(
        Claim("1", "InterCLR is above every unsupervised ResNet-50 of at most 200 epochs", "§5.1",
            tuple(Beats("InterCLR", name) for name in _RIVALS), _ALL,
            note="not all of them are trained here: claim a has those that are"),
        Claim("2", "1,000 epochs: InterCLR is above SimCLR", "§5.1", (Beats("InterCLR 1000", "SimCLR 1000"),),
            ("ImageNet",), LINEAR, True, reasons=_WHY_BELOW),
        Claim("3", "1,000 epochs are above 200", "§5.1", (Beats("InterCLR 1000", "InterCLR"),), _ALL, LINEAR, True),
        Claim("4", "the lead over the best other is largest in low-shot", "numbers",
            tuple(Gains(("InterCLR @ low-shot", "SimCLR @ low-shot"), (f"InterCLR @ {c}", f"{name} @ {c}")) for c,
            name in (("ImageNet", "SimCLR"), ("Places205", "SimCLR"), ("VOC07", "MoCo"))), ("low-shot",),
            note=_ELSEWHERE),
        Claim("a", "InterCLR is above NPID, LA, MoCo and SimCLR", "§5.1, for the methods trained here",
            tuple(Beats("InterCLR", name) for name in _RIVALS[2:]), ("ImageNet",), LINEAR, True, reasons=_WHY_BELOW),
        Claim("b", "the contrast between images adds to MoCo", "ours", (Beats("InterCLR, MoCo", "MoCo"),), (), LINEAR,
            True),
        Claim("c", "with one image per class and with eight, InterCLR is above MoCo and SimCLR",
            "§5.1, claim 1 of figure 5", tuple(Beats(f"InterCLR, few shots @ {shots}", f"{name}, few shots @ {shots}")
            for name in _SHOTS[1:] for shots in ("few shots, fewest", "few shots, most")), (), "few shots", True,
            reasons=_WHY_BELOW),
    ),
    gate=gate("MoCo"),
    panels=(Panel(LINEAR, {"": _NAMES}, paper_columns=("ImageNet",), paper_label="ImageNet, top-1 (%)"),),
    scale=f"{from_scratch.SCALE}: methods with a bank learn late, and rows differ in views, head and negatives at once;"
    " table 4 has the controlled pair",
    commands=(
        *(f"vantage pretrain {recipe} --data IMAGENET#train --size 224 --epochs 200 --out runs/{recipe}"
            for recipe in _RECIPES),
        *(f"vantage pretrain {recipe} --data IMAGENET#train --size 224 --out runs/{recipe}"
            for recipe in _LONG_RECIPES),
        *(f"vantage evaluate linear-multi runs/{recipe} --data IMAGENET#train --test IMAGENET#val"
            for recipe in (*_RECIPES, *_LONG_RECIPES)),
    ),
)

FIGURE_5 = Entry(
    "interclr-figure-5",
    "InterCLR",
    "Figure 5",
    "low-shot SVMs on VOC07, by number of shots",
    cells=(*FLOORS, *(Cell(name, with_weight(share), (FewShotAccuracy(),)) for name, share in (("λ 1", 1.0), ("λ .75",
        0.75)))),
    claims=(
        Claim("1", "at every number of shots InterCLR is above MoCo and SimCLR", "§5.1", (),
            note="claim c of table 1 asks this of runs from scratch, claim a of the controlled pair"),
        Claim("2", "the gain is larger at 2 shots or fewer than at 64 or more", "§5.1",
            (Gains(("λ .75 @ few shots, fewest", "λ 1 @ few shots, fewest"),
                ("λ .75 @ few shots, most", "λ 1 @ few shots, most")),), (), "few shots", True),
        Claim("a", "the contrast between images adds to that within them, over all numbers of shots", "ours",
            (Beats("λ .75", "λ 1"),), (), "few shots", True, note=RARE_MATES,
            reasons=(Reason("few images: with the most per class it is below as well", Beats("λ 1 @ few shots, most",
                "λ .75 @ few shots, most"), "few shots", True),)),
    ),
    gate=GATE,
    panels=(
        Panel("few shots", {name: {f"{name} @ few shots, fewest": 1, f"{name} @ few shots, most": 8}
            for name in ("λ 1", "λ .75")}, "images per class", y_label="SVM, mAP (%)"),
    ),
    commands=tuple(f"vantage evaluate lowshot runs/{recipe} --data VOC07#trainval --test VOC07#test"
        for recipe in ("interclr", *_BASES)),
    scale=f"{SCALE}; λ 1 and .75 of figure 8, judged by SVMs of 1, 2 and 8 images per class; claim 2 compares 1 with 8",
)

_TABLE_2 = paper(
    "1 % / 10 %",
    ("Pseudo-label", 51.6, 82.4),
    ("VAT + EntMin", 47.0, 83.4),
    ("S4L Exemplar", 47.0, 83.7),
    ("S4L Rotation", 53.4, 83.8),
    ("NPID", 39.2, 77.4),
    ("Jigsaw", 45.3, 79.3),
    ("MoCo", 61.3, 84.0),
    ("SimCLR", 64.5, 82.6),
    ("InterCLR", 66.3, 84.5),
    ("PIRL", 57.2, 83.8),
    ("SimCLR 1000", 75.5, 87.8),
    ("InterCLR 1000", 78.6, 88.8),
)

_TUNED = ("fine-tuned, 2 %", "fine-tuned, 10 %")

TABLE_2 = Entry(
    "interclr-table-2",
    "InterCLR",
    "Table 2",
    "fine-tuning on 1 % and 10 % of the labels, top-5",
    cells=(
        *_TABLE_2,
        Cell("from scratch", Untrained(with_weight(1.0)), (FineTunedAccuracy(),)),
        *(Cell(name, with_weight(share), (FineTunedAccuracy(),)) for name, share in (("λ 1", 1.0), ("λ .75", 0.75))),
    ),
    claims=(
        Claim("1", "InterCLR is above every row of at most 200 epochs and every semi-supervised one", "§5.1",
            tuple(Beats("InterCLR", cell.name) for cell in _TABLE_2[:8]), ("1 %", "10 %"), note=_FINE),
        Claim("2", "1,000 epochs: InterCLR is above SimCLR", "§5.1", (Beats("InterCLR 1000", "SimCLR 1000"),),
            ("1 %", "10 %"), note=_LONG),
        Claim("3", "the lead at 1 % is larger than at 10 %", "numbers",
            (Gains(("InterCLR @ 1 %", "SimCLR @ 1 %"), ("InterCLR @ 10 %", "MoCo @ 10 %")),), ("1 %",), note=_FINE),
        Claim("a", "the contrast between images adds to that within them, at both shares of the labels", "ours",
            tuple(Beats(f"λ .75 @ {share}", f"λ 1 @ {share}") for share in _TUNED), (), _TUNED[0]),
        Claim("b", "pretraining is above training from scratch, at both shares", "ours",
            tuple(Beats(f"λ 1 @ {share}", f"from scratch @ {share}") for share in _TUNED), (), _TUNED[0]),
        Claim("c", "it adds more with fewer labels", "ours", (Gains(*((f"λ 1 @ {share}", f"from scratch @ {share}")
            for share in _TUNED)),), (), _TUNED[0]),
    ),
    panels=tuple(Panel(share, {"": ("from scratch", "λ 1", "λ .75")}, y_label=f"{share} of the labels, top-5 (%)")
        for share in _TUNED),
    commands=tuple(f"vantage evaluate finetune runs/{recipe} --data IMAGENET#train --test IMAGENET#val --fraction"
        f" {share}" for recipe in ("interclr", *_BASES, *_LONG_RECIPES) for share in (0.01, 0.1)),
    scale=f"{SCALE}; λ 1 and .75 of figure 8, fine-tuned on 2 % and 10 % of the labels, 3 and 13 images per class, with"
    " rates chosen on other training images; top-5",
)

TABLE_3 = Entry(
    "interclr-table-3",
    "InterCLR",
    "Table 3",
    "detection of VOC07+12",
    cells=paper("AP50", ("random", 60.2), ("supervised", 81.3), ("MoCo", 81.5), ("InterCLR", 81.8)),
    claims=(
        Claim("1", "InterCLR is above MoCo", "§5.1", (Beats("InterCLR", "MoCo"),), ("AP50",), note=_DETECTION),
        Claim("2", "InterCLR is above supervised", "§5.1", (Beats("InterCLR", "supervised"),), ("AP50",),
            note=_DETECTION),
    ),
    commands=tuple(f"vantage export runs/{recipe} --to detectron2 --out detectron2/{recipe}"
        for recipe in ("interclr", "moco_v1")),
)

_RIGHT, _COMMON = "all neighbors right", "commonest class"

FIGURE_9 = Entry(
    "interclr-figure-9",
    "InterCLR",
    "Figure 9",
    "ten nearest training images of six queries",
    cells=(Cell("λ .75", with_weight(0.75), (NeighborClasses(),)),),
    claims=(
        Claim("1", "some queries have ten neighbors of their class, some have none", "App. D",
            (Above(f"λ .75 @ {_RIGHT}", 0.0), Above("λ .75 @ no neighbor right", 0.0)), (), _RIGHT),
        Claim("2", "failures share other context", "App. D", (),
            note="only a person can judge what images have in common: claim a asks about classes"),
        Claim("a", "the neighbors of failures agree on another class more often than images drawn at random", "ours",
            (Beats(f"λ .75 @ {_COMMON} of failures", f"λ .75 @ {_COMMON} by chance"),), (), _RIGHT),
    ),
    panels=(Panel(_RIGHT, {"": tuple(f"λ .75 @ {name}" for name in (_RIGHT, "no neighbor right",
        f"{_COMMON} of failures", f"{_COMMON} by chance"))}, y_label="of queries, or of their neighbors (%)"),),
    commands=("vantage evaluate retrieval runs/interclr --data IMAGENET#train --test IMAGENET#val",),
    scale=f"{SCALE}; all test images instead of six queries, for figure 8's λ .75",
)

ENTRIES = (TABLE_1, FIGURE_5, TABLE_2, TABLE_3, *interclr_study.ENTRIES, FIGURE_9)
"""InterCLR's tables and figures, in the paper's order."""
