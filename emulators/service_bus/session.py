"""A session: its windows, its links, and the deliveries that wait for their outcome.

Source: OASIS AMQP 1.0, parts 2.5 (sessions) and 3.4 (delivery states).
"""

import logging
import uuid
from collections import deque
from typing import Final, Protocol

from emulators.service_bus.broker import BrokerError, LockLost
from emulators.service_bus.codec import Described
from emulators.service_bus.hub_links import ReaderLink
from emulators.service_bus.link_factory import AnyLink, LinkFactory
from emulators.service_bus.links import (
    MAX_MESSAGE_SIZE,
    ConsumerLink,
    LinkError,
    ReceivingLink,
    ReplyLink,
)
from emulators.service_bus.node import Directory, Node
from emulators.service_bus.performatives import (
    RECEIVED,
    REJECTED,
    RELEASED,
    Attach,
    Begin,
    Detach,
    Disposition,
    Flow,
    Performative,
    Transfer,
    encode_performative,
    error,
    outcome,
)
from emulators.service_bus.settlement import apply_outcome

_log = logging.getLogger(__name__)

MAX_LINKS: Final = 1024
_WINDOW: Final = (1 << 31) - 1
_SERIAL: Final = 1 << 32
_FIRST_OUTGOING_ID: Final = 1 << 30
"""Far from the ids that clients begin with: azure-servicebus matches dispositions to its own
deliveries by id alone, whichever end they belong to."""
_FRAME_OVERHEAD: Final = 96
"""Frame header and transfer performative with a tag of 16 bytes, rounded up."""


class ProtocolError(Exception):
    """The connection must be closed.

    Attributes:
        condition: The error condition for the peer.
    """

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(description)
        self.condition = condition


class Carrier(Protocol):
    """What a session needs of its connection."""

    @property
    def writable(self) -> bool:
        """Whether the socket takes more."""
        ...

    @property
    def peer_frame_size(self) -> int:
        """Largest frame in bytes that the peer takes."""
        ...

    def write_frame(self, channel: int, body: bytes) -> None:
        """Send a frame."""
        ...


class Session:
    """The broker's end of a session that a client has begun."""

    def __init__(self, carrier: Carrier, directory: Directory, channel: int, begin: Begin) -> None:
        self._carrier = carrier
        self._channel = channel
        self._next_incoming_id = begin.next_outgoing_id
        self._next_outgoing_id = _FIRST_OUTGOING_ID
        self._next_delivery_id = _FIRST_OUTGOING_ID
        self._peer_window = begin.incoming_window
        self._blocked: deque[tuple[int, bytes]] = deque()
        """Handle and frame of what the peer's window was too small for."""
        self._links: dict[int, AnyLink | None] = {}
        """By handle; None for a link whose detach the peer has not answered yet."""
        self._factory = LinkFactory(self, directory, self._drop)
        self._unsettled: dict[int, tuple[int, Node, uuid.UUID]] = {}
        """Handle, queue and lock of each delivery whose outcome is awaited, by delivery id."""
        self.send(
            Begin(
                remote_channel=channel,
                next_outgoing_id=self._next_outgoing_id,
                incoming_window=_WINDOW,
                outgoing_window=_WINDOW,
                handle_max=MAX_LINKS - 1,
            )
        )

    @property
    def open_for_transfers(self) -> bool:
        """Whether the peer's window and the socket take more."""
        return self._peer_window > 0 and not self._blocked and self._carrier.writable

    def send(self, performative: Performative) -> None:
        """Send a performative on this session's channel."""
        self._carrier.write_frame(self._channel, encode_performative(performative))

    def send_flow(
        self,
        handle: int | None = None,
        delivery_count: int | None = None,
        link_credit: int | None = None,
        *,
        drain: bool = False,
    ) -> None:
        """Send the state of a link, if any, together with that of the session."""
        self.send(
            Flow(
                next_incoming_id=self._next_incoming_id,
                incoming_window=_WINDOW,
                next_outgoing_id=self._next_outgoing_id,
                outgoing_window=_WINDOW,
                handle=handle,
                delivery_count=delivery_count,
                link_credit=link_credit,
                drain=drain,
            )
        )

    def send_delivery(
        self, handle: int, tag: bytes, payload: bytes, lock: tuple[Node, uuid.UUID] | None
    ) -> None:
        """Send a message in as many frames as it takes; without a lock it is settled."""
        delivery_id = self._next_delivery_id
        self._next_delivery_id = (delivery_id + 1) % _SERIAL
        if lock is not None:
            self._unsettled[delivery_id] = (handle, *lock)
        transfer = Transfer(
            handle=handle, delivery_id=delivery_id, delivery_tag=tag, message_format=0
        )
        transfer.settled = lock is None
        room = self._carrier.peer_frame_size - _FRAME_OVERHEAD
        for start in range(0, len(payload), room):
            transfer.more = start + room < len(payload)
            # Every frame repeats id and tag: azure-servicebus reads them from the last one.
            frame = encode_performative(transfer) + payload[start : start + room]
            self._blocked.append((handle, frame))
        self._flush()

    def attach(self, attach: Attach) -> None:
        """Attach a link, or answer why not."""
        if attach.handle >= MAX_LINKS or self._links.get(attach.handle) is not None:
            raise ProtocolError("amqp:session:handle-in-use", f"Handle {attach.handle} is taken.")
        try:
            link = self._factory.open(attach)
        except LinkError as refusal:
            self._refuse(attach, refusal)
            return
        self._links[attach.handle] = link
        self.send(self._reply_to(attach, attach.source, attach.target))
        if isinstance(link, ReceivingLink):
            link.grant()

    def flow(self, flow: Flow) -> None:
        """Take over the peer's window, and credit when it is about a link."""
        start = _FIRST_OUTGOING_ID if flow.next_incoming_id is None else flow.next_incoming_id
        window = (start + flow.incoming_window - self._next_outgoing_id) % _SERIAL
        self._peer_window = window if window < _SERIAL // 2 else 0
        self.resume()
        if flow.handle is not None:
            if (link := self._link(flow.handle)) is not None:
                link.update(flow)
        elif flow.echo:
            self.send_flow()

    def transfer(self, transfer: Transfer, payload: bytes) -> None:
        """Take a frame of a delivery."""
        self._next_incoming_id = (self._next_incoming_id + 1) % _SERIAL
        link = self._link(transfer.handle)
        if link is None:
            return
        if not isinstance(link, ReceivingLink):
            raise ProtocolError("amqp:not-allowed", "A transfer came on a link that receives.")
        try:
            link.receive(transfer, payload)
        except LinkError as failure:
            self._drop(transfer.handle, failure.condition, str(failure))

    def disposition(self, disposition: Disposition) -> None:
        """Settle deliveries as their receiver asks, and confirm it."""
        if not disposition.role or not (disposition.state or disposition.settled):
            return
        first = disposition.first
        last = first if disposition.last is None else disposition.last
        state = disposition.state or outcome(RELEASED)
        if state.descriptor == RECEIVED:
            return
        # A range may claim four thousand million deliveries: walk the known ones instead.
        known = [first] if first == last else [i for i in self._unsettled if first <= i <= last]
        for delivery_id in known:
            echo = self._settle(delivery_id, state)
            if not disposition.settled:
                self.send(Disposition(role=False, first=delivery_id, settled=True, state=echo))

    def detach(self, detach: Detach) -> None:
        """Answer the peer's detach."""
        if detach.handle not in self._links:
            raise ProtocolError("amqp:session:unattached-handle", "That handle has no link.")
        if self._links[detach.handle] is not None:
            self._forget(detach.handle)
            self.send(Detach(handle=detach.handle, closed=detach.closed))
        del self._links[detach.handle]

    def drop_links(self, nodes: set[Node], condition: str, description: str) -> None:
        """Detach every link that consumes from or sends to these queues."""
        for handle, link in list(self._links.items()):
            if isinstance(link, ConsumerLink | ReceivingLink) and link.node in nodes:
                self._drop(handle, condition, description)

    def resume(self) -> None:
        """Continue sending after the peer's window or the socket has opened."""
        self._flush()
        for link in self._links.values():
            if isinstance(link, ConsumerLink):
                link.node.touch()
            elif isinstance(link, ReaderLink):
                link.touch()
            elif isinstance(link, ReplyLink):
                link.flush()

    def close(self) -> None:
        """End all links; what their receivers hold stays locked until it expires."""
        for handle, link in list(self._links.items()):
            if link is not None:
                self._forget(handle)
        self._links.clear()
        self._blocked.clear()

    def _flush(self) -> None:
        while self._blocked and self._peer_window > 0:
            _, frame = self._blocked.popleft()
            self._carrier.write_frame(self._channel, frame)
            self._next_outgoing_id = (self._next_outgoing_id + 1) % _SERIAL
            self._peer_window -= 1

    def _refuse(self, attach: Attach, refusal: LinkError) -> None:
        """Attach without the end that was asked for, then detach with the reason."""
        _log.info("link %s refused: %s", attach.name, refusal)
        source, target = (None, attach.target) if attach.role else (attach.source, None)
        self.send(self._reply_to(attach, source, target))
        self._links[attach.handle] = None
        self._send_detach(attach.handle, refusal.condition, str(refusal))

    def _reply_to(
        self, attach: Attach, source: Described | None, target: Described | None
    ) -> Attach:
        return Attach(
            name=attach.name,
            handle=attach.handle,
            role=not attach.role,
            snd_settle_mode=attach.snd_settle_mode,
            rcv_settle_mode=attach.rcv_settle_mode,
            source=source,
            target=target,
            initial_delivery_count=0 if attach.role else None,
            max_message_size=MAX_MESSAGE_SIZE,
        )

    def _link(self, handle: int) -> AnyLink | None:
        """A link, or None when frames for it crossed our detach.

        Raises:
            ProtocolError: There is no such link.
        """
        if handle not in self._links:
            raise ProtocolError("amqp:session:unattached-handle", f"Handle {handle} has no link.")
        return self._links[handle]

    def _drop(self, handle: int, condition: str, description: str) -> None:
        self._forget(handle)
        self._send_detach(handle, condition, description)

    def _send_detach(self, handle: int, condition: str, description: str) -> None:
        self.send(Detach(handle=handle, closed=True, error=error(condition, description)))

    def _forget(self, handle: int) -> None:
        """End a link and forget its deliveries; the locks stay."""
        link = self._links[handle]
        assert link is not None
        link.close()
        self._links[handle] = None
        self._factory.forget(link)
        self._unsettled = {
            key: entry for key, entry in self._unsettled.items() if entry[0] != handle
        }
        self._blocked = deque(entry for entry in self._blocked if entry[0] != handle)

    def _settle(self, delivery_id: int, state: Described) -> Described:
        """Apply an outcome.

        Returns:
            The outcome to confirm: the same one, or a rejection with the reason.
        """
        entry = self._unsettled.pop(delivery_id, None)
        if entry is None:
            return outcome(REJECTED, error(LockLost.condition, "That delivery is not known."))
        _, node, token = entry
        try:
            apply_outcome(node.queue, token, state)
        except BrokerError as failure:
            return outcome(REJECTED, error(failure.condition, str(failure)))
        # An echo with an error would read as a refusal, so a rejection loses the peer's reason.
        return outcome(REJECTED) if state.descriptor == REJECTED else state
