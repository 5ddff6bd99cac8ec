"""CSV and TSV: encodings, delimiters, lines."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.files.tables.delimited import open_delimited
from adapters.ports.documents import Row
from adapters.ports.errors import UnreadableDocument


def read(path: Path, content: bytes, encoding: str | None = None) -> tuple[str | None, list[Row]]:
    path.write_bytes(content)
    with open_delimited(path, encoding) as table:
        assert table.format == "csv"
        assert table.sheet is None
        return table.encoding, list(table.rows())


TEXT = "Größe;Preis €\nmittel;10,5\nDübel größer;3,5\n"


@pytest.mark.parametrize(
    ("encoding", "asked", "found"),
    [
        ("utf-8", None, "utf-8"),
        ("utf-8-sig", None, "utf-8-sig"),
        ("utf-8-sig", "utf-8", "utf-8-sig"),
        ("utf-16", None, "utf-16"),
        ("utf-16-le", None, "utf-16-le"),
        ("utf-16-be", None, "utf-16-be"),
        ("utf-32", None, "utf-32"),
        ("cp1252", "cp1252", "cp1252"),
        ("cp850", "CP850", "cp850"),
    ],
)
def test_encodings(tmp_path: Path, encoding: str, asked: str | None, found: str) -> None:
    text = TEXT.replace("€", "EUR") if encoding == "cp850" else TEXT
    read_as, rows = read(tmp_path / "t", text.encode(encoding), asked)
    assert read_as == found
    assert rows[0] == (1, text.splitlines()[0].split(";"))
    assert rows[2] == (3, ["Dübel größer", "3,5"])


@pytest.mark.parametrize("name", ["5 € Stück", "10 m² Fläche, Ø 50 mm"])
def test_a_few_accents_do_not_make_a_rare_code_page(tmp_path: Path, name: str) -> None:
    """Detection names Hebrew and Cyrillic ones for these, on next to no evidence."""
    encoding, rows = read(tmp_path / "t", f"code;name\nA;{name}\n".encode("cp1252"))
    assert (encoding, rows[1][1]) == ("windows-1252", ["A", name])


def test_another_script_is_recognised(tmp_path: Path) -> None:
    name = "\u043d\u0430\u0441\u043e\u0441 \u0446\u0435\u043d\u0442\u0440"
    _, rows = read(tmp_path / "t", ("code;name\n" + f"A;{name}\n" * 20).encode("cp1251"))
    assert rows[1][1] == ["A", name]


@pytest.mark.parametrize(
    ("content", "asked", "used", "first"),
    [
        (b"a;b,c\n1;2,3\n", None, ",", ["a;b", "c"]),
        (b"a;b,c\n1;2,3\n", ";", ";", ["a", "b,c"]),
        (b"sep=|\na|b;c\n", None, "|", ["a", "b;c"]),
        (b"sep=|\na|b;c\n", ";", ";", ["a|b", "c"]),
        (b"a b\tc\n", " ", " ", ["a", "b\tc"]),
    ],
)
def test_the_delimiter_asked_for_is_used(
    tmp_path: Path, content: bytes, asked: str | None, used: str, first: list[str]
) -> None:
    path = tmp_path / "t"
    path.write_bytes(content)
    with open_delimited(path, delimiter=asked) as table:
        assert table.delimiter == used
        assert next(table.rows())[1] == first


@pytest.mark.parametrize("delimiter", ["", '"', "\n", "\r", "\0", ";;"])
def test_what_cannot_delimit_is_refused(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"a;b\n")
    with (
        pytest.raises(UnreadableDocument, match="cannot stand between fields"),
        open_delimited(path, delimiter=delimiter),
    ):
        pass


def test_utf8_must_hold_to_the_end(tmp_path: Path) -> None:
    """A sample of the beginning would say UTF-8, and the load would fail half-way."""
    content = b"code,name\n" + b"A,plain\n" * 200_000 + "B,Größe\n".encode("cp1252")
    encoding, rows = read(tmp_path / "t", content)
    assert encoding != "utf-8"
    assert len(rows) == 200_002
    assert rows[-1][0] == 200_002


def test_a_text_that_is_nearly_utf8_is_asked_about(tmp_path: Path) -> None:
    content = "code;name\nA;K\u00fchlger\u00e4t\nB;Gr\u00f6\u00dfe\n".encode() + b"C;Gr\xfcn\n"
    with pytest.raises(UnreadableDocument, match="of another encoding, the first on line 4"):
        read(tmp_path / "t", content)
    assert read(tmp_path / "t", content, "cp1252")[1][3] == (4, ["C", "Gr\u00fcn"])


def test_the_line_that_names_the_delimiter_is_no_record(tmp_path: Path) -> None:
    _, rows = read(tmp_path / "t", b"sep=|\r\na|b,c;d\r\n1|2\r\n")
    assert rows == [(2, ["a", "b,c;d"]), (3, ["1", "2"])]


def test_lines_are_those_that_records_start_on(tmp_path: Path) -> None:
    content = b'a,b\r\n\r\n"one\r\ntwo\r\nthree",1\r\n,,\r\n"x ""y""",2,,\r\nlast,'
    _, rows = read(tmp_path / "t", content)
    assert rows == [
        (1, ["a", "b"]),
        (3, ["one\r\ntwo\r\nthree", "1"]),
        (7, ['x "y"', "2"]),
        (8, ["last"]),
    ]


def test_values_of_several_lines_with_delimiters_are_one_value(tmp_path: Path) -> None:
    _, rows = read(tmp_path / "t", b'a,b,c\n1,"x, y\nz, v",2\n"p,\nq","r\ns",3\n')
    assert rows[1:] == [(2, ["1", "x, y\nz, v", "2"]), (4, ["p,\nq", "r\ns", "3"])]
    _, rows = read(tmp_path / "t", b'a;b\n1;"x\ny;z"\n')
    assert rows[1:] == [(2, ["1", "x\ny;z"])]


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ('="00123"', "00123"),
        ('"=""A """"q"""" B"""', 'A "q" B'),
        ('\'="00123"', '="00123"'),
        ("=A1", "=A1"),
    ],
)
def test_a_formula_that_is_a_text_reads_as_that_text(
    tmp_path: Path, field: str, shown: str
) -> None:
    _, rows = read(tmp_path / "t", f"a,b\n{field},1\n".encode())
    assert rows[1] == (2, [shown, "1"])


def test_fields_of_the_first_records_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"a,b,\n\n1\n1,2,3,4\n")
    with open_delimited(path) as table:
        assert len(list(table.rows())) == 3
        assert table.widths == {1: 3, 3: 1, 4: 4}


FIELD = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"), max_size=8
).filter(lambda text: not text.lower().startswith("sep="))


@given(table=st.lists(st.lists(FIELD, min_size=2, max_size=5), min_size=1, max_size=8))
def test_quoted_text_is_unquoted(
    tmp_path_factory: pytest.TempPathFactory, table: list[list[str]]
) -> None:
    lines = [",".join('"' + field.replace('"', '""') + '"' for field in row) for row in table]
    path = tmp_path_factory.mktemp("csv") / "t"
    path.write_bytes(("sep=,\n" + "\n".join(lines)).encode("utf-8-sig"))
    with open_delimited(path) as opened:
        found = dict(opened.rows())
    for line, row in enumerate(table, start=2):
        while row and not row[-1]:
            row.pop()
        assert found.get(line, []) == row


@pytest.mark.parametrize(
    ("content", "encoding", "reason"),
    [
        (b"a,b\n1,\x00\n", None, "NUL"),
        (b"a,b\n1,\xff\n", "utf-8", "not in utf-8"),
        (b"a,b\n", "klingon", "no text encoding 'klingon'"),
        (b"a,b\n", "base64", "not a text encoding"),
        (b"a,b\n" + b"x" * (10 << 20), None, "line of more than"),
        (b'a,b\n1,"' + b"x" * 200_000, None, "line 2: a cell .* 131,072 .* too long"),
        (b'a,b\n"\n' + b'","\n' * 20_000, None, "line 2: the record does not end"),
        (b'a,b\n1,2\n3,"4\n5,6\n', None, "line 3: a quote is opened and never closed"),
        (
            b'a;b;c\n1;"2 in;3\n2;x;3\n3;pipe 4";5\n',
            None,
            "line 2: a quote makes one value of 3 lines",
        ),
        (b'a\tb\n1\t"2 in\n2\t"4 in\n', None, "line 2: '\t' expected after"),
        (b'a;b\n1;2\n"A" frame;2\n', None, "line 3: ';' expected after"),
        (b"a,b\n" + b"1," * 2_000, None, "line 2 holds 2,000 fields"),
        (b"\xff\xfea\x00b", "utf-16", "not in utf-16"),
    ],
    ids=[
        *(
            "nul",
            "bytes",
            "unknown",
            "no-text",
            "line",
            "quote",
            "record",
            "open",
            "rows",
            "inches",
        ),
        *("frame", "fields", "cut"),
    ],
)
def test_refused(tmp_path: Path, content: bytes, encoding: str | None, reason: str) -> None:
    with pytest.raises(UnreadableDocument, match=reason):
        read(tmp_path / "t", content, encoding)


@pytest.mark.parametrize("encoding", ["undefined", "idna", "punycode", "unicode_escape", "utf-7"])
def test_odd_encodings_do_no_harm(tmp_path: Path, encoding: str) -> None:
    try:
        read(tmp_path / "t", b"a,b\n\\x,+\xff\n", encoding)
    except UnreadableDocument as refused:
        assert encoding.partition("_")[0] in str(refused)
