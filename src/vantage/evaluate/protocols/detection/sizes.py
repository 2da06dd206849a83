"""Sides of images and of the anchors on them, and how many regions are used."""

from dataclasses import dataclass, replace

from vantage.errors import UserError

__all__ = ["COCO_SIZES", "VOC_SIZES", "Sizes"]


@dataclass(frozen=True)
class Sizes:
    """What images are resized to, keeping their aspect ratio, how large the anchors are, and how many regions are used.

    The papers' numbers are for photographs of about 640 x 480. For small images halve or quarter all sides; on a CPU,
    fewer regions and proposals save the most time.
    """

    short_sides: tuple[int, ...] = ()
    """Sides in training, in pixels: the shorter side of each image is resized to one of them, drawn at random. If
    omitted, the schedule's: 640 to 800 in steps of 32, for voc 480 to 800."""
    test_side: int = 800
    """The shorter side in testing, in pixels."""
    long_side: int = 1333
    """Largest longer side, in pixels: an image that would exceed it is made smaller."""
    anchors: tuple[int, ...] = (32, 64, 128, 256, 512)
    """Five sides of anchors, in pixels; on a pyramid one for each level."""
    regions: int = 512
    """Regions of an image that the heads learn from in a step, up to a quarter of them with an instance."""
    proposals: int = 1000
    """Regions of an image that are proposed to the heads, in training (before some are drawn) and in testing."""

    def __post_init__(self) -> None:
        if min((*self.short_sides, self.test_side, *self.anchors)) < 1 or len(self.anchors) != 5:
            raise UserError(
                f"detection: sides are {self.short_sides} and {self.test_side}, anchors {self.anchors}; give sides and"
                " five anchors, all of 1 pixel or more"
            )
        if min(self.regions, self.proposals) < 1:
            raise UserError(f"detection: regions is {self.regions} and proposals {self.proposals}; give at least 1")
        longest = max((*self.short_sides, self.test_side))
        if self.long_side < longest:
            raise UserError(
                f"detection: long_side is {self.long_side}, less than a shorter side, {longest}; give at least as much"
            )

    def or_sides(self, sides: tuple[int, ...]) -> "Sizes":
        """The same, with `sides` in training if it has none."""
        return self if self.short_sides else replace(self, short_sides=sides)


COCO_SIZES = Sizes(tuple(range(640, 801, 32)))
"""COCO, as in Detectron2 and all papers."""

VOC_SIZES = Sizes(tuple(range(480, 801, 32)))
"""PASCAL VOC (MoCo, arXiv 1911.05722, §4.2.1)."""
