"""What a run changes in its recipe, and why."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from vantage.cli.console import Console

if TYPE_CHECKING:
    from vantage.training.run import Run

__all__ = ["show_differences"]


def show_differences(
    recipe: "Run",
    planned: "Run",
    fitted: "Run",
    run: "Run",
    choices: Collection[str],
    console: Console,
    otherwise: str = "follows what was given",
) -> None:
    """What differs from the recipe, and why; `choices` are the paths that options set, `otherwise` is why the rest
    differs."""
    from vantage.cli.summary import short
    from vantage.composition.fields import differences

    chosen, fits = ({path for path, *_ in differences(*pair)} for pair in ((recipe, planned), (planned, fitted)))
    rows = []
    for path, before, after in differences(recipe, run):
        if any(f"{each}.".startswith(f"{path}.") or path.startswith(f"{each}.") for each in choices):
            reason = "given"
        elif path in fits and path not in chosen and _at(fitted, path) == after:
            reason = "fitted to the images"
        else:
            reason = otherwise
        rows.append((path, short(before), short(after), reason))
    if rows:
        console.notes("changed from the recipe", rows, ("field", "recipe", "this run", "why"))


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value[int(name)] if isinstance(value, tuple) else getattr(value, name)
    return value
