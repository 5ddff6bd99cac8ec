"""Values of the AMQP 1.0 type system, to and from bytes.

Python value            AMQP type
None, bool              null, boolean
int                     long
UByte ... ULong, Byte ... Int, Timestamp   the integer type of that name
float, Float            double, float
bytes, str, Symbol      binary, string, symbol
uuid.UUID               uuid
list, dict, Array       list, map, array
Described               a described value
Opaque                  char and the decimals, kept as they came

Source: OASIS AMQP 1.0, part 1 (types). Bytes are hostile until decoded: sizes, counts and
nesting are checked before anything is allocated, and whatever is wrong is a `CodecError`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from struct import error as _struct_error
from typing import Any, Final, TypeAlias
from uuid import UUID

Value: TypeAlias = Any
"""One of the Python values in the table above."""

MAX_DEPTH: Final = 32
MAX_EMPTY_ITEMS: Final = 65_536
"""Items of an array whose encoding takes no bytes, which no size can bound."""


class CodecError(Exception):
    """The bytes are not what AMQP 1.0 allows, or the value has no AMQP type."""


class Symbol(str):
    """ASCII text from a constrained domain."""


class UByte(int):
    """0 to 2**8 - 1."""


class UShort(int):
    """0 to 2**16 - 1."""


class UInt(int):
    """0 to 2**32 - 1."""


class ULong(int):
    """0 to 2**64 - 1."""


class Byte(int):
    """A signed integer of 8 bits."""


class Short(int):
    """A signed integer of 16 bits."""


class Int(int):
    """A signed integer of 32 bits."""


class Timestamp(int):
    """Milliseconds since 1970 UTC."""


class Float(float):
    """A number of 32 bits."""


class Array(list[Value]):
    """Values of one type."""


@dataclass(frozen=True, slots=True)
class Described:
    """A value and the descriptor of its meaning."""

    descriptor: Value
    value: Value


@dataclass(frozen=True, slots=True)
class Opaque:
    """A char or decimal: its constructor and the bytes behind it."""

    constructor: int
    data: bytes


_U8, _U32 = Struct(">B"), Struct(">I")
_FIXED: Final[dict[type, tuple[int, Struct]]] = {
    UByte: (0x50, _U8),
    Byte: (0x51, Struct(">b")),
    UShort: (0x60, Struct(">H")),
    Short: (0x61, Struct(">h")),
    UInt: (0x70, _U32),
    Int: (0x71, Struct(">i")),
    Float: (0x72, Struct(">f")),
    ULong: (0x80, Struct(">Q")),
    int: (0x81, Struct(">q")),
    float: (0x82, Struct(">d")),
    Timestamp: (0x83, Struct(">q")),
}
_OPAQUE_WIDTHS: Final = {0x73: 4, 0x74: 4, 0x84: 8, 0x94: 16}


def encode(value: Value) -> bytes:
    """Encode one value with its constructor.

    Raises:
        CodecError: The value has no AMQP type or does not fit it.
    """
    kind: type = value.__class__
    if value is None:
        return b"\x40"
    if kind is bool:
        return b"\x41" if value else b"\x42"
    if kind is ULong and 0 <= value < 256:
        return bytes((0x53, value))
    if kind is UInt and 0 <= value < 256:
        return bytes((0x52, value))
    if kind is Described:
        return b"\x00" + encode(value.descriptor) + encode(value.value)
    if kind is list and not value:
        return b"\x45"
    constructor, body = _body(value)
    if constructor in (0xB0, 0xB1, 0xB3) and len(body) < 260:
        return bytes((constructor - 0x10,)) + body[3:]
    return bytes((constructor,)) + body


def _body(value: Value) -> tuple[int, bytes]:
    """The widest constructor of a value's type, as arrays need it, and the bytes behind it."""
    kind: type = value.__class__
    try:
        if kind in _FIXED:
            constructor, layout = _FIXED[kind]
            return constructor, layout.pack(value)
        if kind is bytes:
            return 0xB0, _U32.pack(len(value)) + value
        if kind is str:
            text = value.encode()
            return 0xB1, _U32.pack(len(text)) + text
        if kind is Symbol:
            text = value.encode("ascii")
            return 0xB3, _U32.pack(len(text)) + text
    except (OverflowError, UnicodeEncodeError, ValueError, _struct_error) as error:
        raise CodecError(f"{value!r} does not fit the AMQP type {kind.__name__}") from error
    if kind is bool:
        return 0x56, b"\x01" if value else b"\x00"
    if kind is UUID:
        return 0x98, value.bytes
    if kind is list:
        return 0xD0, _compound(len(value), b"".join(map(encode, value)))
    if kind is dict:
        pairs = b"".join(encode(key) + encode(item) for key, item in value.items())
        return 0xD1, _compound(2 * len(value), pairs)
    if kind is Array:
        return 0xF0, _array(value)
    if kind is Opaque:
        return value.constructor, value.data
    raise CodecError(f"a {kind.__name__} has no AMQP type")


def _compound(count: int, items: bytes) -> bytes:
    return _U32.pack(len(items) + 4) + _U32.pack(count) + items


def _array(items: Array) -> bytes:
    if not items:
        return _compound(0, b"\x40")
    bodies = [_body(item) for item in items]
    constructor = bodies[0][0]
    if any(other != constructor for other, _ in bodies):
        raise CodecError("the values of an array must be of one type")
    return _compound(len(items), bytes((constructor,)) + b"".join(body for _, body in bodies))


def encode_raw_map(pairs: list[bytes]) -> bytes:
    """A map whose pairs (key and value) are encoded already."""
    return b"\xd1" + _compound(2 * len(pairs), b"".join(pairs))


def decode(data: bytes, offset: int = 0) -> tuple[Value, int]:
    """Decode the value at an offset.

    Returns:
        The value, and the offset of the byte behind it.

    Raises:
        CodecError: The bytes are not an AMQP value.
    """
    return _read(data, offset, 0)


def _read(data: bytes, offset: int, depth: int) -> tuple[Value, int]:
    try:
        constructor = data[offset]
    except IndexError:
        raise CodecError("the data ends where a value should begin") from None
    offset += 1
    if constructor == 0x00:
        if depth >= MAX_DEPTH:
            raise CodecError(f"values are nested more than {MAX_DEPTH} deep")
        descriptor, offset = _read(data, offset, depth + 1)
        value, offset = _read(data, offset, depth + 1)
        return Described(descriptor, value), offset
    reader = _READERS.get(constructor)
    if reader is None:
        raise CodecError(f"0x{constructor:02x} is not an AMQP constructor")
    return reader(data, offset, depth)


_Reader = Callable[[bytes, int, int], tuple[Value, int]]


def _constant(value: Value) -> _Reader:
    return lambda _data, offset, _depth: (value, offset)


def _fixed(kind: Callable[[Value], Value], layout: Struct) -> _Reader:
    unpack, width = layout.unpack_from, layout.size

    def read(data: bytes, offset: int, _depth: int) -> tuple[Value, int]:
        end = offset + width
        if end > len(data):
            raise CodecError("a number is cut off")
        return kind(unpack(data, offset)[0]), end

    return read


def _slice(kind: Callable[[bytes], Value], width: int) -> _Reader:
    def read(data: bytes, offset: int, _depth: int) -> tuple[Value, int]:
        end = offset + width
        if end > len(data):
            raise CodecError("a value of fixed width is cut off")
        return kind(data[offset:end]), end

    return read


def _variable(kind: Callable[[bytes], Value], size: Struct) -> _Reader:
    def read(data: bytes, offset: int, _depth: int) -> tuple[Value, int]:
        start, end = _extent(data, offset, size)
        try:
            return kind(data[start:end]), end
        except UnicodeDecodeError as error:
            raise CodecError("a string is not valid UTF-8, or a symbol not ASCII") from error

    return read


def _extent(data: bytes, offset: int, size: Struct) -> tuple[int, int]:
    """Where a sized value starts and ends."""
    start = offset + size.size
    if start > len(data):
        raise CodecError("a size is cut off")
    end = start + size.unpack_from(data, offset)[0]
    if end > len(data):
        raise CodecError("a value is longer than the data that holds it")
    return start, end


def _items(data: bytes, offset: int, size: Struct, depth: int) -> tuple[int, int, int]:
    """Item count of a compound value, and where its items start and end."""
    if depth >= MAX_DEPTH:
        raise CodecError(f"values are nested more than {MAX_DEPTH} deep")
    start, end = _extent(data, offset, size)
    if start + size.size > end:
        raise CodecError("an item count is cut off")
    return size.unpack_from(data, start)[0], start + size.size, end


def _list(size: Struct) -> _Reader:
    def read(data: bytes, offset: int, depth: int) -> tuple[Value, int]:
        count, offset, end = _items(data, offset, size, depth)
        if count > end - offset:
            raise CodecError(f"a list claims {count} items in {end - offset} bytes")
        items: list[Value] = []
        for _ in range(count):
            item, offset = _read(data, offset, depth + 1)
            items.append(item)
        _check_end(offset, end)
        return items, end

    return read


def _map(size: Struct) -> _Reader:
    def read(data: bytes, offset: int, depth: int) -> tuple[Value, int]:
        count, offset, end = _items(data, offset, size, depth)
        if count % 2 or count > end - offset:
            raise CodecError(f"a map claims {count} keys and values in {end - offset} bytes")
        pairs: dict[Value, Value] = {}
        for _ in range(count // 2):
            key, offset = _read(data, offset, depth + 1)
            pair, offset = _read(data, offset, depth + 1)
            try:
                pairs[key] = pair
            except TypeError:
                raise CodecError(f"a {type(key).__name__} cannot be the key of a map") from None
        _check_end(offset, end)
        return pairs, end

    return read


def _array_reader(size: Struct) -> _Reader:
    def read(data: bytes, offset: int, depth: int) -> tuple[Value, int]:
        count, offset, end = _items(data, offset, size, depth)
        if offset == end:
            if count:
                raise CodecError("an array without a constructor claims items")
            return Array(), end
        reader = _READERS.get(data[offset])
        if reader is None:
            raise CodecError("arrays of described or unknown types are not supported")
        offset += 1
        if count > max(end - offset, MAX_EMPTY_ITEMS):
            raise CodecError(f"an array claims {count} items in {end - offset} bytes")
        items = Array()
        for _ in range(count):
            item, offset = reader(data, offset, depth + 1)
            items.append(item)
        _check_end(offset, end)
        return items, end

    return read


def _check_end(offset: int, end: int) -> None:
    if offset != end:
        raise CodecError("the items of a compound value do not fill its size")


def _plain(value: Value) -> Value:
    return value


def _opaque(constructor: int) -> Callable[[bytes], Opaque]:
    return lambda data: Opaque(constructor, data)


def _empty_list(_data: bytes, offset: int, _depth: int) -> tuple[Value, int]:
    return [], offset


def _text(data: bytes) -> str:
    return data.decode()


def _symbol(data: bytes) -> Symbol:
    return Symbol(data.decode("ascii"))


def _uuid(data: bytes) -> UUID:
    return UUID(bytes=data)


_READERS: Final[dict[int, _Reader]] = {
    0x40: _constant(None),
    0x41: _constant(True),
    0x42: _constant(False),
    0x43: _constant(UInt(0)),
    0x44: _constant(ULong(0)),
    0x45: _empty_list,
    0x52: _fixed(UInt, _U8),
    0x53: _fixed(ULong, _U8),
    0x54: _fixed(Int, Struct(">b")),
    0x55: _fixed(_plain, Struct(">b")),
    0x56: _fixed(bool, _U8),
    0x98: _slice(_uuid, 16),
    0xC0: _list(_U8),
    0xD0: _list(_U32),
    0xC1: _map(_U8),
    0xD1: _map(_U32),
    0xE0: _array_reader(_U8),
    0xF0: _array_reader(_U32),
}
for _kind, (_constructor, _layout) in _FIXED.items():
    _READERS[_constructor] = _fixed(_plain if _kind in (int, float) else _kind, _layout)
for _constructor, _width in _OPAQUE_WIDTHS.items():
    _READERS[_constructor] = _slice(_opaque(_constructor), _width)
for _constructor, _kind in ((0xA0, bytes), (0xA1, _text), (0xA3, _symbol)):
    _READERS[_constructor] = _variable(_kind, _U8)
    _READERS[_constructor + 0x10] = _variable(_kind, _U32)
