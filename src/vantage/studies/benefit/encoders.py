"""The other encoders in a comparison, and how many of the test images the run was pretrained on."""

from collections.abc import Sequence
from pathlib import Path

from vantage.data.sources.source import Source
from vantage.errors import UserError
from vantage.frozen.encoder import FrozenEncoder, load
from vantage.frozen.outside import outside_weights
from vantage.storage.provenance import first_images
from vantage.training.images import training_part

__all__ = ["count_pretraining_images", "encoders_by_name"]


def encoders_by_name(run: Path, others: Sequence[Path]) -> dict[str, FrozenEncoder]:
    """Other weights by their names in tables: their own names, or those of their folders. Raises `UserError` if one is
    given twice, or if two have the same name."""
    encoders: dict[str, FrozenEncoder] = {}
    paths = {run.resolve()}
    for path in others:
        if path.resolve() in paths:
            raise UserError(f"{path} is named twice: name each run and each file once")
        paths.add(path.resolve())
        encoder = load(path)
        name = encoder.name if outside_weights(path) else path.resolve().name
        if name in encoders:
            raise UserError(
                f"two of the others are called {name}, {path} and an earlier one: rename a folder or a file"
            )
        encoders[name] = encoder
    return encoders


def count_pretraining_images(run: Path, encoder: FrozenEncoder, images: Source, test: Source) -> int | None:
    """How many of the test images, which were held out of `images`, the run was pretrained on; None if unknown. A
    separate test set is not counted, since its names may coincide."""
    first = None if outside_weights(run) else first_images(run)
    try:
        training_images = training_part(images, encoder.run.data)
    except UserError:  # it was trained on more images than these
        return None
    if first is None or first.get("fingerprint") != training_images.fingerprint():
        return None
    training_names = {training_images.name(number) for number in range(len(training_images))}
    return sum(test.name(number) in training_names for number in range(len(test)))
