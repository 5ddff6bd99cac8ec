"""Errands about queues, in the worker that has their keys: dead letters, rejected messages."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from workers.shared.register import Context
from workers.shared.services.dead_letters import (
    head_of,
    letter_in,
    note_sent,
    open_dead_letters,
    queues,
    record_of,
)
from workers.shared.services.errors import NotFound
from workers.shared.services.resubmission import body_of, origin_of
from workers.shared.services.resubmission import send_again as resend

if TYPE_CHECKING:
    from workers.shared.services.service_bus import ServiceBusDeadLetters

_HEADS: Final = 200
"""Dead letters of a list."""


async def dead_letters(context: Context, own: Any, given: Mapping[str, Any], by: str) -> Any:
    """List dead letters, show one, send some again, or remove some.

    Raises:
        InvalidRequest: There is no such queue.
        NotFound: There is no such dead letter.
        QueueUnavailable: The queue does not answer.
    """
    pipeline, queue, bridge = given["pipeline"], given.get("queue"), given.get("bridge")
    if given["do"] == "list" and queue is None:
        found: list[Any] = []
        for each in queues(context.environment, None, bridge):
            if each.pipeline == pipeline:
                opening = open_dead_letters(context.environment, each.name, each.bridge)
                async with opening as letters:
                    found += [head_of(letter) for letter in await letters.list(_HEADS)]
        return found[:_HEADS]
    async with open_dead_letters(context.environment, queue, bridge) as letters:
        return await _with(letters, context, given)


async def _with(
    letters: "ServiceBusDeadLetters", context: Context, given: Mapping[str, Any]
) -> Any:
    match given["do"]:
        case "list":
            return [head_of(each) for each in await letters.list(_HEADS)]
        case "show":
            return record_of(await letter_in(letters, given["number"]))
        case "redrive":
            body = given.get("body")
            done = await letters.resubmit(
                given.get("numbers"), None if body is None else body.encode()
            )
            await note_sent(context.resources.rejected, done)
        case _:
            done = await letters.purge(given.get("numbers"))
    return [each.number for each in done]


async def send_again(context: Context, own: Any, given: Mapping[str, Any], by: str) -> Any:
    """Send a rejected message to its queue again.

    Raises:
        NotFound: There is no such message.
        Refused: It would be rejected again.
    """
    rejected = context.resources.rejected
    message = await rejected.get(given["number"])
    if message is None:
        raise NotFound(f"there is no rejected message {given['number']}")
    origin = origin_of(message.queue, context.environment, given.get("bridge"))
    body = given.get("body")
    sent = body_of(message, None if body is None else body.encode())
    await resend(
        rejected, context.environment, origin, message, sent, force=bool(given.get("force"))
    )
    return list(origin.remarks)
