"""A connection: log-in, frames, sessions.

Source: OASIS AMQP 1.0, parts 2.2 to 2.4 (connections) and 5.3 (SASL). Whatever a peer sends that
AMQP does not allow ends its own connection with an error, and nothing else.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, cast

from emulators.service_bus.codec import Array, CodecError, Symbol
from emulators.service_bus.node import Directory, Node
from emulators.service_bus.performatives import (
    AMQP_FRAME,
    AMQP_HEADER,
    FRAME_HEADER,
    SASL_FRAME,
    SASL_HEADER,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Performative,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    Transfer,
    decode_performative,
    encode_performative,
    error,
    frame,
)
from emulators.service_bus.session import ProtocolError, Session

_log = logging.getLogger(__name__)

MAX_FRAME_SIZE: Final = 65_536
"""Bytes of a frame that a peer may send."""
_MIN_MAX_FRAME_SIZE: Final = 512
_LARGEST_SENT: Final = 1 << 20
_CHANNEL_MAX: Final = 255
_MECHANISMS: Final = ("ANONYMOUS", "PLAIN", "MSSBCBS", "EXTERNAL")
_SASL_REFUSED: Final = 1


class Connection(asyncio.Protocol):
    """The broker's end of a connection.

    Args:
        directory: The queues.
        on_lost: Called once when the connection is gone.
    """

    def __init__(self, directory: Directory, on_lost: Callable[["Connection"], None]) -> None:
        self.writable = True
        self.peer_frame_size = _MIN_MAX_FRAME_SIZE
        self._directory = directory
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._input = bytearray()
        self._output: list[bytes] = []
        self._flush_due = False
        self._expects_header = True
        self._logged_in = False
        self._opened = False
        self._closed = False
        self._sessions: dict[int, Session] = {}
        self._heartbeat: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is there."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone; what was locked stays locked until it expires."""
        self._closed = True
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()
        self._transport = None
        self._on_lost(self)

    def pause_writing(self) -> None:
        """The peer reads too slowly: deliver nothing, and answer nothing new."""
        self.writable = False
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """The peer has caught up."""
        self.writable = True
        if self._transport is not None:
            self._transport.resume_reading()
        for session in self._sessions.values():
            session.resume()

    def data_received(self, data: bytes) -> None:
        """Read whatever frames are complete."""
        if self._closed:
            return
        self._input += data
        try:
            self._read()
        except CodecError as failure:
            self._fail("amqp:decode-error", str(failure))
        except ProtocolError as failure:
            self._fail(failure.condition, str(failure))

    def write_frame(self, channel: int, body: bytes) -> None:
        """Send a frame; what is written in one turn of the event loop leaves together."""
        self._write(frame(channel, body))

    def drop_links(self, nodes: set[Node], condition: str, description: str) -> None:
        """Detach every link that consumes from or sends to these queues."""
        for session in self._sessions.values():
            session.drop_links(nodes, condition, description)

    def abort(self) -> None:
        """Cut the connection, as a failing network does."""
        if self._transport is not None:
            self._transport.abort()

    def shut_down(self, reason: str) -> None:
        """Close cleanly, with a reason for the peer."""
        if not self._closed:
            self._fail("amqp:connection:forced", reason)

    def _read(self) -> None:
        while not self._closed:
            if self._expects_header:
                if len(self._input) < len(AMQP_HEADER):
                    return
                self._read_header(self._take(len(AMQP_HEADER)))
                continue
            if len(self._input) < FRAME_HEADER.size:
                return
            size, offset, kind, channel = FRAME_HEADER.unpack_from(self._input)
            if not FRAME_HEADER.size <= 4 * offset <= size <= MAX_FRAME_SIZE:
                raise ProtocolError(
                    "amqp:connection:framing-error",
                    f"A frame of {size} bytes with its data at word {offset} is not allowed.",
                )
            if len(self._input) < size:
                return
            body = self._take(size)[4 * offset :]
            if kind == AMQP_FRAME and self._logged_in:
                if body:
                    self._read_frame(channel, *decode_performative(body))
            elif kind == SASL_FRAME and not self._logged_in:
                self._log_in(decode_performative(body)[0])
            else:
                raise ProtocolError("amqp:connection:framing-error", "That frame type is not due.")

    def _take(self, size: int) -> bytes:
        data = bytes(memoryview(self._input)[:size])
        del self._input[:size]
        return data

    def _read_header(self, header: bytes) -> None:
        self._expects_header = False
        if header == SASL_HEADER and not self._logged_in:
            self._write(SASL_HEADER)
            offer = SaslMechanisms(sasl_server_mechanisms=Array(map(Symbol, _MECHANISMS)))
            self._write(frame(0, encode_performative(offer), SASL_FRAME))
        elif header == AMQP_HEADER and self._logged_in:
            self._write(AMQP_HEADER)
        else:
            # The specification's answer to a wrong header: the right one, then nothing more.
            _log.warning(
                "a peer does not begin with AMQP over SASL without TLS; "
                "add UseDevelopmentEmulator=true to its connection string"
            )
            self._write(AMQP_HEADER if self._logged_in else SASL_HEADER)
            self._hang_up()

    def _log_in(self, performative: Performative) -> None:
        if not isinstance(performative, SaslInit):
            raise ProtocolError("amqp:not-allowed", "A log-in must begin with sasl-init.")
        known = performative.mechanism in _MECHANISMS
        answer = SaslOutcome(code=0 if known else _SASL_REFUSED)
        self._write(frame(0, encode_performative(answer), SASL_FRAME))
        if known:
            self._logged_in = True
            self._expects_header = True
        else:
            self._hang_up()

    def _read_frame(self, channel: int, performative: Performative, payload: bytes) -> None:
        if isinstance(performative, Open):
            self._open(performative)
            return
        if not self._opened:
            raise ProtocolError("amqp:illegal-state", "The first performative must be open.")
        if isinstance(performative, Close):
            self._send(Close())
            self._hang_up()
        elif isinstance(performative, Begin):
            self._begin(channel, performative)
        else:
            self._dispatch(channel, performative, payload)

    def _dispatch(self, channel: int, performative: Performative, payload: bytes) -> None:
        session = self._sessions.get(channel)
        if session is None:
            raise ProtocolError("amqp:not-allowed", f"Channel {channel} has no session.")
        match performative:
            case Transfer():
                session.transfer(performative, payload)
            case Disposition():
                session.disposition(performative)
            case Flow():
                session.flow(performative)
            case Attach():
                session.attach(performative)
            case Detach():
                session.detach(performative)
            case End():
                session.send(End())
                session.close()
                del self._sessions[channel]
            case _:
                raise ProtocolError("amqp:not-allowed", "That performative is not due.")

    def _open(self, peer: Open) -> None:
        if self._opened:
            raise ProtocolError("amqp:illegal-state", "The connection is open already.")
        size = peer.max_frame_size if peer.max_frame_size is not None else _LARGEST_SENT
        if size < _MIN_MAX_FRAME_SIZE:
            raise ProtocolError(
                "amqp:invalid-field", f"max-frame-size must be at least {_MIN_MAX_FRAME_SIZE}."
            )
        self._opened = True
        self.peer_frame_size = min(size, _LARGEST_SENT)
        self._send(
            Open(
                container_id="docflow-service-bus-emulator",
                max_frame_size=MAX_FRAME_SIZE,
                channel_max=_CHANNEL_MAX,
            )
        )
        if peer.idle_time_out:
            self._keep_alive(max(peer.idle_time_out / 2000, 0.1))

    def _begin(self, channel: int, begin: Begin) -> None:
        if channel in self._sessions or channel > _CHANNEL_MAX:
            raise ProtocolError("amqp:not-allowed", f"Channel {channel} cannot begin a session.")
        self._sessions[channel] = Session(self, self._directory, channel, begin)

    def _keep_alive(self, seconds: float) -> None:
        self._heartbeat = self._loop.call_later(seconds, self._beat, seconds)

    def _beat(self, seconds: float) -> None:
        self.write_frame(0, b"")
        self._keep_alive(seconds)

    def _send(self, performative: Performative) -> None:
        self.write_frame(0, encode_performative(performative))

    def _write(self, data: bytes) -> None:
        self._output.append(data)
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_due = False
        if self._transport is not None and self._output:
            self._transport.write(b"".join(self._output))
        self._output.clear()

    def _fail(self, condition: str, description: str) -> None:
        _log.info("connection closed: %s (%s)", description, condition)
        if self._opened:
            self._send(Close(error=error(condition, description)))
        self._hang_up()

    def _hang_up(self) -> None:
        self._closed = True
        self._flush()
        if self._transport is not None:
            self._transport.close()
