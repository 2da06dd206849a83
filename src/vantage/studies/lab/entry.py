"""A table or figure of a paper as data: its cells, their values there, and what the text claims of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

from vantage.composition.fitting import parts_of
from vantage.errors import UserError
from vantage.studies.lab.panel import Panel
from vantage.studies.lab.predicates import Predicate
from vantage.training.run import Data, Run

__all__ = ["Arm", "Cell", "Claim", "Entry", "Gate", "Measure", "OfOtherSets", "Toy", "Untrained", "paper", "with_runs"]


@dataclass(frozen=True)
class Arm:
    """A network, trained from the start or continued from another arm's checkpoint."""

    run: Run
    """The whole composition, with seed 0; its `data` says how many images are held out and trained on."""

    images: str = "tiny-imagenet-50"
    """Name of the set (`vantage.studies.lab.sets`)."""

    start: "Arm | None" = None
    """The arm whose checkpoint of the same seed it continues: encoders, memory and optimizer where they fit. Pairs of
    a seed then share the base, the order of images and the crops. None: from scratch."""

    def seeded(self, seed: int) -> Run:
        """The run of one seed. A branch draws other crops than its base did, and so does a branch of that branch."""
        return replace(self.run, seed=seed if self.start is None else self.start.seeded(seed).seed + _BRANCH)


_BRANCH = 1_000
"""What the seed of a continued arm is larger by."""


@dataclass(frozen=True)
class Untrained:
    """What an arm's images look like without its training: the gate of every claim about accuracy."""

    arm: Arm
    """The arm it is compared with."""

    pixels: bool = False
    """Whether pixels themselves are judged, instead of a random encoder."""


@runtime_checkable
class Toy(Protocol):
    """An experiment without images: a frozen value whose fields are all of its settings."""

    @property
    def name(self) -> str:
        """In a word."""
        ...

    def measured(self, seed: int) -> dict[str, float]:
        """Numbers by name."""
        ...


@runtime_checkable
class Measure(Protocol):
    """What is measured on a cell's network: a frozen value."""

    @property
    def name(self) -> str:
        """In a word."""
        ...

    @property
    def version(self) -> int:
        """Raised when the same settings mean something else."""
        ...

    def __call__(self, seen: Any) -> dict[str, float]:
        """Numbers by name, of a `vantage.studies.lab.measuring.Seen`."""
        ...


@runtime_checkable
class OfOtherSets(Measure, Protocol):
    """A measure that looks at other sets than its cell's, whose images its numbers then depend on."""

    @property
    def others(self) -> tuple[str, ...]:
        """Names of the sets (`vantage.studies.lab.sets`)."""
        ...

    @property
    def data(self) -> Data:
        """What is taken of each."""
        ...


@dataclass(frozen=True)
class Cell:
    """A row of a table or a point of a figure."""

    name: str
    """As claims name it."""

    made: "Arm | Untrained | Toy | None" = None
    """How it is made on two cores; none: the paper's value alone."""

    measures: tuple[Measure, ...] = ()
    """What is measured of it; a toy measures by itself."""

    paper: Mapping[str, float] = field(default_factory=dict)
    """The paper's values, by its columns."""


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper that cells can contradict."""

    name: str
    """Its number within the entry."""

    words: str
    """What is claimed."""

    place: str
    """Where the paper claims it, such as "§4.2"; "ours" for a question that it does not ask."""

    predicates: tuple[Predicate, ...]
    """Statements about cells, all of which have to hold."""

    columns: tuple[str, ...] = ()
    """The paper's columns for which it is claimed; none where the paper gives no number."""

    by: str = ""
    """The measure that asks it here; empty: it is not asked."""

    accuracy: bool = False
    """Whether it is about accuracy, which the gate precedes."""

    needs: Predicate | None = None
    """Without this, by the same measure, the claim is void."""

    why: str = ""
    """Why it is not asked here, or what to bear in mind."""


@dataclass(frozen=True)
class Gate:
    """A base that has learned something: above raw pixels and above its random encoder."""

    base: str
    """Cell of the base."""

    floors: tuple[str, ...]
    """Cells that it has to be above."""

    by: str
    """The measure."""


@dataclass(frozen=True)
class Entry:
    """One table or figure."""

    name: str
    """Its word on the command line, such as jcl-table-1."""

    paper: str
    """JCL, CNCE, InterCLR or InfoMin."""

    place: str
    """Table 1, Figure 2a, …"""

    what: str
    """What is compared, in a line."""

    claims: tuple[Claim, ...]
    """What is claimed."""

    cells: tuple[Cell, ...] = ()
    """What it is claimed of."""

    commands: tuple[str, ...] = ()
    """The paper's own scale, as commands that run where its data and hardware are."""

    gate: Gate | None = None
    """What precedes claims about accuracy."""

    scale: str = ""
    """What the two-cores level leaves out, or why there is none."""

    panels: tuple[Panel, ...] = ()
    """Its picture; none where its cells lie on no axis."""

    def __post_init__(self) -> None:
        names = [cell.name for cell in self.cells]
        if len(set(names)) < len(names) or len({claim.name for claim in self.claims}) < len(self.claims):
            raise UserError(f"{self.name}: a cell or a claim is named twice")
        for claim in self.claims:
            for term in (term for predicate in claim.predicates for term in predicate.terms):
                if term.partition(" @ ")[0] not in names:
                    raise UserError(f"{self.name}, claim {claim.name}: there is no cell {term!r}")
        for term in (term for panel in self.panels for term in panel.terms):
            if term.partition(" @ ")[0] not in names:
                raise UserError(f"{self.name}, picture: there is no cell {term!r}")

    def cell(self, name: str) -> Cell:
        """The cell of that name."""
        return next(cell for cell in self.cells if cell.name == name)

    @property
    def made(self) -> tuple[Cell, ...]:
        """The cells that two cores can make."""
        return tuple(cell for cell in self.cells if cell.made is not None)


_Made = TypeVar("_Made", bound=Arm | Untrained)


def with_runs(made: _Made, change: Callable[[Run], Run]) -> _Made:
    """An arm with its run changed, and those of the arms that it continues; or the same of what it is compared with."""
    if isinstance(made, Untrained):
        return replace(made, arm=with_runs(made.arm, change))
    start = with_runs(made.start, change) if made.start else None
    return replace(made, run=change(made.run), start=start)


def paper(columns: str, *rows: tuple[Any, ...]) -> tuple[Cell, ...]:
    """Cells that hold the paper's values alone: names of columns between slashes, then rows of a name and values, None
    where there is none."""
    names = tuple(part.strip() for part in columns.split("/"))
    cells = []
    for name, *values in rows:
        if len(values) != len(names):
            raise UserError(f"{name} has {len(values)} values for the columns {', '.join(names)}")
        numbers = {column: float(value) for column, value in zip(names, values, strict=True) if value is not None}
        cells.append(Cell(name, paper=numbers))
    return tuple(cells)


def versions_of(value: Any) -> dict[str, int]:
    """The parts of a composition, each with its version: 1 unless its class has a `version`, which is raised when the
    same settings come to mean something else."""
    kinds = {type(part) for part in parts_of(value) if hasattr(type(part), "__dataclass_fields__")}
    return {kind.__name__: int(getattr(kind, "version", 1)) for kind in sorted(kinds, key=lambda kind: kind.__name__)}
