"""Columns match by what is certain; likeness only suggests."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.spreadsheets.column_matching import column_name, match_columns
from activities.spreadsheets.sheet_types import discover
from adapters.types.files import read_type
from tests.support.chaos import examples
from tests.support.spreadsheets.rules import SHIRTS
from workflows.imports.header import meaning_of
from workflows.imports.types import table_spec
from workflows.shared.fields import FieldSpec, squash
from workflows.spreadsheets.mappings import ColumnMapping, MappingStatus

PARTICIPANT = discover()["EVENT_PARTICIPANT"].fields_for([SHIRTS])
MEMBERSHIP = discover()["MEMBERSHIP"].fields
RESULT = discover()["RESULT"].fields


def match(
    *headers: str,
    fields: tuple[FieldSpec, ...] = PARTICIPANT,
    remembered: dict[str, str | None] | None = None,
    samples: tuple[tuple[str, ...], ...] = (),
) -> tuple[ColumnMapping, ...]:
    return match_columns(list(enumerate(headers)), fields, remembered or {}, samples)


GOODS = read_type(
    "name: goods\ntitle: Goods\nkey: [code]\nfields:\n  code: {kind: code, required: true}\n"
    "  weight: {kind: decimal, units: [kg], aliases: {de: [Gewicht]}}\n"
    "  price: {kind: money, currency: EUR}\n  length: {kind: decimal}\n  note: {}\n",
    "goods.yaml",
)


@pytest.mark.parametrize(
    ("header", "field", "why"),
    [
        ("Weight (kg)", "weight", ""),
        ("Gewicht [kg]", "weight", ""),
        ("Weight kg", "weight", ""),
        ("Weight (lb)", None, "names another unit than the field"),
        ("Price (EUR)", "price", ""),
        ("Price in \u20ac", "price", ""),
        ("Price (USD)", None, "names another unit than the field"),
        ("Price (TEUR)", None, ""),
        ("Length [mm]", "length", ""),
    ],
)
def test_a_unit_beside_a_name_means_the_same_by_both_doors(
    header: str, field: str | None, why: str
) -> None:
    spec = table_spec(GOODS, "goods", {})
    (column,) = match(header, fields=spec.fields)
    by_message = meaning_of(header, spec)
    assert (column.target, by_message and by_message.field.name) == (field, field)
    assert not why or column.alternatives[0].why.startswith(why)


def test_what_is_no_unit_is_left_to_a_person() -> None:
    assert {each.target for each in match("Phone (home)", "Weight (net)")} == {None}


def test_a_long_header_is_cut() -> None:
    (column,) = match("x" * 5000)
    assert (column.target, column.alternatives, column.header) == (None, (), "x" * 200)


def test_name_is_the_last_name_beside_a_first_name() -> None:
    first, last = match("Name", "Vorname")
    assert (first.target, first.confidence) == ("LAST_NAME", 0.95)
    assert last.target == "FIRST_NAME"
    assert [column.target for column in match("Name", "Vorname", "Nachname")] == [
        None,
        "FIRST_NAME",
        "LAST_NAME",
    ]


def test_earlier_decisions_rank_after_names_and_aliases() -> None:
    memory = {"Klub-Nr.": "BIB", "vorname": "LAST_NAME", "Hose": "NO_SUCH_FIELD", "★": "TEAM"}
    club, first, trousers, star = match("KLUB NR", "Vorname", "Hose", "★", remembered=memory)
    assert (club.target, club.confidence, club.status) == ("BIB", 0.9, MappingStatus.AUTO_MATCHED)
    assert (first.target, first.confidence) == ("FIRST_NAME", 0.95)
    assert trousers.target is None
    assert star.target == "TEAM"


def test_the_better_column_has_the_field_and_of_equals_the_first() -> None:
    alias, exact = match("Surname", "Last name")
    assert (alias.target, exact.target) == (None, "LAST_NAME")
    assert (alias.alternatives[0].name, alias.alternatives[0].score) == ("LAST_NAME", 0.95)
    first, second = match("Time", "Zeit", fields=RESULT)
    assert (first.target, second.target) == ("FINISH_TIME", None)


def test_a_column_that_loses_a_field_takes_what_it_was_before() -> None:
    exact, alias = match("Last name", "Surname", remembered={"Surname": "TEAM"})
    assert (exact.target, alias.target, alias.confidence) == ("LAST_NAME", "TEAM", 0.9)


def test_places_and_ids_of_columns() -> None:
    columns = match_columns([(0, "Email"), (3, "Bib")], PARTICIPANT, {})
    assert [(column.id, column.index) for column in columns] == [(1, 0), (4, 3)]
    columns = match_columns([(0, "Email"), (16_383, "Bib")], PARTICIPANT, {})
    assert [(column.id, column.index) for column in columns] == [(1, 0), (2, 16_383)]


def test_columns_without_a_header_are_called_by_their_letter() -> None:
    assert [column_name(index) for index in (0, 5, 25, 26, 701, 702, 16_383)] == [
        *("Column A", "Column F", "Column Z", "Column AA", "Column ZZ", "Column AAA"),
        "Column XFD",
    ]


MAILS = ("ann@example.org", "bob@example.com", "n/a")


def test_a_column_of_mails_is_the_mail_address_and_says_why() -> None:
    name, contact = match("Wer", "Kontakt", samples=(("Ann", "Bob"), MAILS))
    assert (contact.target, contact.status) == ("EMAIL", MappingStatus.AUTO_MATCHED)
    assert (contact.confidence, contact.why) == (0.97, "2 of 2 values are mail addresses")
    assert name.target is None


def test_two_columns_of_mails_are_asked_about() -> None:
    columns = match("Kontakt", "Internet", samples=(MAILS, MAILS))
    assert [column.target for column in columns] == [None, None]
    assert [column.alternatives for column in columns] == [(), ()]


def test_a_column_of_mails_beside_the_mail_address_is_another_matter() -> None:
    mail, parents = match("E-Mail", "Eltern", samples=(MAILS, MAILS))
    assert (mail.target, parents.target, parents.alternatives) == ("EMAIL", None, ())


def test_values_that_do_not_fit_speak_against_a_field() -> None:
    (column,) = match("Birthdat", samples=(("Berlin", "Hamburg"),))
    assert column.alternatives == ()
    (column,) = match("Birthdat", samples=(("1990-05-31", "2001-01-01"),))
    assert column.alternatives[0].why == (
        "the header looks like \u201cbirthdate\u201d; 2 of 2 values are dates"
    )


def test_values_alone_suggest_a_field() -> None:
    (column,) = match("Flag", samples=(("GBR", "France", "Deutschland"),))
    assert (column.target, column.alternatives[0].name) == (None, "ID_COUNTRY")
    assert column.alternatives[0].why == "3 of 3 values are countries"


def test_what_was_left_out_before_is_left_out_again() -> None:
    memory: dict[str, str | None] = {"Notes": None, "Vorname": None, "Hobby": None}
    notes, first, hobby = match("Notes", "Vorname", "HOBBY", remembered=memory)
    assert (notes.target, notes.status, notes.confidence) == (None, MappingStatus.IGNORED, 0.9)
    assert notes.why == hobby.why == "left out before"
    # Without it the file would have no first name.
    assert (first.target, first.status) == ("FIRST_NAME", MappingStatus.AUTO_MATCHED)
    left, given = match("Vorname", "First name", remembered=memory)
    assert (left.status, given.target) == (MappingStatus.IGNORED, "FIRST_NAME")


HEADERS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [form for field in (*PARTICIPANT, *MEMBERSHIP, *RESULT) for form in field.wordings]
    ),
)


@settings(deadline=None, max_examples=examples(60))
@given(
    st.lists(HEADERS, max_size=12),
    st.sampled_from([PARTICIPANT, MEMBERSHIP, RESULT]),
    st.dictionaries(HEADERS, st.sampled_from([field.name for field in PARTICIPANT]), max_size=4),
)
def test_no_two_columns_share_a_field(
    headers: list[str], fields: tuple[FieldSpec, ...], remembered: dict[str, str]
) -> None:
    columns = match_columns(list(enumerate(headers)), fields, remembered)
    assert [column.header for column in columns] == headers
    targets = [column.target for column in columns if column.target is not None]
    assert len(set(targets)) == len(targets)
    for column in columns:
        assert (column.target is None) == (column.confidence == 0)
        assert column.confidence in (0, 0.9, 0.95, 0.97, 1)
        assert column.target not in {each.name for each in column.alternatives}


@settings(deadline=None)
@given(st.text(max_size=50))
def test_squashing_twice_changes_nothing_more(text: str) -> None:
    assert squash(squash(text)) == squash(text)
    assert " " not in squash(text)
