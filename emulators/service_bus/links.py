"""Links: where messages leave the broker under credit, and where they come in.

Source: OASIS AMQP 1.0, part 2.6 (links). The end that a link is named after here is the broker's.
"""

import uuid
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from emulators.service_bus.broker import BrokerError
from emulators.service_bus.codec import CodecError, Described
from emulators.service_bus.node import Node
from emulators.service_bus.performatives import (
    ACCEPTED,
    REJECTED,
    Attach,
    Disposition,
    Flow,
    Performative,
    Transfer,
    error,
    outcome,
)

MAX_MESSAGE_SIZE: Final = 256 * 1024
"""Bytes of a message or batch, as in the standard tier of the real service."""
_TAKEN_SIZE: Final = MAX_MESSAGE_SIZE + 4 * 1024
"""A client fills a batch up to the announced size by a count that leaves the envelope out."""
_CREDIT: Final = 1000
_MAX_WAITING_REPLIES: Final = 1000
_SENT_SETTLED: Final = 1
_SERIAL: Final = 1 << 32


class LinkError(Exception):
    """The link must be detached.

    Attributes:
        condition: The error condition for the peer.
    """

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(description)
        self.condition = condition


class Wire(Protocol):
    """What a link needs of its session."""

    @property
    def open_for_transfers(self) -> bool:
        """Whether the peer's window and the socket take more."""
        ...

    def send(self, performative: Performative) -> None:
        """Send a performative."""
        ...

    def send_flow(
        self, handle: int, delivery_count: int, link_credit: int, *, drain: bool = False
    ) -> None:
        """Send the state of a link together with that of the session."""
        ...

    def send_delivery(
        self, handle: int, tag: bytes, payload: bytes, lock: tuple[Node, uuid.UUID] | None
    ) -> None:
        """Send a message in as many frames as it takes; without a lock it is settled."""
        ...


class SendingLink:
    """A link on which the broker sends; the receiver grants credit."""

    def __init__(self, wire: Wire, attach: Attach) -> None:
        self.handle = attach.handle
        self._wire = wire
        self._credit = 0
        self._delivery_count = 0
        self._drain = False

    @property
    def ready(self) -> bool:
        """Whether a delivery may be sent now."""
        return self._credit > 0 and self._wire.open_for_transfers

    def update(self, flow: Flow) -> None:
        """Take over the receiver's credit."""
        if flow.link_credit is not None:
            limit = (flow.delivery_count or 0) + flow.link_credit
            left = (limit - self._delivery_count) % _SERIAL
            self._credit = left if left < _SERIAL // 2 else 0
        self._drain = bool(flow.drain)
        if flow.echo:
            self._report()

    def finish_drain(self) -> None:
        """Hand back credit that the receiver no longer waits for."""
        if self._drain and self._credit and self._wire.open_for_transfers:
            self._delivery_count += self._credit
            self._credit = 0
            self._report()

    def close(self) -> None:
        """Send nothing more."""
        self._credit = 0

    def _send(self, tag: bytes, payload: bytes, lock: tuple[Node, uuid.UUID] | None) -> None:
        self._credit -= 1
        self._delivery_count = (self._delivery_count + 1) % _SERIAL
        self._wire.send_delivery(self.handle, tag, payload, lock)

    def _report(self) -> None:
        self._wire.send_flow(
            self.handle, self._delivery_count % _SERIAL, self._credit, drain=self._drain
        )


class ConsumerLink(SendingLink):
    """Delivers the messages of a queue, with or without a lock."""

    def __init__(self, wire: Wire, attach: Attach, node: Node) -> None:
        super().__init__(wire, attach)
        self.node = node
        self._for_good = attach.snd_settle_mode == _SENT_SETTLED
        node.consumers.append(self)

    def update(self, flow: Flow) -> None:
        """Take over the receiver's credit and use it."""
        super().update(flow)
        self.node.touch()

    def close(self) -> None:
        """Accept no further messages; locks stay until they expire."""
        super().close()
        self.node.consumers.remove(self)

    def deliver(self) -> bool:
        """Deliver the next message; False when there is none."""
        queue = self.node.queue
        message = queue.take_next() if self._for_good else queue.lock_next()
        if message is None:
            return False
        token = message.lock_token
        if token is None:
            self._send(uuid.uuid4().bytes, message.encode(), None)
        else:
            self._send(token.bytes_le, message.encode(), (self.node, token))
        return True


class ReplyLink(SendingLink):
    """Sends the answers of a management node."""

    def __init__(self, wire: Wire, attach: Attach) -> None:
        super().__init__(wire, attach)
        self._waiting: deque[bytes] = deque()

    def update(self, flow: Flow) -> None:
        """Take over the receiver's credit and use it."""
        super().update(flow)
        self.flush()
        self.finish_drain()

    def reply(self, message: bytes) -> None:
        """Send an answer as soon as there is credit.

        Raises:
            LinkError: The receiver asks and asks but takes no answers.
        """
        if len(self._waiting) >= _MAX_WAITING_REPLIES:
            raise LinkError("amqp:resource-limit-exceeded", "Too many answers wait for credit.")
        self._waiting.append(message)
        self.flush()

    def flush(self) -> None:
        """Send what waits for credit."""
        while self._waiting and self.ready:
            self._send(uuid.uuid4().bytes, self._waiting.popleft(), None)


class ReceivingLink:
    """A link on which the broker receives; it grants credit and settles at once.

    Args:
        wire: The session.
        attach: The peer's attach.
        accept: Takes message format and bytes; what it raises becomes a rejection.
        node: The queue that it feeds; None for requests.
    """

    def __init__(
        self,
        wire: Wire,
        attach: Attach,
        accept: Callable[[int, bytes], None],
        node: Node | None = None,
    ) -> None:
        self.handle = attach.handle
        self.node = node
        self._wire = wire
        self._accept = accept
        self._delivery_count = attach.initial_delivery_count or 0
        self._credit = 0
        self._first: Transfer | None = None
        self._size = 0
        self._payload = bytearray()
        """Never more than a message may hold, however much the peer sends."""

    def grant(self) -> None:
        """Give the sender its full credit."""
        self._credit = _CREDIT
        self._wire.send_flow(self.handle, self._delivery_count % _SERIAL, _CREDIT)

    def update(self, flow: Flow) -> None:
        """Answer a sender that asks for the state of its link."""
        if flow.echo:
            self.grant()

    def close(self) -> None:
        """Forget a delivery that is not complete."""
        self._first = None
        self._size = 0
        self._payload.clear()

    def receive(self, transfer: Transfer, payload: bytes) -> None:
        """Take a frame of a delivery, and the delivery itself when this is its last frame.

        Raises:
            LinkError: The frame does not continue the delivery.
        """
        first = self._first or transfer
        if first.delivery_id is None:
            raise LinkError("amqp:invalid-field", "The first transfer lacks a delivery-id.")
        if transfer.delivery_id not in (None, first.delivery_id):
            raise LinkError("amqp:not-allowed", "A delivery began inside another one.")
        self._size += len(payload)
        if self._size <= _TAKEN_SIZE:
            self._payload += payload
        if transfer.more and not transfer.aborted:
            self._first = first
            return
        state = self._outcome(first.message_format or 0) if not transfer.aborted else None
        self.close()
        if state is not None and not (first.settled or transfer.settled):
            self._wire.send(
                Disposition(role=True, first=first.delivery_id, settled=True, state=state)
            )
        self._count()

    def _outcome(self, message_format: int) -> Described:
        if self._size > _TAKEN_SIZE:
            text = f"{self._size} bytes are too many: the limit is {MAX_MESSAGE_SIZE}."
            return outcome(REJECTED, error("amqp:link:message-size-exceeded", text))
        try:
            self._accept(message_format, bytes(self._payload))
        except CodecError as failure:
            return outcome(REJECTED, error("amqp:decode-error", f"Malformed message: {failure}."))
        except BrokerError as failure:
            return outcome(REJECTED, error(failure.condition, str(failure)))
        return outcome(ACCEPTED)

    def _count(self) -> None:
        self._delivery_count += 1
        self._credit -= 1
        if self._credit < _CREDIT // 2:
            self.grant()
