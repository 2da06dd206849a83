"""The options of `vantage analyse views`."""

from dataclasses import dataclass
from typing import Annotated

from vantage.cli.reading.arguments import Repeated, Word
from vantage.cli.reading.options import check_count
from vantage.errors import UserError

__all__ = ["SweepOptions", "information_settings"]


@dataclass(frozen=True)
class SweepOptions:
    """The options of `analyse views`."""

    out: Annotated[str, Word("FOLDER")]
    """Folder for rows, tables, pictures and runs; a sweep that it already holds is continued."""

    test: Annotated[str, Word("PATH")] = ""
    """Labeled images to measure I_NCE and accuracy on; if omitted, a fifth of each class is held out for this."""

    recipe: Annotated[str, Word("RECIPE")] = ""
    """Recipe to vary, or MODULE:NAME of your own; if omitted, one that suits the sweep."""

    backbone: str = ""
    """Another backbone, named as for pretrain; convolutions takes a few seconds per epoch for 3,000 images of 32 px on
    one core."""

    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds, such as 0 1 2; every value is trained once with each."""

    epochs: int = 20
    """Passes of every run over its images; with the recipes' numbers, a sweep would take weeks."""

    batch_size: int | None = None
    """Images per step; if omitted, fitted to the images."""

    images: int = 0
    """Train on this many images, equally many from each class; 0: all."""

    grid: bool = False
    """With several fields: train every combination of their values; otherwise their first values belong together, then
    their second, and so on."""

    information: bool = True
    """Measure I_NCE; --no-information leaves it out, which saves time after every run."""

    baselines: bool = True
    """Evaluate raw pixels and random encoders too."""

    discard: bool = False
    """Remove each run's folder after measuring it."""

    set: Repeated = ()
    """A field of every run, as for pretrain, or of the I_NCE estimate: --set information.negatives=100. Without SWEEP,
    several values are a sweep: --set epochs=10,20 crop.size=16,32."""

    def __post_init__(self) -> None:
        check_count("--epochs", self.epochs)
        check_count("--batch-size", self.batch_size)


def information_settings(options: SweepOptions) -> list[str]:
    """The settings of the I_NCE estimate in `--set`. Raises `UserError` if it is left out all the same."""
    settings = [text.partition(".")[2] for text in options.set if text.startswith("information.")]
    if settings and not options.information:
        raise UserError(f"--no-information measures no I_NCE, so information.{settings[0]} has no use: leave one out")
    return settings
