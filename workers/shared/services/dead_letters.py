"""Dead letters of the queues that docflow receives from: what a queue itself has given up."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workers import catalogue
from workers.shared.register import load
from workers.shared.services.errors import InvalidRequest

if TYPE_CHECKING:
    from workers.shared.services.service_bus import ServiceBusDeadLetters


@dataclass(frozen=True)
class NamedQueue:
    """A queue that the settings name."""

    name: str
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
                found.append(NamedQueue(queue, bridge.name, each.dead_letters))
    return found
