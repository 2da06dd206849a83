"""What a detector predicts for each instance."""

from dataclasses import dataclass

__all__ = ["Boxes", "Keypoints", "Masks", "Output"]


@dataclass(frozen=True)
class Boxes:
    """Boxes alone."""


@dataclass(frozen=True)
class Masks:
    """Boxes and a mask of each instance."""


@dataclass(frozen=True)
class Keypoints:
    """Boxes and keypoints."""

    points: int
    """Keypoints of an instance."""


Output = Boxes | Masks | Keypoints
"""What a detector predicts for each instance."""
