"""Dead letters of the queues that docflow receives from: what a queue itself has given up."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

from adapters.ports.records import RejectedMessages
from workers import catalogue
from workers.shared.register import load
from workers.shared.services.errors import InvalidRequest, NotFound
from workflows.shared.contracts import PlainRecord, served

if TYPE_CHECKING:
    from workers.shared.services.service_bus import DeadLetter, ServiceBusDeadLetters


SEARCHED: Final = 10_000
"""Dead letters among which one is looked for."""
_BODY_BYTES: Final = 32 * 1024


class DeadLetterHead(PlainRecord):
    """A message that a queue itself has given up, without its body."""

    queue: Annotated[str, served("Its queue", "a-queue")]
    number: Annotated[int, served("The queue's own number of the message", 7)]
    message_id: Annotated[str | None, served("As its sender set it", "m-1")]
    reason: Annotated[str | None, served("Why it is there", "MaxDeliveryCountExceeded")]
    description: Annotated[str | None, served("Why, for people", "after ten deliveries")]
    deliveries: Annotated[int, served("How often it was delivered", 10)]
    sent_at: Annotated[datetime | None, served("When it was sent", "2026-01-03T10:00:00Z")]


class DeadLetterRecord(DeadLetterHead):
    """A message that a queue itself has given up."""

    body: Annotated[str, served("What came; at most its first 32 KiB", '{"task_id": 1}')]
    truncated: Annotated[bool, served("The body is longer", False)]


def head_of(letter: "DeadLetter") -> Mapping[str, Any]:
    """A dead letter as JSON, without its body."""
    return DeadLetterHead.model_validate(letter).model_dump(mode="json")


def record_of(letter: "DeadLetter") -> Mapping[str, Any]:
    """A dead letter as JSON."""
    body, is_cut = letter.body[:_BODY_BYTES], len(letter.body) > _BODY_BYTES
    text = body.decode("utf-8", "backslashreplace")
    return {**head_of(letter), "body": text, "truncated": is_cut}


async def letter_in(letters: "ServiceBusDeadLetters", number: int) -> "DeadLetter":
    """One dead letter of a queue.

    Raises:
        NotFound: There is none with this number.
        QueueUnavailable: The queue does not answer.
    """
    found = next((each for each in await letters.list(SEARCHED) if each.number == number), None)
    if found is None:
        raise NotFound(f"queue {letters.queue} has no dead letter {number}")
    return found


async def note_sent(rejected: RejectedMessages, sent: "Sequence[DeadLetter]") -> None:
    """Note in the record of those that docflow had rejected that they were sent again."""
    for each in sent:
        await rejected.mark_dead_letter_resubmitted(each.queue, each.message_id, each.body)


@dataclass(frozen=True)
class NamedQueue:
    """A queue that the settings name."""

    name: str
    pipeline: str
    bridge: str
    """What receives from it: queues of several brokers may have one name."""
    entry: str
    """Entry point of what opens its dead letters."""


def queues(
    environment: Mapping[str, str], queue: str | None = None, bridge: str | None = None
) -> Sequence[NamedQueue]:
    """The queues that the settings name, of every pipeline.

    Args:
        environment: Where settings are read.
        queue: Only those with this name.
        bridge: Only that of this bridge.
    """
    return [
        each
        for each in _known(environment)
        if queue in (None, each.name) and bridge in (None, each.bridge)
    ]


@asynccontextmanager
async def open_dead_letters(
    environment: Mapping[str, str], queue: str | None, bridge: str | None = None
) -> "AsyncGenerator[ServiceBusDeadLetters]":
    """The dead letters of a queue.

    Args:
        environment: Where settings are read.
        queue: Its name; None: the only one there is.
        bridge: What receives from it; None: whatever does.

    Raises:
        InvalidRequest: No setting names it, or there are several.
        SettingsError: A setting is missing or wrong.
    """
    found = queues(environment, queue, bridge)
    known = _known(environment)
    if len(found) > 1 and len({each.name for each in found}) == 1:
        names = " and ".join(each.bridge for each in found)
        raise InvalidRequest(
            f"bridges {names} both receive from a queue named {found[0].name!r}: name one of them "
            "with --bridge"
        )
    names = ", ".join(each.name for each in known) or "none"
    if len(found) > 1 or (queue is None and bridge is None and not found):
        raise InvalidRequest(f"name the queue with --queue; the settings name {names}")
    if not found:
        asked = " of ".join(
            [
                *([] if queue is None else [f"queue {queue!r}"]),
                *([] if bridge is None else [f"bridge {bridge!r}"]),
            ]
        )
        raise InvalidRequest(f"no setting names {asked}; they name {names}")
    async with load(found[0].entry)(environment) as opened:
        yield opened


def _known(environment: Mapping[str, str]) -> list[NamedQueue]:
    found: list[NamedQueue] = []
    for pipeline in catalogue.PIPELINES:
        if not pipeline.available(environment):
            continue
        for bridge in pipeline.bridges:
            each = bridge.resubmission
            if each is None or each.dead_letters is None:
                continue
            if (queue := each.queue(environment)) is not None:
                found.append(NamedQueue(queue, pipeline.name, bridge.name, each.dead_letters))
    return found
