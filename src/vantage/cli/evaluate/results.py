"""Print the result of a protocol."""

from pathlib import Path
from typing import TYPE_CHECKING

from vantage.cli.printing.console import Console
from vantage.errors import quantity

if TYPE_CHECKING:
    from vantage.evaluate import Result

__all__ = ["show_result"]


def show_result(
    result: "Result", console: Console, run: Path, out: Path | None = None, test_images: str = "test images"
) -> None:
    """Print the protocol, the test images, the measures, and the file that holds the result."""
    from vantage.evaluate.result import path_of

    details = next(iter(result.outcomes.values())).details
    if "steps" in details and "training images left out" in details:
        count = details["training images left out"]
        console.note(f"{quantity(details['steps'], 'step')}; left out: {count} training images without objects")
    console.note(f"{result.protocol} version {result.version}; {test_images}: {result.test_split}")
    for line in result.lines():
        console.result(line)
    console.note(f"saved in {path_of(result, run, out)}")
    if isinstance(each := details.get("IoU"), dict):
        rows = [(name, "none" if value is None else f"{value:.1f} %") for name, value in each.items()]
        console.notes("IoU of each class", rows)
