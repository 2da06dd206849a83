"""What the shape checks ask to check a call."""

from collections.abc import Callable
from typing import Any

from beartype import beartype


def when_called(function: Callable[..., Any]) -> Callable[..., Any]:
    """beartype, put to work at a function's first call: most test files call few of the package's functions, and making
    the checks of all of them takes longer than importing torch."""
    checked: Callable[..., Any] | None = None

    def call(*arguments: Any, **settings: Any) -> Any:
        nonlocal checked
        if checked is None:
            checked = beartype(function)
        return checked(*arguments, **settings)

    return call
