"""InterCLR (Xie et al., arXiv 2008.11702 v1): the paper's values and claims. Its studies are in
`interclr_study`, `interclr_weights` and `interclr_neighbors`."""

# fmt: off

from dataclasses import replace

from vantage.studies.lab.entries import from_scratch, interclr_neighbors, interclr_study, interclr_weights
from vantage.studies.lab.entries.interclr_arms import FLOORS, GATE, RARE_MATES, SCALE, with_weight
from vantage.studies.lab.entries.paper_commands import detectors, evaluations, pretraining
from vantage.studies.lab.entry import Cell, Claim, Entry, Gate, Reason, Untrained, paper
from vantage.studies.lab.judging.predicates import Beats
from vantage.studies.lab.judging.shapes import Gains
from vantage.studies.lab.measures.mosaics import MIOU, MosaicSegmentation, frozen_arms
from vantage.studies.lab.measures.transfer import FewShotAccuracy, FineTunedAccuracy
from vantage.studies.lab.panel import Panel
from vantage.studies.lab.two_cores import floors, gate

__all__ = ["ENTRIES"]

LINEAR = "linear-cached"
_LONG = "so long a run is not fine-tuned here: claim 2 of interclr-table-1 compares the two with all labels"
_FINE = "rows of other papers' networks, which are not fine-tuned here: claim a has the controlled pair"
_DETECTION = "two cores cannot train a detector on VOC"
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
_NAMES = ("NPID", "LA", "MoCo", "SimCLR", "InterCLR", "InterCLR, MoCo's views", "InterCLR, MoCo",
    "SimCLR 1000", "InterCLR 1000")
_SHOTS = ("InterCLR", "MoCo", "SimCLR")
_METHODS = {name: from_scratch.METHODS[name] for name in _NAMES}
_EPOCHS = {"interclr": 200, "instance_discrimination_nce": 200, "local_aggregation_warmed": 200, "moco_v1": 200,
    "simclr": 200, "interclr_moco": 200, "pirl_vissl": 800, "interclr_1000": 1_000, "simclr_1000": 1_000}
"""The recipes of Table 1's rows, with their epochs."""
_PAIR = ("interclr_weighted", "interclr_intra_only")
"""InterCLR with and without its contrast between images, in the setting of Table 4."""
_OPEN = (
    "NPID, LA, MoCo on ImageNet, PIRL and SimCLR at 1,000 epochs are quoted, so their runs follow their own papers; its"
    " own SimCLR of 200 epochs is taken at 256 images, like all its runs of that length; jitter and blur have the"
    " probabilities of NPID and of SimCLR; interclr_moco is no row"
)
_OWN_VIEWS = "InterCLR, MoCo's views"
_WHY_BELOW = (
    Reason("its augmentation: with that of MoCo v2 it is higher", Beats(_OWN_VIEWS, "InterCLR"), LINEAR),
    Reason("its bank, which learns late: with the same augmentation and contrasts it is higher on MoCo",
        Beats("InterCLR, MoCo", _OWN_VIEWS), LINEAR),
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
            note="Colorization and Jigsaw are not contrastive, and have no recipe: claim a has the others"),
        Claim("2", "1,000 epochs: InterCLR is above SimCLR", "§5.1", (Beats("InterCLR 1000", "SimCLR 1000"),),
            ("ImageNet",), LINEAR, True, reasons=_WHY_BELOW),
        Claim("3", "1,000 epochs are above 200", "§5.1", (Beats("InterCLR 1000", "InterCLR"),), _ALL, LINEAR, True),
        Claim("4", "the lead over the best other is largest in low-shot", "numbers",
            tuple(Gains(("InterCLR @ low-shot", "SimCLR @ low-shot"), (f"InterCLR @ {c}", f"{name} @ {c}")) for c,
            name in (("ImageNet", "SimCLR"), ("Places205", "SimCLR"), ("VOC07", "MoCo"))), ("low-shot",),
            note="VOC07 and Places205 are not here: claim c has few shots"),
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
        *(pretraining(recipe, epochs) for recipe, epochs in _EPOCHS.items()),
        *evaluations("linear-multi", _EPOCHS),
        *evaluations("linear-places", _EPOCHS, "PLACES205"),
        *(line for protocol in ("svm", "lowshot") for line in evaluations(protocol, _EPOCHS, "VOC07")),
    ),
    about_commands=_OPEN,
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
            note="VOC07 is not here: claim c of interclr-table-1 asks this of three methods, claim a of the controlled"
            " pair"),
        Claim("2", "InterCLR's gain is larger at 2 shots or fewer than at 64 or more", "§5.1",
            (Gains(("λ .75 @ few shots, fewest", "λ 1 @ few shots, fewest"),
                ("λ .75 @ few shots, most", "λ 1 @ few shots, most")),), (), "few shots", True,
            precondition=Beats("λ .75 @ few shots, fewest", "λ 1 @ few shots, fewest")),
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
    commands=evaluations("lowshot", ("interclr", "moco_v1", "simclr", *_PAIR), "VOC07"),
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
            (Gains(("InterCLR @ 1 %", "SimCLR @ 1 %"), ("InterCLR @ 10 %", "MoCo @ 10 %")),), ("1 %",),
            note="MoCo and SimCLR are not fine-tuned here: claim c compares with training from scratch"),
        Claim("a", "the contrast between images adds to that within them, at both shares of the labels", "ours",
            tuple(Beats(f"λ .75 @ {share}", f"λ 1 @ {share}") for share in _TUNED), (), _TUNED[0], True),
        Claim("b", "pretraining is above training from scratch, at both shares", "ours",
            tuple(Beats(f"λ 1 @ {share}", f"from scratch @ {share}") for share in _TUNED), (), _TUNED[0]),
        Claim("c", "pretraining adds more with fewer labels", "ours", (Gains(*((f"λ 1 @ {share}",
            f"from scratch @ {share}") for share in _TUNED)),), (), _TUNED[0], True),
    ),
    gate=Gate("λ 1", ("from scratch",), _TUNED[0]),
    panels=tuple(Panel(share, {"": ("from scratch", "λ 1", "λ .75")}, y_label=f"{share} of the labels, top-5 (%)")
        for share in _TUNED),
    commands=tuple(line for names in ("1percent.txt", "10percent.txt") for line in
        evaluations(f"finetune --names {names}", (*(name for name in _EPOCHS if name not in
            ("local_aggregation_warmed", "interclr_moco")), *_PAIR))),
    about_commands="NPID, PIRL and SimCLR at 1,000 epochs are quoted; 1percent.txt and 10percent.txt are the lists of"
    " SimCLR's release",
    scale=f"{SCALE}; λ 1 and .75 of figure 8, fine-tuned on 2 % and 10 % of the labels, 3 and 13 images per class, with"
    " rates chosen on other training images; top-5; the gate: λ 1 is above training from scratch with 2 % of the"
    " labels",
)

_TABLE_3 = paper("AP50", ("random", 60.2), ("supervised", 81.3), ("MoCo", 81.5), ("InterCLR", 81.8))
_FROZEN = {"random": Untrained(_METHODS["MoCo"]), **{name: _METHODS[name] for name in ("MoCo", "InterCLR")}}
"""The arms of table 1 by the rows of table 3."""

TABLE_3 = Entry(
    "interclr-table-3",
    "InterCLR",
    "Table 3",
    "detection of VOC07+12",
    cells=tuple(replace(cell, experiment=_FROZEN[cell.name], measures=(MosaicSegmentation(),)) if cell.name in _FROZEN
        else cell for cell in _TABLE_3),
    claims=(
        Claim("1", "InterCLR is above MoCo", "§5.1", (Beats("InterCLR", "MoCo"),), ("AP50",),
            note=f"{_DETECTION}: claim b asks this of mosaics"),
        Claim("2", "InterCLR is above supervised", "§5.1", (Beats("InterCLR", "supervised"),), ("AP50",),
            note=f"{_DETECTION}, and no network is trained with labels: claim a compares with no pretraining"),
        Claim("a", "every pretraining here is above no pretraining: mean IoU of a decoder for mosaics",
            "numbers, for mosaics", tuple(Beats(name, "random") for name in ("MoCo", "InterCLR")), (), MIOU,
            stand_in=True),
        Claim("b", "InterCLR is above MoCo: mean IoU of that decoder", "§5.1, for mosaics",
            (Beats("InterCLR", "MoCo"),), (), MIOU, stand_in=True, reasons=(
                Reason("its bank or its augmentation, as in table 1, where a linear classifier gives the same order"),
                Reason("scenes in which no training could help: MoCo is above no pretraining",
                    Beats("MoCo", "random"), MIOU, True),
            )),
    ),
    scale=f"{frozen_arms()}; each from scratch, 4 epochs for the paper's 200",
    panels=(Panel(MIOU, {"": tuple(_FROZEN)}, paper_columns=("AP50",), paper_label="VOC07+12, AP50"),),
    commands=detectors(("interclr", "moco_v1")),
)

ENTRIES = (TABLE_1, FIGURE_5, TABLE_2, TABLE_3, *interclr_study.ENTRIES, *interclr_weights.ENTRIES,
    interclr_neighbors.FIGURE_9)
"""InterCLR's tables and figures, in the paper's order."""
