"""Names in archives lead nowhere else and meet no other."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.shared.errors import InvalidDocument
from workflows.transfers.paths import NAME_CHARACTERS, SEGMENT_BYTES, ArchiveNames


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b"a.csv", "a.csv"),
        (b"./out/./a.csv", "out/a.csv"),
        (b"out//a.csv", "out/a.csv"),
        (b"out\\a.csv", "out/a.csv"),
        ("Zähler.csv".encode(), "Zähler.csv"),
        (b"..a/b..", "..a/b.."),
    ],
)
def test_a_name_is_a_relative_path(raw: bytes, name: str) -> None:
    assert ArchiveNames().taken(raw) == name


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"../a", "leads out"),
        (b"a/../../b", "leads out"),
        (b"..\\a", "leads out"),
        (b"a/..", "leads out"),
        (b"/etc/passwd", "absolute"),
        (b"\\\\host\\share", "absolute"),
        (b"C:\\a", "absolute"),
        (b"c:a", "absolute"),
        (b"a\0b", "control characters"),
        (b"a\nb", "control characters"),
        ("a\u0085b".encode(), "control characters"),
        (b"", "no name"),
        (b"./", "no name"),
        (b"a" * (SEGMENT_BYTES + 1), "too long"),
        (b"a/" * NAME_CHARACTERS, "too long"),
        (b"M\xfcll.csv", r"b'M\\xfcll.csv' is not utf-8: set the encoding"),
    ],
)
def test_a_name_that_is_none_is_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(InvalidDocument, match=reason):
        ArchiveNames().taken(raw)


def test_names_of_another_encoding_are_read_where_it_is_set() -> None:
    assert ArchiveNames("cp850").taken("Müll.csv".encode("cp850")) == "Müll.csv"
    assert ArchiveNames("cp850").taken("Müll.csv".encode(), is_utf8=True) == "Müll.csv"
    with pytest.raises(InvalidDocument, match="is not nonsense"):
        ArchiveNames("nonsense").taken(b"a")


@pytest.mark.parametrize(
    ("first", "second", "flatten"),
    [
        ("a.csv", "a.csv", False),
        ("a", "./a", False),
        ("out/A.csv", "OUT/a.csv", False),
        ("é", unicodedata.normalize("NFD", "é"), False),
        ("straße", "STRASSE", False),
        ("one/a", "two/A", True),
    ],
)
def test_two_names_that_are_one_elsewhere_are_refused(
    first: str, second: str, flatten: bool
) -> None:
    names = ArchiveNames(flatten=flatten)
    names.taken(first.encode())
    with pytest.raises(InvalidDocument, match=r"twice|elsewhere are one file"):
        names.taken(second.encode())


def test_folders_are_dropped_where_that_is_asked_for() -> None:
    assert ArchiveNames(flatten=True).taken(b"out/today/a.csv") == "a.csv"


@given(st.binary(max_size=40), st.booleans())
def test_no_name_leads_anywhere_else(raw: bytes, flatten: bool) -> None:
    try:
        name = ArchiveNames("latin-1", flatten=flatten).taken(raw)
    except InvalidDocument:
        return
    segments = name.split("/")
    assert not {"", ".", ".."} & set(segments)
    assert not name.startswith("/")
    assert "\\" not in name
    assert "\0" not in name
    assert not flatten or len(segments) == 1
