"""Computing beside the worker, in a process that is bounded."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

Computation = Callable[[dict[str, Any]], dict[str, Any]]
"""A function of a module; its argument and its result are what JSON can hold."""


class Computing(Protocol):
    """Calls functions in processes of their own."""

    async def compute(
        self, function: Computation, argument: dict[str, Any], folder: Path
    ) -> dict[str, Any]:
        """Call a function; a caller who is cancelled ends its process at once.

        Args:
            function: Found by its name in its module, so no lambda and no inner function.
            argument: What it is given.
            folder: Its current one, and the only one that it writes into.

        Raises:
            RuleViolation: It raised that, or something that it does not explain.
            UnreadableDocument: It needs more memory or time than it may.
            Unavailable: The process was lost.
        """
        ...
