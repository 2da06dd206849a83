"""InfoMin (Tian et al., arXiv 2005.10243), its tables but for detectors: the paper's values and claims."""

# fmt: off

from dataclasses import replace

from vantage.studies.lab.entries.from_scratch import LENGTHS, METHODS, SCALE, STEPS, WIDTHS, with_arms
from vantage.studies.lab.entry import Cell, Claim, Entry, paper
from vantage.studies.lab.moving_digits import MovingDigits
from vantage.studies.lab.panel import Panel
from vantage.studies.lab.predicates import Above, Beats, Close, Order
from vantage.studies.lab.shapes import Gains
from vantage.studies.lab.two_cores import floors, gate

__all__ = ["ENTRIES"]

LINEAR = "linear-cached"
_QUOTED = "rows of other papers' networks, which are not trained here"
_ONCE = "ImageNet for 100 to 800 epochs"

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

TABLE_1 = Entry(
    "infomin-table-1",
    "InfoMin",
    "Table 1",
    "linear classification of ImageNet, ResNet-50",
    cells=(*floors(_METHODS["MoCo"]), *with_arms(_TABLE_1, _METHODS)),
    claims=(
        Claim("1", "InfoMin at 200 epochs is above all others", "C.3", tuple(Beats("InfoMin 200", cell.name)
            for cell in _TABLE_1[:7]), ("top-1", "top-5"),
            note="not all of them are trained here: claim a has those that are"),
        Claim("2", "InfoMin at 800 is nearly 4 above SimCLR at 1,000", "§3.4",
            (Beats("InfoMin 800", "SimCLR 1000", 3.5), Close(("InfoMin 800", "SimCLR 1000"), 4.0)), ("top-1",),
            note="a distance in points does not carry over: claim b has its sign"),
        Claim("3", "800 epochs are above 200", "numbers", (Beats("InfoMin 800", "InfoMin 200"),), ("top-1", "top-5"),
            LINEAR, True),
        Claim("a", "InfoMin at 200 epochs is above InstDis, LA, CMC and MoCo", "C.3, of the methods that are trained"
            " here", tuple(Beats("InfoMin 200", cell.name) for cell in _TABLE_1[:4]), (), LINEAR, True),
        Claim("b", "InfoMin at 800 is above SimCLR at 1,000", "§3.4, of its sign",
            (Beats("InfoMin 800", "SimCLR 1000"),), (), LINEAR, True),
    ),
    gate=gate("MoCo"),
    panels=(Panel(LINEAR, {"": tuple(_METHODS)}, paper_columns=("top-1",), paper_label="ImageNet, top-1 (%)"),),
    scale=f"{SCALE}; strong views learn late",
    commands=(
        "vantage pretrain infomin --data IMAGENET#train --size 224 --epochs 200 --out runs/infomin",
        "vantage evaluate linear-pycontrast runs/infomin --data IMAGENET#train --test IMAGENET#val",
    ),
)

_STEPS = paper("top-1", ("RA-CJ-Blur, linear", 63.6), ("with jigsaw", 65.9), ("with MLP, τ .15", 67.3))

TEXT_C3 = Entry(
    "infomin-text-c3",
    "InfoMin",
    "Appendix C.3",
    "what jigsaw and MLP head add",
    cells=(*floors(STEPS["RA-CJ-Blur, linear"]), *with_arms(_STEPS, STEPS)),
    claims=(
        Claim("1", "each step adds", "C.3", (Order(tuple(STEPS)),), ("top-1",), LINEAR, True),
        Claim("a", "the MLP adds", "C.3, of its second step", (Beats("with MLP, τ .15", "with jigsaw"),), (), LINEAR,
            True),
    ),
    gate=gate("RA-CJ-Blur, linear"),
    panels=(Panel(LINEAR, {"": tuple(STEPS)}, paper_columns=("top-1",), paper_label="ImageNet, top-1 (%)"),),
    scale=f"{SCALE}; the patches of the jigsaw have 9 px",
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
    "SimCLR 1000": METHODS["SimCLR 1000"]}

TABLE_6 = Entry(
    "infomin-table-6",
    "InfoMin",
    "Table 6",
    "linear classification of ImageNet by architecture and epochs",
    cells=(*floors(LENGTHS["InfoMin 200"]), *with_arms(_TABLE_6, {**_LENGTHS, **WIDTHS})),
    claims=(
        Claim("1", "longer is better: 100, 200, 800 epochs", "C.3",
            (Order(tuple(_LENGTHS)[:3]),), ("top-1", "top-5"), LINEAR, True),
        Claim("2", "larger is better: R50, R152, X101, X152", "C.3",
            (Order(("InfoMin R50 200", "InfoMin R152 200", "InfoMin X101 200", "InfoMin X152 200")),), ("top-1",),
            note="networks for ImageNet: claim a has four convolutions by their width"),
        Claim("3", "InfoMin at 200 epochs is above SimCLR at 1,000", "C.3",
            (Beats("InfoMin R50 200", "SimCLR 1000"),), ("top-1", "top-5"), LINEAR, True),
        Claim("4", "at 800 epochs it is above MoCo v2", "numbers", (Beats("InfoMin R50 800", "MoCo v2 800"),),
            ("top-1",), LINEAR, True),
        Claim("a", "larger is better: half, whole and double width", "C.3", (Order(tuple(WIDTHS)),), (), LINEAR, True),
        Claim("b", "strong views need long training: from 200 to 800 epochs InfoMin gains more than MoCo v2", "ours",
            (Gains(("InfoMin R50 800", "InfoMin R50 200"), ("MoCo v2 800", "MoCo v2 200")),), (), LINEAR, True),
    ),
    gate=gate("InfoMin R50 800"),
    panels=(
        Panel(LINEAR, {name: {cell: epochs for cell, epochs in zip((f"{name} {n}" for n in numbers), numbers,
            strict=True)} for name, numbers in (("InfoMin R50", (100, 200, 800)), ("MoCo v2", (200, 800)))},
            "epochs of the paper", paper_columns=("top-1",), paper_label="ImageNet, top-1 (%)"),
        Panel(LINEAR, {"": {"width × ½": 0.5, "width × 1": 1.0, "width × 2": 2.0}}, "width of the network"),
    ),
    scale=SCALE,
)

_TABLE_4 = paper(
    "digit / background / pixels",
    ("digit", 16.8, 88.6, 13.6),
    ("background", 88.6, 51.7, 16.1),
    ("location", 57.9, 87.6, 3.95),
    ("background, digit, location", 88.8, 56.3, 16.2),
    ("background, digit", 88.2, 53.9, 16.3),
    ("background, location", 88.8, 53.8, 15.9),
    ("digit, location", 14.5, 88.9, 13.7),
    ("supervised", 3.4, 45.3, 0.93),
    ("chance", 88.6, None, 13.78),
)
_ROWS = tuple(replace(cell, experiment=MovingDigits(cell.name)) for cell in _TABLE_4)
_WITH = tuple(cell.name for cell in _TABLE_4 if "background" in cell.name)
_FACTORS = {"digit": "digit", "background": "background", "pixels": "location"}
_REACHED = Above("location @ I_NCE", 0.1)
_VOID = "void while the views that share the location have an I_NCE below .1: the factor is not found at all"

TABLE_4 = Entry(
    "infomin-table-4",
    "InfoMin",
    "Table 4",
    "Colorful Moving MNIST: what views share decides what is learned",
    cells=(*_ROWS, Cell("untrained", MovingDigits("untrained"))),
    claims=(
        *(Claim(f"1, {column}", f"{column}: the row that shares this factor alone is below all that lack it", "§4.1",
            tuple(Beats(cell.name, factor) for cell in _TABLE_4[:7] if factor not in cell.name), (column,), column,
            precondition=_REACHED if column == "pixels" else None, note=_VOID * (column == "pixels"))
            for column, factor in _FACTORS.items()),
        Claim("2, digit", "the background overwhelms: digit errors of rows with it are within 1 of chance", "§4.1",
            tuple(Close((row, "chance"), 1.0) for row in _WITH), ("digit",), "digit"),
        Claim("2, pixels", "the background overwhelms: location errors of rows with it are within 1 pixel of chance",
            "§4.1", tuple(Close((row, "chance"), 1.0) for row in _WITH), ("pixels",), "pixels"),
        Claim("3", "digit comes before position: sharing both locates no better than the digit alone", "§4.1",
            (Close(("digit, location", "digit"), 1.0), Beats("digit", "location")), ("pixels",), "pixels",
            precondition=_REACHED, note=_VOID),
        *(Claim(f"4, {column}", f"{column}: supervised is below all", "§4.1",
            tuple(Beats(cell.name, "supervised") for cell in _TABLE_4[:7]), (column,), column) for column in _FACTORS),
        Claim("a", "the more a view reveals of the background, the more the critic knows: rows with it have the larger"
            " I_NCE", "ours", tuple(Beats(f"{one} @ I_NCE", f"{other} @ I_NCE") for one in _WITH for other in
            ("digit", "digit, location")), (), "digit"),
    ),
    commands=(
        "vantage reproduce infomin-table-4 --digits mnist.npz#train --test-digits mnist.npz#test"
        " --backgrounds STL10#train"
        " --test-backgrounds STL10#test --out infomin-table-4",
    ),
    panels=tuple(Panel(column, {"": tuple(cell.name for cell in _TABLE_4)}, y_label=label, paper_columns=(column,),
        paper_label=label, paper_shares_axes=True) for column, label in (("digit", "digit error (%)"),
        ("background", "background error (%)"), ("pixels", "location error (pixels)"))),
    scale="400 steps of 64 clips; two frames are seen and the second view is of the third; AdamW; MNIST on ten classes"
    " of Tiny ImageNet",
)

_TABLE_5 = paper(
    "RGB / YDbDr / RGB, SD / YDbDr, SD",
    ("unsupervised", 82.4, 84.3, 3.2, 0.5),
    ("supervised", 79.9, 78.5, 1.5, 2.3),
    ("semi-supervised", 86.0, 87.0, 0.6, 0.3),
    ("raw views", 81.5, 86.6, 0.2, 0.2),
)
_SPACES = ("RGB", "YDbDr")
_FLOWS = "views learned by flows, not run yet (vantage views learn)"

TABLE_5 = Entry(
    "infomin-table-5",
    "InfoMin",
    "Table 5",
    "views learned by flows",
    cells=_TABLE_5,
    claims=(
        Claim("1", "semi-supervised is above supervised", "§4.2.2", (Beats("semi-supervised", "supervised"),),
            _SPACES, note=_FLOWS),
        Claim("2", "semi-supervised is above unsupervised", "numbers", (Beats("semi-supervised", "unsupervised"),),
            _SPACES, note=_FLOWS),
        Claim("3", "semi-supervised is above raw views", "§4.2.2", (Beats("semi-supervised", "raw views"),), _SPACES,
            note=_FLOWS),
        Claim("4", "unsupervised spreads more", "§4.2.1", (Beats("unsupervised", "semi-supervised"),),
            ("RGB, SD", "YDbDr, SD"), note=_FLOWS),
        Claim("5", "YDbDr: unsupervised is below raw views", "numbers", (Beats("raw views", "unsupervised"),),
            ("YDbDr",), note=_FLOWS),
        Claim("6", "supervised is below raw views", "numbers", (Beats("raw views", "supervised"),), _SPACES,
            note=_FLOWS),
    ),
)

ENTRIES = (TABLE_1, TEXT_C3, TABLE_6, TABLE_4, TABLE_5)
"""InfoMin's tables, in the paper's order."""
