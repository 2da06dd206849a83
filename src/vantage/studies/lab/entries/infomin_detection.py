"""InfoMin's tables of detection: the paper's values and its claims about them. The first table asks for mosaics what
two cores can answer of all of them."""

# fmt: off

from dataclasses import replace

from vantage.studies.lab.entries.from_scratch import LENGTHS, METHODS, STRONG_VIEWS
from vantage.studies.lab.entries.paper_commands import detectors, pretraining
from vantage.studies.lab.entry import Cell, Claim, Entry, Reason, Untrained, paper
from vantage.studies.lab.judging.predicates import Beats, Predicate
from vantage.studies.lab.judging.shapes import Gains
from vantage.studies.lab.measures.mosaics import MIOU, MosaicSegmentation, frozen_arms
from vantage.studies.lab.panel import Panel

__all__ = ["ENTRIES"]

_AP = ("box", "box 50", "box 75", "mask", "mask 50", "mask 75")
_NO_DETECTOR = "two cores cannot train a detector on COCO or VOC"
_NO_LABELS = (f"{_NO_DETECTOR}, and no network is trained with labels: claim a of infomin-table-2 compares with no"
    " pretraining")
_RIVALS = f"{_NO_DETECTOR}: claim b of infomin-table-2 asks this of mosaics"
_SCHEDULES = f"{_NO_DETECTOR}, so there are no schedules: claims a and b of infomin-table-2 are about mosaics"
_OWN = ("instance_discrimination_pycontrast", "pirl_pycontrast")
"""The recipes of two rows that are InfoMin's own runs of other methods."""
_RUNS = dict(zip(("InstDis", "PIRL"), _OWN, strict=True)) | {"InfoMin": "infomin", "MoCo": "moco_v1",
    "MoCo v2": "moco_v2"}
_ROWS = ("InstDis and PIRL are the authors' own runs, of which the paper says only that they have 200 epochs: they are"
    " trained as in their code, PyContrast. Supervised weights come from elsewhere")
_LENGTH = "the paper does not say how long these networks are trained: as long as in table 6"


def _commands(cells: tuple[Cell, ...]) -> tuple[str, ...]:
    """The rows whose recipes are here, each in a folder for the detector."""
    rows = {cell.name.removesuffix(" 1x") for cell in cells if cell.paper}
    return detectors(run for row, run in _RUNS.items() if row in rows)


def _cells(schedule: str, *rows: tuple[str, str]) -> tuple[Cell, ...]:
    """Cells from rows of a name and six values; the schedule is added to the name."""
    return paper(" / ".join(_AP), *((f"{name} {schedule}", *map(float, values.split("/"))) for name, values in rows))


def _over(first: str, second: str, schedules: tuple[str, ...]) -> tuple[Predicate, ...]:
    return tuple(Beats(f"{first} {when}", f"{second} {when}") for when in schedules)


def _entry(number: int, what: str, cells: tuple[Cell, ...], schedules: tuple[str, ...], *more: Claim) -> Entry:
    first = Claim("D1", "InfoMin is above supervised", "§3.4, App. D", _over("InfoMin", "supervised", schedules), _AP,
        note=_NO_LABELS)
    return Entry(f"infomin-table-{number}", "InfoMin", f"Table {number}", what, (first, *more), cells,
        _commands(cells))


def _rivals(names: tuple[str, ...], schedules: tuple[str, ...], note: str = _RIVALS) -> Claim:
    predicates = tuple(one for name in names for one in _over("InfoMin", name, schedules))
    return Claim("D2", "InfoMin is above every contrastive row", "§3.4", predicates, _AP, note=note)


def _longer(first: str, last: str) -> Claim:
    """The gain over supervised is larger with the longer schedule."""
    gain = Gains((f"InfoMin {last}", f"supervised {last}"), (f"InfoMin {first}", f"supervised {first}"))
    return Claim("D5", f"the gain at {last} is above that at {first}", "numbers", (gain,), ("box",), note=_SCHEDULES)


_BOTH = ("1x", "2x")
_ARMS = {"InstDis": METHODS["NPID"], "MoCo": METHODS["MoCo"], "MoCo v2": LENGTHS["MoCo v2 200"],
    "InfoMin": LENGTHS["InfoMin 200"]}
"""Arms of tables 1 and 6 by the names of this table's rows."""
_ROWS_OF_TABLE_2 = (
    *_cells(
        "1x",
        ("random", "32.8/50.9/35.3/29.9/47.9/32.0"),
        ("supervised", "39.7/59.5/43.3/35.9/56.6/38.6"),
        ("InstDis", "38.8/58.4/42.5/35.2/55.8/37.8"),
        ("PIRL", "38.6/58.2/42.1/35.1/55.5/37.7"),
        ("MoCo", "39.4/59.1/42.9/35.6/56.2/38.0"),
        ("MoCo v2", "40.1/59.8/44.1/36.3/56.9/39.1"),
        ("InfoMin", "40.6/60.6/44.6/36.7/57.7/39.4"),
    ),
    *_cells(
        "2x",
        ("random", "38.4/57.5/42.0/34.7/54.8/37.2"),
        ("supervised", "41.6/61.7/45.3/37.6/58.7/40.4"),
        ("InstDis", "41.3/61.0/45.3/37.3/58.3/39.9"),
        ("PIRL", "41.2/61.2/45.2/37.4/58.5/40.3"),
        ("MoCo", "41.7/61.4/45.7/37.5/58.6/40.5"),
        ("MoCo v2", "41.7/61.6/45.6/37.6/58.7/40.5"),
        ("InfoMin", "42.5/62.7/46.8/38.4/59.7/41.4"),
    ),
)


def _masks(row: str) -> dict[str, float]:
    """The paper's AP of masks for a row, with each schedule."""
    return {f"mask {when}": cell.paper["mask"] for cell in _ROWS_OF_TABLE_2 for when in _BOTH
        if cell.name == f"{row} {when}"}


_FROZEN = tuple(Cell(name, experiment, (MosaicSegmentation(),), _masks(name.removesuffix(" encoder")))
    for name, experiment in {"random encoder": Untrained(METHODS["MoCo"]), **_ARMS}.items())

_SCENES = Reason("scenes in which no training could help: MoCo v2 is above the random encoder",
    Beats("MoCo v2", "random encoder"), MIOU, True)
_TABLE_2 = _entry(
    2,
    "COCO, R50-FPN",
    (
        *_ROWS_OF_TABLE_2,
        *_FROZEN,
    ),
    _BOTH,
    _rivals(("InstDis", "PIRL", "MoCo", "MoCo v2"), _BOTH),
    Claim("D3", "InstDis and PIRL are below supervised in AP", "numbers", (*_over("supervised", "InstDis", _BOTH),
        *_over("supervised", "PIRL", _BOTH)), ("box", "mask"), note=_NO_LABELS),
    Claim("a", "every pretraining here is above the random encoder: mean IoU of a decoder for mosaics",
        "numbers, for mosaics", tuple(Beats(name, "random encoder") for name in _ARMS), (), MIOU,
        stand_in=True, reasons=(
            Reason("a bank of all images, whose rows are of the last epoch, teaches later than a queue: MoCo is above"
                " InstDis after as many images", Beats("MoCo", "InstDis"), MIOU),
            _SCENES,
        )),
    Claim("b", "InfoMin is above the other methods here: mean IoU of that decoder", "§3.4, for mosaics",
        tuple(Beats("InfoMin", name) for name in ("InstDis", "MoCo", "MoCo v2")), (), MIOU, stand_in=True, reasons=(
            STRONG_VIEWS,
            _SCENES,
        )),
)
TABLE_2 = replace(
    _TABLE_2,
    commands=(*(pretraining(recipe, 200) for recipe in _OWN), *_TABLE_2.commands),
    about_commands=_ROWS,
    scale=f"{frozen_arms('tables 1 and 6')}; each from scratch, 4 epochs for the paper's 200",
    panels=(Panel(MIOU, {"": tuple(cell.name for cell in _FROZEN)}, paper_columns=tuple(_masks("MoCo")),
        paper_label="COCO, AP of masks"),),
)

_VOC = paper(
    "AP50 / AP / AP75 / ImageNet",
    ("random", 60.2, 33.8, 33.1, None),
    ("supervised", 81.3, 53.5, 58.8, 76.1),
    ("InstDis", 80.9, 55.2, 61.2, 59.5),
    ("PIRL", 81.0, 55.5, 61.3, 61.7),
    ("MoCo", 81.5, 55.9, 62.6, 60.6),
    ("InfoMin", 82.7, 57.6, 64.6, 70.1),
)

TABLE_3 = Entry(
    "infomin-table-3",
    "InfoMin",
    "Table 3",
    "VOC07+12, R50-C4",
    cells=_VOC,
    claims=(
        Claim("D1", "InfoMin is above supervised", "§3.4", (Beats("InfoMin", "supervised"),), ("AP50", "AP", "AP75"),
            note=_NO_LABELS),
        Claim("D2", "InfoMin is above every contrastive row", "§3.4",
            tuple(Beats("InfoMin", name) for name in ("InstDis", "PIRL", "MoCo")), ("AP50", "AP", "AP75"),
            note=f"{_RIVALS}; the paper's InstDis has 59.5 on ImageNet here, and 56.5 in table 1"),
        Claim("D6", "MoCo is above PIRL here, below it on ImageNet", "numbers", (Beats("MoCo @ AP", "PIRL @ AP"),
            Beats("PIRL @ ImageNet", "MoCo @ ImageNet")), ("AP",),
            note=f"{_NO_DETECTOR}, and PIRL is not trained: infomin-table-2 has MoCo's mean IoU for mosaics"),
    ),
    commands=_commands(_VOC),
    about_commands=_ROWS,
)

TABLE_7 = _entry(
    7,
    "COCO, R50-C4",
    (
        *_cells(
            "1x",
            ("random", "26.4/44.0/27.8/29.3/46.9/30.8"),
            ("supervised", "38.2/58.2/41.2/33.3/54.7/35.2"),
            ("MoCo", "38.5/58.3/41.6/33.6/54.8/35.6"),
            ("InfoMin", "39.0/58.5/42.0/34.1/55.2/36.3"),
        ),
        *_cells(
            "2x",
            ("random", "35.6/54.6/38.2/31.4/51.5/33.5"),
            ("supervised", "40.0/59.9/43.1/34.7/56.5/36.9"),
            ("MoCo", "40.7/60.5/44.1/35.6/57.4/38.1"),
            ("InfoMin", "41.3/61.2/45.0/36.0/57.9/38.3"),
        ),
    ),
    _BOTH,
    _rivals(("MoCo",), _BOTH, f"{_RIVALS}; the paper prints .1, .1, .1 (1x) and .7, .8, .7 (2x) as the gains of MoCo's"
        " masks over supervised, and its values give .3, .1, .4 and .9, .9, 1.2"),
)

TABLE_8 = _entry(
    8,
    "COCO, R50-FPN, 6x",
    (
        *(cell for cell in _ROWS_OF_TABLE_2 if cell.name.partition(" ")[0] not in ("InstDis", "PIRL")),
        *_cells(
            "6x",
            ("random", "42.7/62.6/46.7/38.6/59.9/41.6"),
            ("supervised", "42.6/62.4/46.5/38.5/59.9/41.5"),
            ("InfoMin", "43.6/63.6/47.3/39.2/60.6/42.3"),
        ),
    ),
    ("1x", "2x", "6x"),
    _rivals(("MoCo", "MoCo v2"), _BOTH),
    Claim("D4", "without pretraining, 1x is far below supervised and 6x is not", "numbers",
        (Beats("supervised 1x", "random 1x", 3.0), Beats("random 6x", "supervised 6x", -1.0)), ("box",),
        note=_SCHEDULES),
    _longer("1x", "6x"),
)


def _larger(number: int, what: str, network: str, *rows: tuple[str, str, str]) -> Entry:
    """InfoMin against supervised with a larger network, which is trained by the commands of table 6."""
    cells = tuple(c for when, low, high in rows for c in _cells(when, ("supervised", low), ("InfoMin", high)))
    schedules = tuple(when for when, _, _ in rows)
    entry = _entry(number, what, cells, schedules, *((_longer("1x", "6x"),) if "6x" in schedules else ()))
    return replace(entry, commands=detectors((f"infomin_{network}",)), about_commands=_LENGTH)


ENTRIES = (
    TABLE_2,
    TABLE_3,
    TABLE_7,
    TABLE_8,
    _larger(9, "COCO, R101-C4", "resnet101", ("1x", "40.9/60.6/44.2/35.1/56.8/37.3", "42.5/62.1/46.1/36.7/58.7/39.2"),
        ("2x", "42.5/62.3/46.1/36.4/58.7/38.7", "43.9/63.5/47.5/37.8/60.4/40.2")),
    _larger(10, "COCO, R101-FPN", "resnet101", ("1x", "42.0/62.3/46.0/37.6/59.1/40.1", "42.9/62.6/47.2/38.6/59.7/41.6"),
        ("2x", "43.3/63.3/47.1/38.8/60.1/42.1", "44.5/64.4/48.8/39.9/61.5/42.9"),
        ("6x", "44.1/63.7/48.0/39.5/61.0/42.4", "45.3/65.0/49.3/40.5/62.5/43.7")),
    _larger(11, "COCO, Cascade R101-FPN", "resnet101",
        ("1x", "44.9/62.3/48.8/38.8/59.9/42.0", "45.8/63.1/49.5/39.6/60.4/42.9"),
        ("2x", "45.9/63.4/49.7/39.8/60.9/43.0", "47.3/64.6/51.5/40.9/62.1/44.6"),
        ("6x", "46.6/64.0/50.6/40.5/61.9/44.1", "48.2/65.8/52.7/41.8/63.5/45.6")),
    _larger(12, "COCO, X101-FPN", "resnext101",
        ("1x", "44.1/64.8/48.3/39.3/61.5/42.3", "45.0/65.3/49.5/40.1/62.3/43.1"),
        ("2x", "44.6/64.4/49.0/39.8/61.6/43.0", "45.4/65.3/49.6/40.5/62.5/43.8")),
    _larger(13, "COCO, X152-FPN, against weights of ImageNet-5K", "resnext152",
        ("1x", "45.6/65.7/50.1/40.6/63.0/43.5", "46.4/66.5/50.8/41.3/63.6/44.4")),
)
"""InfoMin's tables of detection, in the paper's order."""
