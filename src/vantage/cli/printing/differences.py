"""Show what a run changes in its recipe, and why."""

from collections.abc import Collection
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

from vantage.cli.printing.console import WHY, Console
from vantage.composition.printing import in_full

if TYPE_CHECKING:
    from vantage.training.run import Run

__all__ = ["show_differences"]


def show_differences(
    recipe: "Run",
    planned_run: "Run",
    fitted_run: "Run",
    run: "Run",
    choices: Collection[str],
    console: Console,
    otherwise: str = "follows what was given",
) -> None:
    """Print the differences from the recipe with their reasons. `choices` are the paths set by options; `otherwise` is
    the reason for all changes that are neither chosen nor fitted to the images. A part that takes the place of another
    is shown with all its fields, since its defaults need not be what the other had."""
    from vantage.composition.fields import differences

    option_paths, fitted_paths = (
        {path for path, *_ in differences(*pair)} for pair in ((recipe, planned_run), (planned_run, fitted_run))
    )
    rows = []
    for path, before, after in differences(recipe, run):
        if any(f"{each}.".startswith(f"{path}.") or path.startswith(f"{each}.") for each in choices):
            reason = "given"
        elif path in fitted_paths and path not in option_paths and _at(fitted_run, path) == after:
            reason = "fitted to the images"
        else:
            reason = otherwise
        rows.append((path, _shown(before), _shown(after), reason))
    if rows:
        console.notes("changed from the recipe", rows, ("field", "recipe", "this run", WHY))


def _shown(value: Any) -> str:
    from vantage.cli.printing.summary import short

    return in_full(value) if is_dataclass(value) else short(value)


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value[int(name)] if isinstance(value, tuple) else getattr(value, name)
    return value
