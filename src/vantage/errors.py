"""Mistakes that the user can mend, told in the terms of what was asked, what was found, and what to do."""

__all__ = ["DataError", "UnreadableImage", "UserError"]


class UserError(ValueError):
    """A mistake the user can mend; the message says what was asked, what was found, and what to do."""


class DataError(UserError):
    """A data set that cannot be used as it was asked for."""


class UnreadableImage(DataError):
    """One image that cannot be decoded: `name` says which, `reason` why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot read the image {self.name}: {self.reason}"
