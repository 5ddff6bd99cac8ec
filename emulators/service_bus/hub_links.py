"""Links that read a partition of an event hub, and displace each other by their epochs.

Source: Azure Event Hubs, "AMQP 1.0 in Azure Service Bus and Event Hubs protocol guide".
"""

import asyncio
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from emulators.service_bus.codec import CodecError, Described, Value
from emulators.service_bus.hubs import Partition
from emulators.service_bus.links import LinkError, SendingLink, Wire
from emulators.service_bus.performatives import SOURCE, Attach, Flow, fields_of

STOLEN: Final = "amqp:link:stolen"
_EPOCH: Final = "com.microsoft:epoch"
_SELECTOR: Final = "apache.org:selector-filter:string"
_EVENTS_PER_TURN: Final = 256


class ReaderLink(SendingLink):
    """Sends the events of a partition to one reader of a consumer group.

    Args:
        wire: The session.
        attach: The peer's attach.
        partition: What it reads.
        group: Its consumer group.
        drop: Detaches this link with a condition and a description.
    """

    def __init__(
        self,
        wire: Wire,
        attach: Attach,
        partition: Partition,
        group: str,
        drop: Callable[[str, str], None],
    ) -> None:
        super().__init__(wire, attach)
        self.group = group
        self.epoch = _epoch_of(attach)
        self._drop = drop
        self._next = _place(partition, attach)
        self._partition = partition
        self._loop = asyncio.get_running_loop()
        self._due = False
        self._displace()
        partition.readers.append(self)

    def touch(self) -> None:
        """Send what can be sent, soon."""
        if not self._due:
            self._due = True
            self._loop.call_soon(self._deliver)

    def update(self, flow: Flow) -> None:
        """Take over the receiver's credit and use it."""
        super().update(flow)
        self.touch()

    def close(self) -> None:
        """Send nothing more."""
        super().close()
        self._partition.readers.remove(self)

    def steal(self) -> None:
        """Give the partition to a reader of a higher epoch."""
        self._drop(STOLEN, "A reader with an epoch that is at least as high has taken over.")

    def _displace(self) -> None:
        others = [
            each
            for each in self._partition.readers
            if isinstance(each, ReaderLink) and each.group == self.group
        ]
        for other in others:
            theirs = -1 if other.epoch is None else other.epoch
            mine = -1 if self.epoch is None else self.epoch
            if theirs > mine:
                raise LinkError(STOLEN, f"A reader with epoch {theirs} has this partition.")
        if self.epoch is not None:
            for other in others:
                other.steal()

    def _deliver(self) -> None:
        self._due = False
        if self not in self._partition.readers:
            return
        for _ in range(_EVENTS_PER_TURN):
            if not self.ready or self._next >= len(self._partition.events):
                self.finish_drain()
                return
            event = self._partition.events[self._next]
            self._next += 1
            self._send(uuid.uuid4().bytes, event.encode(), None)
        self.touch()


def _place(partition: Partition, attach: Attach) -> int:
    try:
        return partition.place(_selector_of(attach))
    except ValueError as error:
        raise LinkError("amqp:invalid-field", str(error)) from error


def _epoch_of(attach: Attach) -> int | None:
    epoch = (attach.properties or {}).get(_EPOCH)
    return epoch if isinstance(epoch, int) else None


def _selector_of(attach: Attach) -> str:
    """The position that a reader asks for; the beginning where it names none."""
    assert attach.source is not None
    filters = fields_of(attach.source, SOURCE)[7]
    found = cast(Mapping[Any, Value], filters).get(_SELECTOR) if isinstance(filters, dict) else None
    value = found.value if isinstance(found, Described) else found
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError as error:
            raise CodecError("a selector must be text") from error
    return value if isinstance(value, str) else "amqp.annotation.x-opt-offset > '-1'"
