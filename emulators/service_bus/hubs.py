"""Event hubs: partitions that are read from a position, and readers that displace each other.

Source: Azure Event Hubs, "AMQP 1.0 in Azure Service Bus and Event Hubs protocol guide"; the
annotations, link properties and management operations are those that `azure-eventhub` uses.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import Final, Protocol

from emulators.service_bus.codec import Array, Int, Timestamp, Value
from emulators.service_bus.message import (
    BATCH_FORMAT,
    Content,
    encode_response,
    parse,
    parse_batch,
    read_request,
)

HUB_MANAGEMENT: Final = "$management"
_READER = re.compile(r"(?P<hub>.+)/consumergroups/(?P<group>[^/]+)/partitions/(?P<number>[0-9]+)")
_WRITER = re.compile(r"(?P<hub>.+?)(?:/partitions/(?P<number>[0-9]+))?")
_POSITION = re.compile(
    r"amqp\.annotation\.x-opt-(offset|sequence-number|enqueued-time) (>=?) '(@latest|-?[0-9]+)'"
)
_OK, _BAD_REQUEST, _NOT_FOUND = 200, 400, 404


@dataclass(frozen=True, slots=True)
class HubSettings:
    """An event hub.

    Raises:
        ValueError: The number of partitions is out of range.
    """

    name: str
    partitions: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.partitions <= 32:
            raise ValueError(f"hub {self.name}: it must have 1 to 32 partitions")


@dataclass(frozen=True, slots=True)
class HubEvent:
    """An event at its place; its offset is its sequence number."""

    content: Content
    number: int
    enqueued_at: float
    """Seconds since 1970."""

    def encode(self) -> bytes:
        """The event as a reader gets it."""
        annotations: dict[str, Value] = {
            "x-opt-offset": str(self.number),
            "x-opt-sequence-number": self.number,
            "x-opt-enqueued-time": Timestamp(self.enqueued_at * 1000),
        }
        return self.content.encode(0, annotations)


class Reader(Protocol):
    """What reads a partition."""

    def touch(self) -> None:
        """Send what can be sent, soon."""
        ...


class Partition:
    """Events in order; none is ever removed."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.events: list[HubEvent] = []
        self.readers: list[Reader] = []
        self._clock = clock

    def append(self, content: Content) -> None:
        """Add an event, and wake who waits for it."""
        self.events.append(HubEvent(content, len(self.events), self._clock()))
        for reader in self.readers:
            reader.touch()

    def place(self, selector: str) -> int:
        """Where a reader begins.

        Raises:
            ValueError: The selector is not understood.
        """
        found = _POSITION.fullmatch(selector.strip())
        if found is None:
            raise ValueError(f"{selector!r} is not a position.")
        name, operator, value = found.groups()
        if value == "@latest":
            return len(self.events)
        wanted = int(value)
        bisect = bisect_left if operator == ">=" else bisect_right
        if name == "enqueued-time":
            return bisect(self.events, wanted, key=lambda each: each.enqueued_at * 1000)
        return bisect(self.events, wanted, key=lambda each: each.number)


class Hub:
    """A hub and its partitions."""

    def __init__(self, settings: HubSettings, clock: Callable[[], float]) -> None:
        self.settings = settings
        self.created_at = clock()
        self.partitions = [Partition(clock) for _ in range(settings.partitions)]
        self._turn = cycle(self.partitions)

    def store(self, number: int | None, message_format: int, data: bytes) -> None:
        """Store a message, or a batch of them.

        Args:
            number: Of the partition; None: by turns, a batch as a whole.
            message_format: Of the transfer.
            data: Its payload.
        """
        contents = parse_batch(data) if message_format == BATCH_FORMAT else [parse(data)]
        partition = next(self._turn) if number is None else self.partitions[number]
        for content in contents:
            partition.append(content)


class Hubs:
    """The hubs of this emulator, found by the addresses that clients use."""

    def __init__(self, settings: Mapping[str, HubSettings], clock: Callable[[], float]) -> None:
        self._hubs = {name.casefold(): Hub(each, clock) for name, each in settings.items()}

    def knows(self, path: str) -> bool:
        """Whether a path names a hub, or anything below one."""
        path = path.strip("/").casefold()
        return any(path == name or path.startswith(f"{name}/") for name in self._hubs)

    def hub(self, name: str) -> Hub | None:
        """A hub by its name."""
        return self._hubs.get(name.casefold())

    def reader(self, path: str) -> tuple[Partition, str] | None:
        """Partition and consumer group that a source names; None: it names none."""
        found = _READER.fullmatch(path.strip("/").casefold())
        hub = self._hubs.get(found["hub"]) if found else None
        if found is None or hub is None or int(found["number"]) >= len(hub.partitions):
            return None
        return hub.partitions[int(found["number"])], found["group"]

    def writer(self, path: str) -> tuple[Hub, int | None] | None:
        """Hub and partition that a target names; None: it names none."""
        found = _WRITER.fullmatch(path.strip("/").casefold())
        hub = self._hubs.get(found["hub"]) if found else None
        if found is None or hub is None:
            return None
        number = None if found["number"] is None else int(found["number"])
        return None if number is not None and number >= len(hub.partitions) else (hub, number)

    def answer(self, data: bytes) -> bytes:
        """Answer a request to the management node of hubs.

        Raises:
            CodecError: The request is no such message.
        """
        request_id, properties, _ = read_request(data)
        name, kind = properties.get("name"), properties.get("type")
        hub = self.hub(name) if isinstance(name, str) else None
        if properties.get("operation") != "READ":
            return _respond(request_id, _BAD_REQUEST, "Only READ is supported.", {})
        if hub is None:
            return _respond(request_id, _NOT_FOUND, f"There is no event hub {name}.", {})
        if kind == "com.microsoft:eventhub":
            return _respond(request_id, _OK, "OK", _described(hub))
        number = properties.get("partition")
        known = {str(each) for each in range(len(hub.partitions))}
        if kind != "com.microsoft:partition" or number not in known:
            return _respond(request_id, _BAD_REQUEST, "There is no such partition.", {})
        return _respond(request_id, _OK, "OK", _partition(hub, str(number)))


def _described(hub: Hub) -> dict[str, Value]:
    return {
        "name": hub.settings.name,
        "type": "com.microsoft:eventhub",
        "created_at": Timestamp(hub.created_at * 1000),
        "partition_count": Int(len(hub.partitions)),
        "partition_ids": Array(str(each) for each in range(len(hub.partitions))),
    }


def _partition(hub: Hub, number: str) -> dict[str, Value]:
    events = hub.partitions[int(number)].events
    return {
        "name": hub.settings.name,
        "type": "com.microsoft:partition",
        "partition": number,
        "begin_sequence_number": 0,
        "last_enqueued_sequence_number": len(events) - 1,
        "last_enqueued_offset": str(len(events) - 1),
        "last_enqueued_time_utc": Timestamp(events[-1].enqueued_at * 1000 if events else 0),
        "is_partition_empty": not events,
    }


def _respond(request_id: Value, status: int, description: str, body: dict[str, Value]) -> bytes:
    properties: dict[str, Value] = {
        "status-code": Int(status),
        "status-description": description,
    }
    return encode_response(request_id, properties, body)
