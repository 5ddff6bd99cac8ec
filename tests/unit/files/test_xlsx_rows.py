"""The two ways to read a worksheet's rows, by grammar and by XML parser, agree on every file."""

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapters.files.tables.xlsx.cells import Grammar, LineNumbers, Workbook
from adapters.files.tables.xlsx.reader import read_rows
from adapters.files.tables.xlsx.values import Format, SharedStrings
from adapters.ports.documents import Row
from adapters.ports.errors import UnreadableDocument
from tests.support.chaos import examples
from tests.support.files.workbooks import sheet_xml, strings_xml

STRINGS = ("code", "Ärmel & Co", "", "a_x000D_b", "=1+1")


def make_workbook() -> Workbook:
    strings = SharedStrings()
    items = (f"<t>{text.replace('&', '&amp;')}</t>" for text in STRINGS)
    strings.load([strings_xml(*items).encode()])
    return Workbook(strings, [Format.NUMBER, Format.DATE, Format.DATETIME, Format.TIME])


def blocks_of(xml: bytes, size: int) -> Iterator[bytes]:
    return (xml[start : start + size] for start in range(0, len(xml), size))


def outcome(xml: bytes, size: int, *, use_grammar: bool) -> list[Row] | type[UnreadableDocument]:
    try:
        return list(read_rows(blocks_of(xml, size), make_workbook(), use_grammar=use_grammar))
    except UnreadableDocument:
        return UnreadableDocument


def same(rows: list[Row] | type[UnreadableDocument]) -> object:
    """1, 1.0 and True are equal, but not the same cell."""
    if isinstance(rows, type):
        return rows
    return [(line, [(type(cell), cell) for cell in cells]) for line, cells in rows]


CELLS = [
    '<c r="{}" t="s"><v>0</v></c>',
    '<c r="{}" s="1" t="s"><v>1</v></c>',
    '<c r="{}" t="s"><v>2</v></c>',
    '<c r="{}" t="s"><v>3</v></c>',
    '<c r="{}" t="s"><v>007</v></c>',
    '<c r="{}"><v>12</v></c>',
    '<c r="{}" t="n"><v>12345678901234567890</v></c>',
    '<c r="{}"><v>-1.5E-3</v></c>',
    '<c r="{}"><v>-0.0</v></c>',
    '<c r="{}"><v>+5</v></c>',
    '<c r="{}"><v>1e999</v></c>',
    '<c r="{}"><v>nan</v></c>',
    '<c r="{}"><v> 7 </v></c>',
    '<c r="{}" s="1"><v>45000</v></c>',
    '<c r="{}" s="1"><v>60</v></c>',
    '<c r="{}" s="2"><v>45000.25</v></c>',
    '<c r="{}" s="3"><v>0.5</v></c>',
    '<c r="{}" s="99"><v>1</v></c>',
    '<c r="{}" s="1"/>',
    '<c r="{}" s="2" />',
    '<c r="{}"></c>',
    '<c r="{}"><v></v></c>',
    '<c r="{}" t="b"><v>1</v></c>',
    '<c r="{}" t="b"><v>true</v></c>',
    '<c r="{}" t="e"><v>#N/A</v></c>',
    '<c r="{}" t="str"><f>A1&amp;B1</f><v>x</v></c>',
    '<c r="{}" t="str"><f>A1</f><v></v></c>',
    '<c r="{}" t="str"><v>tail </v></c>',
    '<c r="{}"><f>1+1</f><v>2</v></c>',
    '<c r="{}"><f>1+1</f></c>',
    '<c r="{}"><f t="shared" si="0"/><v>3</v></c>',
    '<c r="{}"><f t="shared" ref="A1:A9" si="0">B1+1</f><v>3</v></c>',
    '<c r="{}"><f t="array" ref="A1:A9">B1+1</f><v>3</v></c>',
    '<c r="{}" t="inlineStr"><is><t>plain</t></is></c>',
    '<c r="{}" t="inlineStr"><is><t xml:space="preserve"> ü\n </t></is></c>',
    '<c r="{}" t="inlineStr"><is><r><t>a</t></r><rPh sb="0" eb="1"><t>no</t></rPh>'
    "<r><t>b</t></r></is></c>",
    '<c r="{}" t="inlineStr"><is><t>&lt;&#65;_x0041_</t></is></c>',
    '<c r="{}" t="inlineStr"><is><t><![CDATA[</c></row><row r="9">]]></t></is></c>',
    '<c r="{}" t="d"><v>2024-02-03</v></c>',
    "<c t='s' r='{}'><v>0</v></c>",
    '<!-- <c r="Z1"><v>1</v></c> --><c r="{}"><v>4</v></c>',
    '<c r="{}"><v>1<!-- --></v></c>',
]
HEADS = ["", ' spans="1:4"', ' ht="15.75" customHeight="1"', " hidden='1'"]
BETWEEN = ["", "", "", "\n  ", '<!-- <row r="7"><c r="A7"><v>7</v></c></row> -->', "<?pi </row>?>"]


@st.composite
def rows_of_cells(draw: st.DrawFn) -> str:
    """Rows in few shapes, as programs write them, with now and then an odd one."""
    shapes = draw(
        st.lists(
            st.lists(st.tuples(st.integers(0, 3), st.sampled_from(CELLS)), max_size=4),
            min_size=1,
            max_size=3,
        )
    )
    line = 0
    rows: list[str] = []
    for _ in range(draw(st.integers(1, 12))):
        line += draw(st.sampled_from([1, 1, 1, 5]))
        column = 0
        cells = ""
        for gap, cell in draw(st.sampled_from(shapes)):
            column += gap
            cells += cell.format(f"{chr(65 + column)}{line}")
            column += 1
        head = draw(st.sampled_from(HEADS))
        rows.append(draw(st.sampled_from(BETWEEN)))
        rows.append(f'<row r="{line}"{head}>{cells}</row>')
    return "".join(rows)


@settings(max_examples=examples(75), deadline=None)
@given(rows=rows_of_cells(), size=st.sampled_from([1 << 18, 700, 64, 7]))
@example(rows='<row r="1"><c r="A1"><v>1</v></c></row>' * 2, size=1 << 18)
def test_both_ways_read_the_same(rows: str, size: int) -> None:
    xml = sheet_xml(rows).encode()
    by_grammar = outcome(xml, size, use_grammar=True)
    assert same(by_grammar) == same(outcome(xml, size, use_grammar=False))


PLAIN = "".join(
    f'<row r="{n}" spans="1:4"><c r="A{n}" t="s"><v>{n % 5}</v></c><c r="B{n}"><v>{n}.5</v></c>'
    f'<c r="C{n}" s="1"><f>$B{n}+45000</f><v>{45000 + n}</v></c>'
    f'<c r="D{n}" t="inlineStr"><is><t>ä{n}</t></is></c></row>'
    for n in range(1, 9)
)
PLAIN_START = sheet_xml(PLAIN).encode().index(b"<row")
INSERTS = (
    *(bytes([byte]) for byte in (0, 9, 10, 13, 32, 34, 38, 39, 45, 47, 48, 60, 62, 69, 0xEF, 0xFF)),
    *(b"<!--", b"-->", b"<![CDATA[", b"]]>", b"</row>", b"</sheetData>", b"&amp;", b"&x;"),
    *(b"\xef\xbf\xbf", b"\xed\xa0\x80", b' r="1"', b' t="s"', b"<v>1</v>", b"<f>1</f>"),
)


@settings(max_examples=examples(100), deadline=None)
@given(
    at=st.integers(0, len(sheet_xml(PLAIN).encode())),
    cut=st.integers(0, 12),
    insert=st.sampled_from((b"", *INSERTS)),
    size=st.sampled_from([1 << 18, 100]),
)
@example(at=PLAIN_START + PLAIN.encode().index("ä5".encode()), cut=0, insert=b"]]>", size=1 << 18)
def test_both_ways_agree_on_damage(at: int, cut: int, insert: bytes, size: int) -> None:
    xml = sheet_xml(PLAIN).encode()
    xml = xml[:at] + insert + xml[at + cut :]
    by_grammar = outcome(xml, size, use_grammar=True)
    assert same(by_grammar) == same(outcome(xml, size, use_grammar=False))


def test_the_grammar_takes_in_what_programs_write() -> None:
    grammar = Grammar(make_workbook(), LineNumbers())
    grammar.learn(PLAIN[: PLAIN.index("</row>") + 6].encode())
    position, rows = grammar.take(PLAIN.encode(), 0)
    assert position == len(PLAIN.encode())
    assert [line for line, _ in rows] == list(range(1, 9))


def test_blank_and_new_kinds_of_cells_widen_the_grammar() -> None:
    grammar = Grammar(make_workbook(), LineNumbers())
    grammar.learn(b'<row r="1"><c r="A1" s="1" t="s"><v>0</v></c></row>')
    grammar.learn(b'<row r="2"><c r="A2" s="3"><v>1</v></c><c r="B2"><v>1</v></c></row>')
    later = (
        b'<row r="3"><c r="A3" s="1"/><c r="B3"><v>1</v></c></row>'
        b'<row r="4"></row><row r="5"><c r="A5" s="1" t="s"><v>1</v></c></row>'
    )
    position, rows = grammar.take(later, 0)
    assert position == len(later)
    assert rows == [(3, [None, 1]), (5, ["Ärmel & Co"])]


@pytest.mark.parametrize("use_grammar", [True, False])
@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ('<row r="2"/><row r="2"/>', "row 2 comes after row 2"),
        ('<row r="1048577"/>', "must be in order"),
        ('<row r="x"/>', "numbered 'x'"),
        ('<row r="1"><c r="B1"/><c r="A1"/></row>', "out of order"),
        ('<row r="1"><c r="A2"/></row>', "called 'A2'"),
        ('<row r="1"><c t="s"><v>9</v></c></row>', "shared string 9"),
        ('<row r="1"><c t="s"><v>-1</v></c></row>', "shared string"),
        ('<row r="1"><c r="XFD1"><v>1</v></c></row>', "column 16,384"),
        ('<row r="1"><c t="str"><v>' + "x" * 32_768 + "</v></c></row>", "32,767 characters"),
        ("<row " + "a" * (5 << 20), "XML"),
        ("<a>" * 100, "64 deep"),
    ],
)
def test_refused(rows: str, reason: str, use_grammar: bool) -> None:
    xml = sheet_xml(rows).encode()
    with pytest.raises(UnreadableDocument, match=reason):
        list(read_rows(blocks_of(xml, 1 << 18), make_workbook(), use_grammar=use_grammar))


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1"])
def test_other_xml_encodings(encoding: str) -> None:
    xml = sheet_xml(PLAIN).replace("UTF-8", encoding).encode(encoding)
    plain = outcome(sheet_xml(PLAIN).encode(), 1 << 18, use_grammar=True)
    assert same(outcome(xml, 100, use_grammar=True)) == same(plain)


def test_prefixed_elements_are_the_same_elements() -> None:
    xml = sheet_xml(PLAIN)
    for name in ("worksheet", "sheetData", "row", "c", "v", "is", "t"):
        for end in (" ", ">"):
            xml = xml.replace(f"<{name}{end}", f"<x:{name}{end}")
        xml = xml.replace(f"</{name}>", f"</x:{name}>")
    xml = xml.replace("xmlns=", "xmlns:x=")
    plain = outcome(sheet_xml(PLAIN).encode(), 1 << 18, use_grammar=True)
    assert same(outcome(xml.encode(), 100, use_grammar=True)) == same(plain)
