"""Shared strings are the same with and without the XML parser, whatever stands among them."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapters.files.tables.xlsx.values import SharedStrings
from adapters.ports.errors import UnreadableDocument
from tests.support.chaos import examples
from tests.support.files.workbooks import strings_xml

ITEMS = (
    *("<t>code</t>", "<t>\u00c4rmel &amp; Co</t>", "<t></t>", "<t/>", "<t>a_x000D_b</t>"),
    *('<t xml:space="preserve"> a </t>', "<t>&lt;b&gt; &quot;&apos;</t>", "<t>&amp;lt;</t>"),
    *("<t>&#65;</t>", "<t><![CDATA[</t></si><si><t>]]></t>", "<t>two\nlines\r\n</t>", ""),
    *('<r><t>ri</t></r><r><t xml:space="preserve">ch </t></r>', "<t>" + "x" * 32_767 + "</t>"),
    *('<t>\u6771\u4eac</t><rPh sb="0" eb="2"><t>no</t></rPh>', "<!-- </si> --><t>a</t>"),
)
PLAIN = strings_xml(*(f"<t>plain \u00e4{n}</t>" for n in range(200))).encode()
INSERTS = (
    *(bytes([byte]) for byte in (0, 9, 10, 13, 32, 34, 38, 60, 62, 0xC3, 0xA4, 0xEF, 0xFF)),
    *(b"<!--", b"-->", b"<![CDATA[", b"]]>", b"</si>", b"<si>", b"</sst>", b"&amp;", b"<a>"),
    *(b"\xef\xbf\xbf", b"\xed\xa0\x80", b"</t></si><si><t>", b"<t>", b"&x;", b"x" * 40_000),
)


def outcome(xml: bytes, size: int, in_memory: int) -> list[str] | type[UnreadableDocument]:
    with SharedStrings(in_memory) as strings:
        try:
            strings.load(xml[start : start + size] for start in range(0, len(xml), size))
        except UnreadableDocument:
            return UnreadableDocument
        found = [strings[n] for n in range(len(strings))]
        digits = [str(n).encode() for n in range(len(strings))]
        assert strings.cells([None, *digits]) == [None, *(text or None for text in found)]
        assert strings.cells(digits) == [text or None for text in found]
        return found


def by_parser(xml: bytes) -> list[str] | type[UnreadableDocument]:
    """The same file with prefixed items, which only the XML parser reads."""
    prefixed = xml.replace(b"<si", b"<x:si").replace(b"</si", b"</x:si")
    found = outcome(prefixed, 1 << 18, 1 << 20)
    return found if isinstance(found, type) else [text.replace("x:si", "si") for text in found]


@settings(max_examples=examples(75), deadline=None)
@given(
    items=st.lists(st.sampled_from((*ITEMS[:2], *ITEMS)), max_size=200),
    size=st.sampled_from([1 << 18, 700, 64]),
    in_memory=st.sampled_from([64, 1 << 20]),
)
@example(items=[ITEMS[0]] * 63 + [ITEMS[11]] + [ITEMS[0]] * 90, size=1 << 18, in_memory=1 << 20)
def test_both_ways_read_the_same(items: list[str], size: int, in_memory: int) -> None:
    xml = strings_xml(*items).encode()
    assert outcome(xml, size, in_memory) == by_parser(xml)


@settings(max_examples=examples(150), deadline=None)
@given(
    at=st.integers(0, len(PLAIN)),
    cut=st.integers(0, 12),
    insert=st.sampled_from((b"", *INSERTS)),
    size=st.sampled_from([1 << 18, 100]),
)
@example(at=PLAIN.index(b"\xa43<"), cut=1, insert=b"</t></si><si><t>", size=1 << 18)
@example(at=PLAIN.index(b"\xa43<"), cut=0, insert=b"</t></si><si><t>", size=1 << 18)
def test_both_ways_agree_on_damage(at: int, cut: int, insert: bytes, size: int) -> None:
    xml = PLAIN[:at] + insert + PLAIN[at + cut :]
    assert outcome(xml, size, 1 << 20) == by_parser(xml)


@pytest.mark.parametrize("raw", [b"3", b"999999999"])
def test_a_string_that_is_not_there_is_refused(raw: bytes) -> None:
    with SharedStrings() as strings:
        strings.load([strings_xml("<t>a</t>", "<t>b</t>", "<t>c</t>").encode()])
        with pytest.raises(UnreadableDocument, match="is not there"):
            strings.cells([b"0", raw])


@pytest.mark.parametrize("raw", [b"-1", b"+1", b"1_0", b"0x1", b"1.0"])
def test_what_is_no_index_is_refused(raw: bytes) -> None:
    with SharedStrings() as strings:
        strings.load([strings_xml(*(f"<t>{n}</t>" for n in range(12))).encode()])
        with pytest.raises(UnreadableDocument, match="damaged"):
            strings.cells([b"0", raw])
