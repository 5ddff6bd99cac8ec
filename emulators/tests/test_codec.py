"""The AMQP codec: what is encoded comes back, and hostile bytes end in one kind of error."""

import math
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulators.service_bus.codec import (
    MAX_DEPTH,
    Array,
    Byte,
    CodecError,
    Described,
    Float,
    Int,
    Opaque,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    decode,
    encode,
)
from emulators.service_bus.performatives import (
    Attach,
    Begin,
    Flow,
    Open,
    Transfer,
    decode_performative,
    encode_performative,
)


def integers(bits: int, kind: type[int], *, signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return st.integers(low, high).map(kind)


TYPED = [
    st.booleans(),
    integers(8, UByte, signed=False),
    integers(16, UShort, signed=False),
    integers(32, UInt, signed=False),
    integers(64, ULong, signed=False),
    integers(8, Byte, signed=True),
    integers(16, Short, signed=True),
    integers(32, Int, signed=True),
    integers(64, int, signed=True),
    integers(64, Timestamp, signed=True),
    st.floats(allow_nan=False),
    st.floats(width=32, allow_nan=False).map(Float),
    st.binary(max_size=300),
    st.text(max_size=300),
    st.text(st.characters(max_codepoint=127), max_size=300).map(Symbol),
    st.uuids(),
    st.binary(min_size=16, max_size=16).map(lambda data: Opaque(0x94, data)),
]
SCALARS = st.one_of(st.none(), *TYPED)


def nest(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(values, max_size=6),
        st.dictionaries(st.text(max_size=9) | st.text("ab", max_size=9).map(Symbol), values),
        st.builds(Described, integers(64, ULong, signed=False), values),
    )


VALUES = st.recursive(
    SCALARS | st.one_of(*(st.lists(kind, max_size=6).map(Array) for kind in TYPED)),
    nest,
    max_leaves=12,
)


def types(value: Any) -> Any:
    """The shape of a value in types, since UInt(1), 1 and True are equal."""
    match value:
        case list():
            return type(value), [types(item) for item in value]
        case dict():
            return [(type(key), types(item)) for key, item in value.items()]
        case Described():
            return types(value.descriptor), types(value.value)
        case _:
            return type(value)


@given(VALUES)
def test_a_value_is_decoded_with_its_type(value: Any) -> None:
    data = encode(value)
    decoded, end = decode(b"\x40" + data, 1)
    assert decoded == value
    assert types(decoded) == types(value)
    assert end == 1 + len(data)


@given(VALUES, st.data())
def test_truncated_values_are_refused(value: Any, data: st.DataObject) -> None:
    encoded = encode(value)
    cut = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(CodecError):
        decode(encoded[:cut])


@given(st.binary(max_size=200))
def test_arbitrary_bytes_decode_or_are_refused(data: bytes) -> None:
    try:
        _, end = decode(data)
    except CodecError:
        return
    assert 0 < end <= len(data)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("43", 0),
        ("5207", 7),
        ("54ff", -1),
        ("a103616263", "abc"),
        ("c0 04 02 5401 40", [1, None]),
        ("c1 05 02 a10161 41", {"a": True}),
        ("e0 06 02 a1 0161 0162", ["a", "b"]),
        ("e0 01 00", []),
        ("f0 00000005 00000000 83", []),
        ("00 5324 45", Described(ULong(0x24), [])),
        ("98" + "00" * 16, uuid.UUID(int=0)),
    ],
)
def test_encodings_of_the_specification(data: str, value: Any) -> None:
    assert decode(bytes.fromhex(data)) == (value, len(bytes.fromhex(data)))


@pytest.mark.parametrize(
    "data",
    [
        "",
        "01",
        "d0 0000000a ffffffff 404040404040",
        "f0 00000005 ffffffff 40",
        "c1 02 01 40",
        "c1 03 02 45 40",
        "c0 04 01 40 40 40",
        "b1 00000004 616263",
        "a1 01 ff",
        "a3 01 80",
        "00" * 2000,
        "c0ff01" * 2000,
    ],
)
def test_hostile_encodings_are_refused(data: str) -> None:
    with pytest.raises(CodecError):
        decode(bytes.fromhex(data))


def test_nesting_has_a_limit() -> None:
    value: list[Any] = []
    for _ in range(MAX_DEPTH):
        value = [value]
    assert decode(encode(value))[0] == value
    with pytest.raises(CodecError):
        decode(encode([[value]]))


@pytest.mark.parametrize(
    "value",
    [UByte(256), UInt(-1), 1 << 63, Symbol("å"), {1, 2}, Array([1, "a"]), Float(math.inf) * 0j],
)
def test_values_without_a_type_are_refused(value: Any) -> None:
    with pytest.raises(CodecError):
        encode(value)


@pytest.mark.parametrize(
    "performative",
    [
        Open(container_id="c", max_frame_size=512, properties={Symbol("product"): "p"}),
        Begin(next_outgoing_id=1, incoming_window=2, outgoing_window=3),
        Attach(name="n", handle=0, role=False, source=Described(ULong(0x28), ["q"])),
        Flow(incoming_window=1, next_outgoing_id=2, outgoing_window=3, link_credit=4, drain=True),
        Transfer(handle=1, delivery_id=2, delivery_tag=b"tag", settled=False, more=True),
    ],
)
def test_performatives_are_decoded_with_their_payload(performative: Any) -> None:
    data = encode_performative(performative) + b"payload"
    assert decode_performative(data) == (performative, b"payload")


@pytest.mark.parametrize(
    ("code", "values", "complaint"),
    [
        (0x10, [], "lacks container_id"),
        (0x10, [7], "container_id of Open must be a str"),
        (0x12, ["name", UInt(0), None], "lacks role"),
        (0x14, [ULong(1)], "handle of Transfer must be a UInt"),
        (0x18, [None, None], "at most 1 fields"),
        (0x99, [], "not a performative"),
    ],
)
def test_malformed_performatives_are_refused(code: int, values: list[Any], complaint: str) -> None:
    with pytest.raises(CodecError, match=complaint):
        decode_performative(encode(Described(ULong(code), values)))
