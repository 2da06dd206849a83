"""The picture of an entry's map: augmentations of test images as t-SNE lays them out."""

from vantage.storage.figures import picture
from vantage.studies.analyse.classes import AugmentationMaps
from vantage.studies.lab.page.annotations import SVG_STYLE

__all__ = ["draw_map", "map_in_words"]


def draw_map(maps: AugmentationMaps) -> bytes:
    """The picture as SVG, with a description."""
    from matplotlib import rc_context

    with rc_context(SVG_STYLE):
        return picture(maps.figure(), "svg", f"{map_in_words(maps)}.")


def map_in_words(maps: AugmentationMaps) -> str:
    """What the picture shows."""
    images, augmentations = maps.maps[0].place.shape[:2]
    return (
        f"{augmentations} augmentations of {images} test images of {len(maps.classes)} classes, through the networks of"
        f" {', '.join(one.name for one in maps.maps)} with one seed: a color for each class, lines to the middle of"
        " an image's augmentations, positions by t-SNE"
    )
