"""Whether a run is healthy, collapsed or under-trained, by written rules on the numbers of its epochs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from vantage.errors import quantity
from vantage.training.watching.monitor import SMALLEST_DEVIATION, smallest_rank, warning

__all__ = ["RunVerdict", "chance", "still_improving", "verdict"]

FEWEST_EPOCHS = 3
"""Epochs below which no curve can have leveled off."""

STEADY_SHARE = 0.5
"""Share of its average pace at which a curve still counts as improving."""

LARGEST = 1e300
"""Values of this size or more are ignored, and so are NaN and infinity."""

CEILING = 0.99
"""Contrastive accuracy from which on a rise no longer matters."""


@dataclass(frozen=True)
class RunVerdict:
    """How a run went, and why."""

    kind: Literal["healthy", "collapsed", "under-trained", "no verdict"]
    """In a word or two."""

    reasons: tuple[str, ...]
    """Why: sentences, the decisive one first."""

    @property
    def sentence(self) -> str:
        """The kind and the decisive reason."""
        return f"{self.kind.capitalize()}: {self.reasons[0]}"


def verdict(
    rows: Sequence[Mapping[str, Any]],
    width: int,
    batch_size: int,
    epochs: int,
    beaten: Sequence[str] = (),
) -> RunVerdict:
    """The verdict on the rows of a run's metrics, one for each epoch.

    `width` is that of the vectors that are compared, `batch_size` the number of images compared at once, `epochs` the
    number that the run is to have. `beaten` names the recorded evaluations in which a baseline was as good as the run.

    The first rule that holds decides:

    1. *no verdict*: no epoch is over, or the numbers come from a version that did not measure the spread;
    2. *collapsed*: the monitor's own warning holds for a branch in the last epoch
       (`vantage.training.watching.monitor`): a deviation below .1, or an effective rank below 3 % of the width or
       below 2;
    3. *under-trained*: epochs are missing; or there are fewer than 3; or the contrastive accuracy of the last epoch is
       at most twice chance; or the loss, the contrastive accuracy (below 99 %) or the kNN accuracy is still improving:
       in the last tenth of the epochs since its worst value it gained at half its average pace or faster, and it ended
       at its best value since then; or a baseline was as good in a recorded evaluation;
    4. *healthy*: none of these.
    """
    if not rows:
        return RunVerdict("no verdict", ("no epoch of this run is over, so there is nothing to judge yet.",))
    last = dict(rows[-1])
    if missing := [name for name in ("loss", "accuracy", "deviation", "rank") if name not in last]:
        reason = f"the version that trained this run did not record {', '.join(missing)}, so it cannot be judged."
        return RunVerdict("no verdict", (reason,))
    spread = {name: float(last[name]) for name in last if name.partition(".")[0] in ("deviation", "rank")}
    collapse = warning(spread, width)
    if collapse:
        return RunVerdict("collapsed", (f"{collapse}.", *_spread(last, width)))
    reasons = [*_missing_epochs(last, rows, epochs), *_at_chance(last, batch_size), *_improving(rows)]
    reasons += [f"a baseline is as good as the run in {name}." for name in beaten]
    also = [*_spread(last, width), *_recoveries(rows)]
    if reasons:
        return RunVerdict("under-trained", (*reasons, *also))
    return RunVerdict("healthy", (_success(last, batch_size), *also))


def _success(last: Mapping[str, Any], batch_size: int) -> str:
    return (
        f"in the last epoch {last['accuracy']:.0%} of the queries were closer to their own image than to any other "
        f"(chance: {chance(batch_size):.1%}), the vectors are well spread, and the curves have leveled off."
    )


def chance(batch_size: int) -> float:
    """Contrastive accuracy of vectors that carry no information: 1 / the number of images compared at once."""
    return 1 / max(1, batch_size)


def still_improving(values: Sequence[float], higher: bool) -> bool:
    """Whether a curve still improves at `STEADY_SHARE` of its average pace or faster, in the last tenth (at least one)
    of its steps since its worst value. The worst, because the loss of a method with a memory rises while the memory
    fills. A curve that ends below its best value since then does not improve: it goes up and down."""
    heights = [value if higher else -value for value in values]
    worst = min(range(len(heights)), key=heights.__getitem__, default=0)
    steps = len(heights) - 1 - worst
    if steps < 1 or heights[-1] < max(heights[worst:]):
        return False
    recent = max(1, round(steps / 10))
    total, gain = heights[-1] - heights[worst], heights[-1] - heights[-1 - recent]
    return total > 0 and gain / recent >= STEADY_SHARE * total / steps


def _spread(last: Mapping[str, Any], width: int) -> tuple[str, ...]:
    whose = " of branch 0" if any(name.startswith("deviation.") for name in last) else ""
    return (
        f"Deviation of the vectors{whose}: {last['deviation']:.2f}, where 1 is well spread and below "
        f"{SMALLEST_DEVIATION:g} is a collapse; effective rank: {last['rank']:.1f} of {width} dimensions, where below "
        f"{smallest_rank(width):.1f} is a collapse.",
    )


def _recoveries(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    early = sum(bool(row.get("warning")) for row in rows[:-1])
    epochs = quantity(early, "earlier epoch")
    return [f"{epochs} showed signs of a collapse, from which the run recovered."] if early else []


def _missing_epochs(last: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], epochs: int) -> list[str]:
    epoch = int(last.get("epoch", len(rows)))
    if epoch < epochs:
        return [
            f"{epoch:,} of {epochs:,} epochs {'is' if epoch == 1 else 'are'} done; `vantage resume` trains the rest."
        ]
    if epoch < FEWEST_EPOCHS:
        return [f"it trained for {quantity(epoch, 'epoch')}, too few for any curve to level off."]
    return []


def _at_chance(last: Mapping[str, Any], batch_size: int) -> list[str]:
    if last["accuracy"] > 2 * chance(batch_size):
        return []
    return [
        f"only {last['accuracy']:.1%} of the queries were closer to their own image than to any other, which is about "
        f"chance ({chance(batch_size):.1%}): it has not begun to learn. Try a higher learning rate or more epochs."
    ]


def _improving(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    names = []
    for key, name, higher in (
        ("loss", "the loss", False),
        ("accuracy", "the contrastive accuracy", True),
        ("knn", "the kNN accuracy", True),
    ):
        numbers = [row[key] for row in rows if isinstance(row.get(key), int | float)]
        values = [float(number) for number in numbers if abs(number) < LARGEST]  # a file may hold any whole number
        at_ceiling = key == "accuracy" and bool(values) and values[-1] >= CEILING
        if len(values) >= FEWEST_EPOCHS and not at_ceiling and still_improving(values, higher):
            names.append(name)
    if not names:
        return []
    listing = ", ".join(names[:-1]) + " and " * (len(names) > 1) + names[-1]
    verb = "was" if len(names) == 1 else "were"
    return [f"{listing} {verb} still improving when training ended: more epochs (--epochs) should help."]
