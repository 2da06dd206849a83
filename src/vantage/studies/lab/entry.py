"""A table or figure of a paper as data: its cells, the paper's values for them, and the claims made about them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from vantage.errors import UserError
from vantage.studies.lab.contracts import Measure, OnSets, Toy
from vantage.studies.lab.judging.predicates import Predicate
from vantage.studies.lab.panel import Panel
from vantage.training.run import Run

__all__ = ["Arm", "Cell", "Claim", "Entry", "Gate", "Reason", "Untrained", "paper", "with_runs"]


@dataclass(frozen=True)
class Arm:
    """A network, trained from scratch or continued from another arm's checkpoint."""

    run: Run
    """The whole composition, with seed 0; its `data` says how many images it trains on and how many are held out."""

    images: str = "tiny-imagenet-50"
    """Name of the image set (`vantage.studies.lab.sets`)."""

    start: "Arm | None" = None
    """The arm that this one continues, from the checkpoint of the same seed: encoders, memory and optimizer, as far as
    they fit. Two arms of one seed then share the base, the order of images and the crops. None: from scratch."""

    def with_seed(self, seed: int) -> Run:
        """The run with this seed. A branch draws different crops from its base, and so does a branch of that branch."""
        return replace(self.run, seed=seed if self.start is None else self.start.with_seed(seed).seed + _BRANCH)


_BRANCH = 1_000
"""Added to the seed of a continued arm."""


@dataclass(frozen=True)
class Untrained:
    """The baseline without training for an arm's images: the gate for every claim about accuracy."""

    arm: Arm
    """The arm it is compared with."""

    pixels: bool = False
    """Whether raw pixels are evaluated instead of a random encoder."""


@dataclass(frozen=True)
class Cell:
    """A row of a table or a point of a figure."""

    name: str
    """Its name in claims."""

    experiment: "Arm | Untrained | Toy | OnSets | None" = None
    """What produces its numbers on two cores; None if only the paper's value is known."""

    measures: tuple[Measure, ...] = ()
    """What is measured on its network; empty for other experiments, which measure themselves."""

    paper: Mapping[str, float] = field(default_factory=dict)
    """The paper's values by column."""


@dataclass(frozen=True)
class Reason:
    """Why a claim fails here, or what was ruled out as the reason."""

    text: str
    """The reason in words."""

    predicate: Predicate | None = None
    """A statement about cells of the same entry that shows it; the reason is given only if this holds."""

    measure: str = ""
    """The measure by which the statement is tested."""

    ruled_out: bool = False
    """Whether the text names something that is not the reason."""


@dataclass(frozen=True)
class Gate:
    """The requirement that a base has learned something: it must be above raw pixels and above its random encoder."""

    base: str
    """Name of the base's cell."""

    floors: tuple[str, ...]
    """Names of the cells that the base must be above."""

    measure: str
    """The measure by which they are compared."""

    @property
    def cells(self) -> tuple[str, ...]:
        """Names of the base's cell and of the floors'."""
        return (self.base, *self.floors)


@dataclass(frozen=True)
class Claim:
    """A claim of a paper that cells can contradict."""

    name: str
    """Its number within the entry."""

    text: str
    """What is claimed."""

    place: str
    """Where the paper makes the claim, such as "§4.2"; "ours" for a question that the paper does not ask."""

    predicates: tuple[Predicate, ...]
    """Statements about cells, all of which must hold."""

    columns: tuple[str, ...] = ()
    """The columns of the paper that the claim is about; none if the paper gives no numbers."""

    measure: str = ""
    """The measure by which the claim is tested here; empty if it is not tested."""

    accuracy: bool = False
    """Whether the claim is about accuracy, so that the gates must be passed first."""

    gates: tuple[Gate, ...] = ()
    """The gates of a claim about accuracy, all of which must be passed; if empty, the entry's. Needed by arms that
    continue another base than the entry's gate asks of."""

    precondition: Predicate | None = None
    """The claim is void unless this holds, by the same measure."""

    note: str = ""
    """Why the claim is not tested here, or what to bear in mind."""

    reasons: tuple[Reason, ...] = ()
    """What the page says if the claim is refuted."""

    stand_in: bool = False
    """Whether the paper's claim is asked of something else here, such as mosaics in place of COCO."""

    part_of: str = ""
    """The claims of the same cells that hold this one as a whole, such as "claim 1 of infomin-figure-14"; the page
    counts such a claim apart. Empty if it stands alone."""

    @property
    def is_ours(self) -> bool:
        """Whether the question is ours: the paper does not ask it, or asks it of something else."""
        return self.stand_in or self.place == "ours" or self.place.endswith(", ours")


@dataclass(frozen=True)
class Entry:
    """One table or figure."""

    name: str
    """Its name on the command line, such as jcl-table-1."""

    paper: str
    """JCL, CNCE, InterCLR or InfoMin; Ours for what no paper asks."""

    place: str
    """Table 1, Figure 2a, …"""

    summary: str
    """What is compared, in one line."""

    claims: tuple[Claim, ...]
    """The claims."""

    cells: tuple[Cell, ...] = ()
    """The cells that the claims are about."""

    commands: tuple[str, ...] = ()
    """Commands that run it at the paper's own scale, given its data and hardware."""

    about_commands: str = ""
    """What the paper does not say about the runs of the commands, and what they take instead."""

    gate: Gate | None = None
    """The gate that claims about accuracy must pass first, unless they have gates of their own."""

    scale: str = ""
    """How the two-cores level differs from the paper, or why there is no such level."""

    panels: tuple[Panel, ...] = ()
    """The panels of its picture; none if its cells lie on no axis."""

    map_of: tuple[str, ...] = ()
    """Cells whose augmentations are also drawn side by side, as t-SNE lays them out."""

    def __post_init__(self) -> None:
        names = [cell.name for cell in self.cells]
        if len(set(names)) < len(names) or len({claim.name for claim in self.claims}) < len(self.claims):
            raise UserError(f"{self.name}: two cells or two claims have the same name")
        for claim in self.claims:
            shown_by = (reason.predicate for reason in claim.reasons)
            predicates = [one for one in (*claim.predicates, claim.precondition, *shown_by) if one is not None]
            self._check_cells(f"claim {claim.name}", (term for one in predicates for term in one.terms))
            gated = (name for gate in claim.gates for name in gate.cells)
            self._check_cells(f"gate of claim {claim.name}", gated, may_name_measure=False)
        self._check_cells("gate", self.gate.cells if self.gate else (), may_name_measure=False)
        self._check_cells("picture", (term for panel in self.panels for term in panel.terms))
        self._check_cells("map", self.map_of, may_name_measure=False)

    def _check_cells(self, where: str, terms: Iterable[str], may_name_measure: bool = True) -> None:
        """Raises `UserError` for the first term, a cell or if allowed CELL @ MEASURE, whose cell does not exist."""
        names = {cell.name for cell in self.cells}
        for term in terms:
            if (term.partition(" @ ")[0] if may_name_measure else term) not in names:
                raise UserError(f"{self.name}, {where}: there is no cell {term!r}")

    def cell(self, name: str) -> Cell:
        """The cell of that name."""
        return next(cell for cell in self.cells if cell.name == name)

    @property
    def runnable_cells(self) -> tuple[Cell, ...]:
        """The cells that can be run on two cores."""
        return tuple(cell for cell in self.cells if cell.experiment is not None)


_Experiment = TypeVar("_Experiment", bound=Arm | Untrained)


def with_runs(experiment: _Experiment, change: Callable[[Run], Run]) -> _Experiment:
    """Change the run of an arm, and the runs of all arms that it continues; for a baseline, the runs of its arm."""
    if isinstance(experiment, Untrained):
        return replace(experiment, arm=with_runs(experiment.arm, change))
    start = with_runs(experiment.start, change) if experiment.start else None
    return replace(experiment, run=change(experiment.run), start=start)


def paper(columns: str, *rows: tuple[Any, ...]) -> tuple[Cell, ...]:
    """Cells that hold only the paper's values. `columns` holds the names, separated by slashes; each row is a name and
    its values, None if a value is missing."""
    names = tuple(part.strip() for part in columns.split("/"))
    cells = []
    for name, *values in rows:
        if len(values) != len(names):
            raise UserError(f"{name} has {len(values)} values for the columns {', '.join(names)}")
        numbers = {column: float(value) for column, value in zip(names, values, strict=True) if value is not None}
        cells.append(Cell(name, paper=numbers))
    return tuple(cells)
