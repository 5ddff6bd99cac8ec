"""Messages as bytes: what the broker may touch is taken apart, the rest is kept as it came.

Source: OASIS AMQP 1.0, part 3.2 (message format) and Azure Service Bus's `x-opt-` annotations.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, cast

from emulators.service_bus.codec import (
    CodecError,
    Described,
    Symbol,
    Timestamp,
    UInt,
    ULong,
    Value,
    decode,
    encode,
    encode_raw_map,
)

BATCH_FORMAT: Final = 0x80013700
"""Message format of a transfer whose data sections are messages themselves."""

_HEADER, _DELIVERY_ANNOTATIONS, _ANNOTATIONS = 0x70, 0x71, 0x72
_PROPERTIES, _APPLICATION_PROPERTIES = 0x73, 0x74
_DATA, _SEQUENCE, _VALUE, _FOOTER = 0x75, 0x76, 0x77, 0x78
_DELIVERY_COUNT: Final = 4
_SMALL_MAP: Final = 0xC1
_ABSENT: Final = (b"", None)

SCHEDULED_FOR: Final = "x-opt-scheduled-enqueue-time"
OWNED: Final = frozenset(
    {
        "x-opt-deadletter-source",
        "x-opt-enqueue-sequence-number",
        "x-opt-enqueued-time",
        "x-opt-lock-token",
        "x-opt-locked-until",
        "x-opt-message-state",
        "x-opt-offset",
        "x-opt-sequence-number",
    }
)
"""Annotations that only the broker writes; what a sender puts there is dropped."""


@dataclass(frozen=True, slots=True)
class Content:
    """A message in the parts that the broker distinguishes."""

    header: tuple[Value, ...]
    """Durable, priority, time to live in milliseconds, first acquirer."""
    annotations: Mapping[Value, bytes]
    """The encoded pair (key and value) of each annotation, by key."""
    properties: bytes
    """The section as it came, or nothing."""
    application_properties: bytes
    """The section as it came, or nothing."""
    body: bytes
    """Body sections and footer as they came; nothing for a message without a body."""

    @property
    def time_to_live(self) -> float | None:
        """Seconds, or None for a message that does not expire."""
        milliseconds = self.header[2]
        return milliseconds / 1000 if isinstance(milliseconds, int) and milliseconds else None

    @property
    def scheduled_for(self) -> float | None:
        """When the sender wants it to become visible, in seconds since 1970."""
        pair = self.annotations.get(SCHEDULED_FOR)
        if pair is None:
            return None
        _, offset = decode(pair)
        moment, _ = decode(pair, offset)
        return moment / 1000 if isinstance(moment, Timestamp) else None

    def with_application_properties(self, extra: Mapping[str, str]) -> "Content":
        """A copy with application properties added; those that were there keep their bytes."""
        section = self.application_properties
        pairs = _raw_pairs(section) if section else {}
        pairs |= {name: encode(name) + encode(text) for name, text in extra.items()}
        merged = _section(_APPLICATION_PROPERTIES, encode_raw_map(list(pairs.values())))
        return replace(self, application_properties=merged)

    def encode(self, delivery_count: int, annotations: Mapping[str, Value]) -> bytes:
        """The message as a receiver gets it.

        Args:
            delivery_count: Failed deliveries so far.
            annotations: What the broker adds to it.
        """
        header = [*self.header, UInt(delivery_count)]
        pairs = [*self.annotations.values()]
        pairs += [encode(Symbol(name)) + encode(value) for name, value in annotations.items()]
        return b"".join(
            (
                _section(_HEADER, encode(header)),
                _section(_ANNOTATIONS, encode_raw_map(pairs)),
                self.properties,
                self.application_properties,
                self.body,
            )
        )


def parse(data: bytes) -> Content:
    """Take an encoded message apart; it may lack a body, as Azure Service Bus accepts it.

    Delivery annotations are for the broker alone and are not forwarded.

    Raises:
        CodecError: The bytes are not an AMQP message.
    """
    head: dict[int, tuple[bytes, Value]] = {}
    body: list[bytes] = []
    for code, section, value in _sections(data):
        if code >= _DATA:
            body.append(section)
        elif isinstance(value, list if code in (_HEADER, _PROPERTIES) else dict):
            head[code] = section, value
        else:
            raise CodecError(f"section 0x{code:02x} of a message is malformed")
    header: list[Value] = head[_HEADER][1] if _HEADER in head else []
    annotations = _raw_pairs(head[_ANNOTATIONS][0]) if _ANNOTATIONS in head else {}
    return Content(
        header=(*header, *[None] * _DELIVERY_COUNT)[:_DELIVERY_COUNT],
        annotations={key: pair for key, pair in annotations.items() if key not in OWNED},
        properties=head.get(_PROPERTIES, _ABSENT)[0],
        application_properties=head.get(_APPLICATION_PROPERTIES, _ABSENT)[0],
        body=b"".join(body),
    )


def parse_batch(data: bytes) -> list[Content]:
    """Take a transfer of `BATCH_FORMAT` apart into its messages.

    Raises:
        CodecError: The bytes are no such batch.
    """
    messages = [value for code, _, value in _sections(data) if code == _DATA]
    if not messages:
        raise CodecError("a batch must hold at least one message")
    return [parse(message) for message in messages]


def read_request(data: bytes) -> tuple[Value, dict[str, Value], Value]:
    """A request to a management node.

    Returns:
        Message id, application properties, and the value of the body.

    Raises:
        CodecError: The bytes are not an AMQP message with such a body.
    """
    found = {code: value for code, _, value in _sections(data)}
    properties = found.get(_PROPERTIES)
    application_properties = found.get(_APPLICATION_PROPERTIES)
    if not isinstance(properties, list) or not isinstance(application_properties, dict):
        raise CodecError("a request must have properties and application properties")
    message_id = cast(list[Value], properties)[0] if properties else None
    return message_id, cast(dict[str, Value], application_properties), found.get(_VALUE)


def encode_response(correlation_id: Value, properties: Mapping[str, Value], value: Value) -> bytes:
    """Answer a request of a management node."""
    correlation = [*[None] * 5, correlation_id]
    return b"".join(
        (
            _section(_PROPERTIES, encode(correlation)),
            _section(_APPLICATION_PROPERTIES, encode(dict(properties))),
            _section(_VALUE, encode(value)),
        )
    )


def _sections(data: bytes) -> Iterator[tuple[int, bytes, Value]]:
    """Code, bytes and value of each section, in the order that the specification asks for.

    Delivery annotations may stand anywhere, once: azure-servicebus writes them behind the footer.
    """
    offset, previous, annotated = 0, 0, False
    while offset < len(data):
        described, end = decode(data, offset)
        code = described.descriptor if isinstance(described, Described) else None
        if not isinstance(code, ULong) or not _HEADER <= code <= _FOOTER:
            raise CodecError("a message must consist of AMQP sections")
        if code == _DELIVERY_ANNOTATIONS:
            out_of_order, annotated = annotated, True
        else:
            repeated = code == previous and code not in (_DATA, _SEQUENCE)
            out_of_order, previous = code < previous or repeated, code
        if out_of_order:
            raise CodecError("the sections of a message are out of order")
        if code == _DATA and not isinstance(described.value, bytes):
            raise CodecError("a data section must hold binary")
        yield code, data[offset:end], described.value
        offset = end


def _section(code: int, value: bytes) -> bytes:
    return bytes((0x00, 0x53, code)) + value


def _raw_pairs(section: bytes) -> dict[Value, bytes]:
    """The encoded pairs of a section that holds a map."""
    _, offset = decode(section, 1)
    offset += 3 if section[offset] == _SMALL_MAP else 9
    pairs: dict[Value, bytes] = {}
    while offset < len(section):
        key, middle = decode(section, offset)
        _, end = decode(section, middle)
        pairs[key] = section[offset:end]
        offset = end
    return pairs
