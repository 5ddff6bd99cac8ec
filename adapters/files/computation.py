"""The port `SubprocessExecutor` over processes that are kept ready."""

import inspect
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict

from adapters.files import limits
from adapters.files.failures import Wording
from adapters.files.forks import Bounds, ForkRequest, Forks
from adapters.ports.spatial import Computation
from workflows.shared.errors import RuleViolation

_CHILD: Final = "adapters.files.computation_child"
_DAY: Final = 24 * 3600
_BOUNDS: Final = Bounds(memory_bytes=4096 * limits.MB, cpu_seconds=_DAY, seconds=_DAY)
"""A caller has a time limit of its own, and ends the call when it is cancelled."""


class Call(BaseModel):
    """Body of an order."""

    model_config = ConfigDict(frozen=True)

    path: tuple[str, ...]
    """Where modules are looked for."""
    module: str
    function: str
    argument: dict[str, Any]


class Returned(BaseModel):
    """Its answer: a result, or why there is none."""

    model_config = ConfigDict(frozen=True)

    result: dict[str, Any] | None = None
    violated: str = ""


class ForkingExecutor:
    """Call functions in forks; an async context manager, which ends them.

    Args:
        at_once: Calls side by side; the others wait.
        setting: Name of the setting that bounds memory, which failures name.
        memory_bytes: Address space of a call, where it is not the usual one.
    """

    def __init__(self, at_once: int, setting: str, memory_bytes: int | None = None) -> None:
        self._bounds = _BOUNDS.with_memory(memory_bytes)
        wording = Wording(
            verb="computing",
            noun="task",
            when_slow="divide it, or raise the limit",
            when_damaged="look at what it computes, or raise the limit",
            memory_setting=setting,
        )
        self._forks = Forks(_CHILD, at_once, wording=wording)

    async def compute(
        self, function: Computation, argument: dict[str, Any], folder: Path
    ) -> dict[str, Any]:
        """Call a function."""
        call = Call(
            path=tuple(each for each in sys.path if each),
            module=function.__module__,
            function=function.__qualname__,
            argument=argument,
        )
        order = ForkRequest(
            body=call.model_dump_json(),
            bounds=self._bounds,
            readable=(_package(function),),
            writable=(folder.absolute(),),
        )
        async with aclosing(self._forks.answer(order)) as pieces:
            body = b"".join([piece async for piece in pieces])
        returned = Returned.model_validate_json(body)
        if returned.result is None:
            raise RuleViolation(returned.violated)
        return returned.result

    async def aclose(self) -> None:
        """End the processes; nothing is being computed any more."""
        await self._forks.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _package(function: Computation) -> Path:
    """The file or the folder that the function's package is in."""
    file = Path(inspect.getfile(function)).resolve()
    depth = function.__module__.count(".")
    return file.parents[depth - 1] if depth else file
