"""InfoMin (Tian et al., arXiv 2005.10243), its tables except those of detectors: the paper's values and claims."""

# fmt: off

from vantage.studies.lab.entries import infomin_sharing
from vantage.studies.lab.entries.from_scratch import LENGTHS, METHODS, SCALE, STEPS, STRONG_VIEWS, WIDTHS, with_arms
from vantage.studies.lab.entries.paper_commands import judged, pretraining
from vantage.studies.lab.entry import Claim, Entry, Reason, paper
from vantage.studies.lab.judging.predicates import Beats, Close, Order
from vantage.studies.lab.judging.shapes import Gains
from vantage.studies.lab.panel import Panel
from vantage.studies.lab.two_cores import floors, gate, own_floors

__all__ = ["ENTRIES"]

LINEAR = "linear-cached"

_TABLE_1 = paper(
    "top-1 / top-5",
    ("InstDis", 56.5, None),
    ("LA", 58.8, None),
    ("CMC", 60.0, 82.3),
    ("MoCo", 60.6, None),
    ("PIRL", 63.6, None),
    ("CPC v2", 63.8, 85.3),
    ("SimCLR 1000", 69.3, 89.0),
    ("InfoMin 100", 67.4, 87.9),
    ("InfoMin 200", 70.1, 89.4),
    ("InfoMin 800", 73.0, 91.1),
)

_METHODS = {"InstDis": METHODS["NPID"], **{name: METHODS[name] for name in ("LA", "CMC", "MoCo", "SimCLR 1000")},
    **{name: arm for name, arm in LENGTHS.items() if name.startswith("InfoMin")}}

_LINEAR_HEADS = {"instance_discrimination_nce": 200, "local_aggregation_warmed": 200, "cmc_halves": 240,
    "moco_v1": 200, "pirl_vissl": 800}
"""The recipes of the rows with a linear head, with their epochs."""
_LONG = (pretraining("simclr_1000", 1_000), pretraining("infomin", 200), pretraining("infomin", 800, "infomin_800"))
_CLASSIFIER = "linear-pycontrast --learning-rates 30"
_OPEN = "rows other than InfoMin's are quoted: runs follow their own papers, and one classifier judges all of them"
_SHORT = pretraining("infomin", 100, "infomin_100")
_LARGER = (
    *(pretraining("infomin", epochs, f"infomin_{name}", backbone) for name, backbone, epochs in (
        ("resnet101", "resnet101", 300), ("resnet152", "resnet152", 200), ("resnext101", "resnext101_32x8d", 200),
        ("resnext152", "ResNet(152,groups=32,width_per_group=8)", 200))),
    pretraining("cmc", 240), pretraining("cmc", 240, "cmc_x2", "resnet50x2"),
    *(pretraining(recipe, epochs, f"{recipe}_x{times}", f"resnet50x{times}") for recipe, epochs, widths in (
        ("moco_v1", 200, (2, 4)), ("pirl_vissl", 800, (2,)), ("simclr_1000", 1_000, (2, 4))) for times in widths),
    pretraining("moco_v2", 200), pretraining("moco_v2", 800, "moco_v2_800"),
)
"""Table 6 without the rows of Table 1."""
_WHY_BELOW = (
    STRONG_VIEWS,
    Reason("the network and the budget as such: CMC learns more from as many images", Beats("CMC", "InfoMin 200"),
        LINEAR, True),
)


TABLE_1 = Entry(
    "infomin-table-1",
    "InfoMin",
    "Table 1",
    "linear classification of ImageNet, ResNet-50",
    cells=(*floors(_METHODS["MoCo"]), *own_floors("CMC", _METHODS["CMC"]), *with_arms(_TABLE_1, _METHODS)),
    claims=(
        Claim("1", "InfoMin at 200 epochs is above all others", "C.3", tuple(Beats("InfoMin 200", cell.name)
            for cell in _TABLE_1[:7]), ("top-1", "top-5"),
            note="PIRL and CPC v2 are not trained here: claim a has the first four, claim 3 of infomin-table-6 SimCLR"),
        Claim("2", "InfoMin at 800 is nearly 4 above SimCLR at 1,000", "§3.4",
            (Beats("InfoMin 800", "SimCLR 1000", 3.5), Close(("InfoMin 800", "SimCLR 1000"), 4.0)), ("top-1",),
            note="a distance in points does not carry over: claim b has its sign"),
        Claim("3", "800 epochs are above 200", "numbers", (Beats("InfoMin 800", "InfoMin 200"),), ("top-1", "top-5"),
            LINEAR, True, part_of="claim 1 of infomin-table-6"),
        Claim("a", "InfoMin at 200 epochs is above InstDis, LA, CMC and MoCo", "C.3, for the methods trained here",
            tuple(Beats("InfoMin 200", cell.name) for cell in _TABLE_1[:4]), ("top-1",), LINEAR, True,
            gates=(gate("MoCo"), gate("CMC", "CMC")), reasons=_WHY_BELOW),
        Claim("b", "InfoMin at 800 is above SimCLR at 1,000", "§3.4, its sign only",
            (Beats("InfoMin 800", "SimCLR 1000"),), ("top-1",), LINEAR, True, reasons=_WHY_BELOW),
    ),
    gate=gate("MoCo"),
    panels=(Panel(LINEAR, {"": tuple(_METHODS)}, paper_columns=("top-1",), paper_label="ImageNet, top-1 (%)"),),
    scale=f"{SCALE}; strong views learn late",
    commands=judged(_CLASSIFIER, (*(pretraining(*row) for row in _LINEAR_HEADS.items()), *_LONG)),
    about_commands=f"{_OPEN}; InstDis' 56.5 is above the 54.0 of its paper, whose recipe this is; CPC v2 is not here",
)

_STEPS = paper("top-1", ("RA-CJ-Blur, linear", 63.6), ("with jigsaw", 65.9), ("with MLP, τ .15", 67.3))

_WHY_STEPS = (
    Reason("head and temperature together: changed alone, either costs less than half of it, which is not decided"),
    Reason("the learning rate: at four times it, in earlier runs, the MLP was below the jigsaw too", ruled_out=True),
)

TEXT_C3 = Entry(
    "infomin-text-c3",
    "InfoMin",
    "Appendix C.3",
    "what jigsaw and MLP head add",
    cells=(*floors(STEPS["RA-CJ-Blur, linear"]), *with_arms(_STEPS, STEPS)),
    claims=(
        Claim("1", "each step adds", "C.3", (Order(tuple(cell.name for cell in _STEPS)),), ("top-1",), LINEAR, True,
            reasons=_WHY_STEPS, note="the paper has 67.3 for the last step, and 67.4 for the same run in table 6"),
        Claim("a", "the MLP adds", "C.3, its second step", (Beats("with MLP, τ .15", "with jigsaw"),), ("top-1",),
            LINEAR, True, part_of="claim 1", reasons=_WHY_STEPS),
    ),
    gate=gate("RA-CJ-Blur, linear"),
    panels=(Panel(LINEAR, {"": tuple(STEPS)}, paper_columns=("top-1",), paper_label="ImageNet, top-1 (%)"),),
    commands=judged(_CLASSIFIER, (*(pretraining(recipe, 100) for recipe in ("infomin_no_jigsaw", "infomin_linear")),
        _SHORT)),
    scale=f"{SCALE}; the learning rate of the papers by batch size, a quarter of that of other entries; the patches of"
    " the jigsaw have 9 px",
)

_TABLE_6 = paper(
    "top-1 / top-5",
    ("CMC 47M", 66.2, 87.0),
    ("CMC 188M", 70.6, 89.7),
    ("MoCo 94M", 65.4, None),
    ("MoCo 375M", 68.6, None),
    ("PIRL 2x", 67.4, None),
    ("SimCLR 1000", 69.3, 89.0),
    ("SimCLR 2x", 74.2, None),
    ("SimCLR 4x", 76.5, None),
    ("MoCo v2 800", 71.1, None),
    ("InfoMin R50 100", 67.4, 87.9),
    ("InfoMin R50 200", 70.1, 89.4),
    ("InfoMin R50 800", 73.0, 91.1),
    ("InfoMin R101 300", 73.4, None),
    ("InfoMin R152 200", 73.4, None),
    ("InfoMin X101 200", 74.5, None),
    ("InfoMin X152 200", 75.2, None),
)

_LENGTHS = {name.replace("InfoMin", "InfoMin R50"): arm for name, arm in LENGTHS.items()} | {
    "SimCLR 1000": METHODS["SimCLR 1000"], "MoCo 200": METHODS["MoCo"]}

_OTHER_WIDTHS = ("width × ½", "width × 2")
"""Networks that are not those of the floors of the other arms."""
_WHY_NO_LONGER = (
    STRONG_VIEWS,
    Reason("the network and the budget as such: MoCo v2 gains from 200 to 800 epochs", Beats("MoCo v2 800",
        "MoCo v2 200"), LINEAR, True),
)

TABLE_6 = Entry(
    "infomin-table-6",
    "InfoMin",
    "Table 6",
    "linear classification of ImageNet by architecture and epochs",
    cells=(*floors(LENGTHS["InfoMin 200"]), *(floor for name in _OTHER_WIDTHS for floor in own_floors(name,
        WIDTHS[name])), *with_arms(_TABLE_6, {**_LENGTHS, **WIDTHS})),
    claims=(
        Claim("1", "longer is better: 100, 200, 800 epochs", "C.3",
            (Order(tuple(_LENGTHS)[:3]),), ("top-1", "top-5"), LINEAR, True),
        Claim("2", "larger is better: R50, R152, X101, X152", "C.3",
            (Order(("InfoMin R50 200", "InfoMin R152 200", "InfoMin X101 200", "InfoMin X152 200")),), ("top-1",),
            note="these networks are for 224 px: claim a has four convolutions by their width"),
        Claim("3", "InfoMin at 200 epochs is above SimCLR at 1,000", "C.3",
            (Beats("InfoMin R50 200", "SimCLR 1000"),), ("top-1", "top-5"), LINEAR, True, reasons=_WHY_NO_LONGER),
        Claim("4", "at 800 epochs InfoMin is above MoCo v2", "numbers", (Beats("InfoMin R50 800", "MoCo v2 800"),),
            ("top-1",), LINEAR, True, reasons=_WHY_NO_LONGER),
        Claim("a", "larger is better: half, whole and double width", "C.3", (Order(tuple(WIDTHS)),), (), LINEAR, True,
            gates=(gate("width × 1"), *(gate(name, name) for name in _OTHER_WIDTHS)), stand_in=True),
        Claim("b", "strong views need long training: from 200 to 800 epochs InfoMin gains more than MoCo v2", "ours",
            (Gains(("InfoMin R50 800", "InfoMin R50 200"), ("MoCo v2 800", "MoCo v2 200")),), (), LINEAR, True,
            reasons=_WHY_NO_LONGER),
        Claim("c", "MoCo v2 is above MoCo: claim 6 of jcl-table-1", "JCL §4.2, ours",
            (Beats("MoCo v2 200", "MoCo 200"),), (), LINEAR, True, note="JCL has 60.6 and 67.6"),
    ),
    gate=gate("InfoMin R50 800"),
    panels=(
        Panel(LINEAR, {name: {cell: epochs for cell, epochs in zip((f"{name} {n}" for n in numbers), numbers,
            strict=True)} for name, numbers in (("InfoMin R50", (100, 200, 800)), ("MoCo v2", (200, 800)))},
            "epochs of the paper", paper_columns=("top-1",), paper_label="ImageNet, top-1 (%)"),
        Panel(LINEAR, {"": {"width × ½": 0.5, "width × 1": 1.0, "width × 2": 2.0}}, "width of the network"),
    ),
    commands=judged(_CLASSIFIER, (pretraining("cmc_halves", 240), pretraining("moco_v1", 200),
        pretraining("pirl_vissl", 800), _SHORT, *_LONG, *_LARGER)),
    about_commands=f"{_OPEN}; ResNeXt-101 and -152 have 87 and 120 million weights, as with 32 groups of width 8",
    scale=SCALE,
)

ENTRIES = (TABLE_1, TEXT_C3, TABLE_6, *infomin_sharing.ENTRIES)
"""InfoMin's tables, in the paper's order."""
