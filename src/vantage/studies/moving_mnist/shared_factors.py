"""Which factors two views of a clip share, and the seven combinations of the paper's table."""

from dataclasses import dataclass

from vantage.errors import UserError

__all__ = ["COMBINATIONS", "SharedFactors"]


@dataclass(frozen=True)
class SharedFactors:
    """Which factors the second view takes from the clip; the others are drawn independently (arXiv 2005.10243, section
    4.1)."""

    digit: bool = False
    """The digit."""

    background: bool = False
    """The background image and its crop."""

    location: bool = False
    """The position of the digit in the last frame."""

    def __post_init__(self) -> None:
        if not (self.digit or self.background or self.location):
            raise UserError("two views that share nothing have nothing to learn from: share at least one factor")

    @property
    def name(self) -> str:
        """The shared factors in words, such as "digit, location"."""
        factors = {"background": self.background, "digit": self.digit, "location": self.location}
        return ", ".join(name for name, shared in factors.items() if shared)


COMBINATIONS: tuple[SharedFactors, ...] = (
    SharedFactors(digit=True),
    SharedFactors(background=True),
    SharedFactors(location=True),
    SharedFactors(digit=True, background=True, location=True),
    SharedFactors(digit=True, background=True),
    SharedFactors(background=True, location=True),
    SharedFactors(digit=True, location=True),
)
"""The seven rows of Table 4, in its order."""
