"""What people do with dead letters through a gateway, which has no keys of queues."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from workers import catalogue
from workers.shared.services.dead_letters import DeadLetterHead, DeadLetterRecord
from workers.shared.services.errands import ErrandService
from workers.shared.services.errors import ServiceError
from workers.shared.services.identity import Identity, require_operator
from workflows.shared.contracts import served

_KIND = "dead-letters"


class PlacedLetter(DeadLetterHead):
    """A dead letter, and where it is."""

    pipeline: Annotated[str, served("Whose queue it is", "a-name")]


class DeadLetterService:
    """Operations on dead letters; workers carry them out.

    Args:
        errands: Asks them.
    """

    def __init__(self, errands: ErrandService) -> None:
        self._errands = errands

    async def list(
        self, who: Identity, pipeline: str | None, queue: str | None, bridge: str | None
    ) -> tuple[Sequence[PlacedLetter], Mapping[str, str]]:
        """Dead letters of one pipeline or all; and which pipelines did not say, and why.

        Raises:
            ServiceError: The one pipeline that was named did not say.
        """
        require_operator(who, "dead letters")
        if pipeline is not None:
            return await self._of(who, pipeline, queue, bridge), {}
        names = [each.name for each in catalogue.PIPELINES if _KIND in each.errands]
        asked = (self._of(who, name, queue, bridge) for name in names)
        found, unanswered = list[PlacedLetter](), dict[str, str]()
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for name, answer in zip(names, answers, strict=True):
            if isinstance(answer, ServiceError):
                unanswered[name] = str(answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found += answer
        return found, unanswered

    async def _of(
        self, who: Identity, pipeline: str, queue: str | None, bridge: str | None
    ) -> Sequence[PlacedLetter]:
        letters = await self._ask(who, pipeline, "list", queue, bridge)
        return [PlacedLetter(**each, pipeline=pipeline) for each in letters]

    async def get(
        self, who: Identity, pipeline: str, queue: str, number: int, bridge: str | None
    ) -> DeadLetterRecord:
        """One dead letter.

        Raises:
            NotFound: There is none with this number.
        """
        found = await self._ask(who, pipeline, "show", queue, bridge, number=number)
        return DeadLetterRecord(**found)

    async def redrive(
        self,
        who: Identity,
        pipeline: str,
        queue: str,
        numbers: Sequence[int] | None,
        body: str | None,
        bridge: str | None,
    ) -> Sequence[int]:
        """Send dead letters again, all without numbers; the numbers of those that were there."""
        return await self._ask(who, pipeline, "redrive", queue, bridge, numbers=numbers, body=body)

    async def remove(
        self,
        who: Identity,
        pipeline: str,
        queue: str,
        numbers: Sequence[int] | None,
        bridge: str | None,
    ) -> Sequence[int]:
        """Remove dead letters, all without numbers; the numbers of those that were there."""
        return await self._ask(who, pipeline, "remove", queue, bridge, numbers=numbers)

    async def _ask(
        self,
        who: Identity,
        pipeline: str,
        do: str,
        queue: str | None,
        bridge: str | None,
        **arguments: Any,
    ) -> Any:
        given = {"do": do, "pipeline": pipeline, "queue": queue, "bridge": bridge, **arguments}
        return await self._errands.ask(who, pipeline, _KIND, given)
