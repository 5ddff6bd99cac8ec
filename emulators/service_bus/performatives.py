"""Frames and the performatives they carry.

Source: OASIS AMQP 1.0, part 2 (transport) and 5.3 (SASL). Fields that this broker neither reads
nor writes are kept as they came.
"""

from dataclasses import MISSING, dataclass, fields
from functools import cache
from itertools import zip_longest
from struct import Struct
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    NamedTuple,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from emulators.service_bus.codec import (
    CodecError,
    Described,
    Symbol,
    UByte,
    UInt,
    ULong,
    UShort,
    Value,
    decode,
    encode,
)

AMQP_HEADER: Final = b"AMQP\x00\x01\x00\x00"
SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"
AMQP_FRAME: Final = 0
SASL_FRAME: Final = 1
FRAME_HEADER: Final = Struct(">IBBH")
"""Size, data offset in words of four bytes, type, channel."""

RECEIVED: Final = 0x23
ACCEPTED: Final = 0x24
REJECTED: Final = 0x25
RELEASED: Final = 0x26
MODIFIED: Final = 0x27

ERROR: Final = 0x1D
SOURCE: Final = 0x28
TARGET: Final = 0x29


U8: TypeAlias = Annotated[int, UByte]
U16: TypeAlias = Annotated[int, UShort]
U32: TypeAlias = Annotated[int, UInt]
U64: TypeAlias = Annotated[int, ULong]


@dataclass(slots=True, kw_only=True)
class Performative:
    """What a frame asks for."""

    CODE: ClassVar[int]


@dataclass(slots=True, kw_only=True)
class Open(Performative):
    """Begins a connection; idle_time_out in milliseconds."""

    CODE: ClassVar[int] = 0x10
    container_id: str
    hostname: str | None = None
    max_frame_size: U32 | None = None
    channel_max: U16 | None = None
    idle_time_out: U32 | None = None
    outgoing_locales: Value = None
    incoming_locales: Value = None
    offered_capabilities: Value = None
    desired_capabilities: Value = None
    properties: dict[str, Value] | None = None


@dataclass(slots=True, kw_only=True)
class Begin(Performative):
    """Begins a session on a channel."""

    CODE: ClassVar[int] = 0x11
    remote_channel: U16 | None = None
    next_outgoing_id: U32
    incoming_window: U32
    outgoing_window: U32
    handle_max: U32 | None = None
    offered_capabilities: Value = None
    desired_capabilities: Value = None
    properties: Value = None


@dataclass(slots=True, kw_only=True)
class Attach(Performative):
    """Attaches a link; role is True for the end that receives."""

    CODE: ClassVar[int] = 0x12
    name: str
    handle: U32
    role: bool
    snd_settle_mode: U8 | None = None
    rcv_settle_mode: U8 | None = None
    source: Described | None = None
    target: Described | None = None
    unsettled: Value = None
    incomplete_unsettled: bool | None = None
    initial_delivery_count: U32 | None = None
    max_message_size: U64 | None = None
    offered_capabilities: Value = None
    desired_capabilities: Value = None
    properties: dict[str, Value] | None = None


@dataclass(slots=True, kw_only=True)
class Flow(Performative):
    """Window of the session, and of one link when it has a handle."""

    CODE: ClassVar[int] = 0x13
    next_incoming_id: U32 | None = None
    incoming_window: U32
    next_outgoing_id: U32
    outgoing_window: U32
    handle: U32 | None = None
    delivery_count: U32 | None = None
    link_credit: U32 | None = None
    available: U32 | None = None
    drain: bool | None = None
    echo: bool | None = None
    properties: Value = None


@dataclass(slots=True, kw_only=True)
class Transfer(Performative):
    """A message or a piece of one; the bytes follow the performative in its frame."""

    CODE: ClassVar[int] = 0x14
    handle: U32
    delivery_id: U32 | None = None
    delivery_tag: bytes | None = None
    message_format: U32 | None = None
    settled: bool | None = None
    more: bool | None = None
    rcv_settle_mode: U8 | None = None
    state: Described | None = None
    resume: bool | None = None
    aborted: bool | None = None
    batchable: bool | None = None


@dataclass(slots=True, kw_only=True)
class Disposition(Performative):
    """The outcome of deliveries; role is that of the end that sends it."""

    CODE: ClassVar[int] = 0x15
    role: bool
    first: U32
    last: U32 | None = None
    settled: bool | None = None
    state: Described | None = None
    batchable: bool | None = None


@dataclass(slots=True, kw_only=True)
class Detach(Performative):
    """Detaches a link, permanently when closed."""

    CODE: ClassVar[int] = 0x16
    handle: U32
    closed: bool | None = None
    error: Described | None = None


@dataclass(slots=True, kw_only=True)
class End(Performative):
    """Ends a session."""

    CODE: ClassVar[int] = 0x17
    error: Described | None = None


@dataclass(slots=True, kw_only=True)
class Close(Performative):
    """Ends a connection."""

    CODE: ClassVar[int] = 0x18
    error: Described | None = None


@dataclass(slots=True, kw_only=True)
class SaslMechanisms(Performative):
    """Offers ways to log in."""

    CODE: ClassVar[int] = 0x40
    sasl_server_mechanisms: Value


@dataclass(slots=True, kw_only=True)
class SaslInit(Performative):
    """Chooses a way to log in."""

    CODE: ClassVar[int] = 0x41
    mechanism: Symbol
    initial_response: bytes | None = None
    hostname: str | None = None


@dataclass(slots=True, kw_only=True)
class SaslOutcome(Performative):
    """Answers a log-in: 0 is success, 1 a refusal."""

    CODE: ClassVar[int] = 0x44
    code: U8
    additional_data: bytes | None = None


_INTEGERS: Final = frozenset({UByte, UShort, UInt, ULong})
_BY_CODE: Final[dict[int, type[Performative]]] = {
    kind.CODE: kind
    for kind in (
        *(Open, Begin, Attach, Flow, Transfer, Disposition, Detach, End, Close),
        *(SaslMechanisms, SaslInit, SaslOutcome),
    )
}


class _Slot(NamedTuple):
    """A field on the wire."""

    name: str
    kind: type
    """The type that it must have; `object` for what is taken as it comes."""
    mandatory: bool


@cache
def _layout(performative: type[Performative]) -> tuple[_Slot, ...]:
    hints = get_type_hints(performative, include_extras=True)
    return tuple(
        _Slot(item.name, _wire_type(hints[item.name]), item.default is MISSING)
        for item in fields(performative)
    )


def _wire_type(hint: Any) -> type:
    if get_origin(hint) in (Union, UnionType):
        hint = get_args(hint)[0]
    if get_origin(hint) is Annotated:
        return hint.__metadata__[0]
    return object if hint is Any else get_origin(hint) or hint


def encode_performative(performative: Performative) -> bytes:
    """Encode a performative without its frame.

    Empty fields at the end are written too: azure-eventhub reads them by their places.

    Raises:
        CodecError: A field does not fit its type.
    """
    values: list[Value] = []
    for name, kind, _ in _layout(type(performative)):
        value = getattr(performative, name)
        values.append(kind(value) if kind in _INTEGERS and value is not None else value)
    return encode(Described(ULong(performative.CODE), values))


def decode_performative(data: bytes) -> tuple[Performative, bytes]:
    """Decode the body of a frame.

    Returns:
        The performative, and the bytes behind it (the payload of a transfer).

    Raises:
        CodecError: The bytes are not a performative, or a field is missing or of a wrong type.
    """
    described, end = decode(data)
    if not isinstance(described, Described) or not isinstance(described.value, list):
        raise CodecError("a frame must hold a described list")
    kind = _BY_CODE.get(described.descriptor) if type(described.descriptor) is ULong else None
    if kind is None:
        raise CodecError(f"{described.descriptor!r} is not a performative")
    return _checked(kind, cast(list[Value], described.value)), data[end:]


def _checked(kind: type[Performative], values: list[Value]) -> Performative:
    """Check values against the fields of a performative."""
    layout = _layout(kind)
    if len(values) > len(layout):
        raise CodecError(f"a {kind.__name__} has at most {len(layout)} fields")
    given: dict[str, Value] = {}
    for slot, value in zip_longest(layout, values):
        if value is None and slot.mandatory:
            raise CodecError(f"{kind.__name__} lacks {slot.name}")
        if value is not None and not isinstance(value, slot.kind):
            raise CodecError(f"{slot.name} of {kind.__name__} must be a {slot.kind.__name__}")
        given[slot.name] = value
    return kind(**given)


def frame(channel: int, body: bytes, kind: int = AMQP_FRAME) -> bytes:
    """Put a body into a frame; an empty body keeps a connection alive."""
    return FRAME_HEADER.pack(FRAME_HEADER.size + len(body), 2, kind, channel) + body


def outcome(code: int, *values: Value) -> Described:
    """A delivery state, such as `outcome(ACCEPTED)`."""
    return Described(ULong(code), list(values))


def error(condition: str, description: str) -> Described:
    """An error as performatives and outcomes carry it.

    The empty third field is written out because azure-servicebus reads it without looking whether
    it is there.
    """
    return Described(ULong(ERROR), [Symbol(condition), description, None])


_MOST_FIELDS: Final = 11
"""Fields of a source, the longest described list that is read by position."""


def fields_of(described: Value, code: int) -> list[Value]:
    """Values of a described list, padded so that optional ones can be read by position.

    Raises:
        CodecError: It is not a described list of this code.
    """
    if not isinstance(described, Described) or described.descriptor != code:
        raise CodecError(f"{described!r} is not of type 0x{code:02x}")
    if not isinstance(described.value, list):
        raise CodecError(f"type 0x{code:02x} must hold a list")
    return [*cast(list[Value], described.value), *[None] * _MOST_FIELDS]
