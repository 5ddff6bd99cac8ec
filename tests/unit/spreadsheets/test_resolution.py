"""Values refer to what they name; likeness only suggests."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.spreadsheets import entities
from activities.spreadsheets.entities import EntityIndex, EntityScope, ImportContext, Likeness
from activities.spreadsheets.sheet_types import discover
from activities.spreadsheets.value_mapping import check_decision, resolver_of, scope_of
from adapters.database.schema import country_rows
from adapters.types import countries
from tests.support.spreadsheets.country_names import country_names
from tests.support.spreadsheets.rules import (
    CATEGORIES,
    JUNIOR,
    MASTERS,
    SHIRTS,
    TODAY,
    surroundings,
)
from workflows.spreadsheets.fields import Entity, value_key
from workflows.spreadsheets.mappings import CellDecision

ALL_COUNTRIES = surroundings(
    entities={
        "countries": [
            Entity(row["id"], row["name"], json.loads(row["spellings"])) for row in country_rows()
        ]
    }
)
FIELDS = {field.name: field for field in discover()["EVENT_PARTICIPANT"].fields_for([SHIRTS])}


def listed(*names: str) -> ImportContext:
    return surroundings(
        entities={"event_categories": [Entity(id, name) for id, name in enumerate(names, 1)]}
    )


def meaning(value: str, context: ImportContext) -> int | None:
    found = resolver_of("event_categories").resolve(value, context)
    return None if found.target is None else found.target.id


def test_every_code_and_name_of_every_country() -> None:
    resolver = resolver_of("countries")
    for country in country_rows():
        for value in (*json.loads(country["spellings"]), f"{country['id']:03}"):
            found = resolver.resolve(value, ALL_COUNTRIES).target
            assert found is not None and found.id == country["id"], value


def test_the_names_of_countries_are_those_of_cldr() -> None:
    stored = Path(countries.__file__).with_name("country_names.tsv")
    assert stored.read_text(encoding="utf-8").splitlines() == list(country_names())


def test_a_country_is_found_by_the_beginning_of_a_name_in_any_language() -> None:
    found = resolver_of("countries").candidates(ALL_COUNTRIES, "Allema")
    assert found[0].id == 276


def test_a_misspelt_country_is_suggested() -> None:
    found = resolver_of("countries").resolve("Deutschlnd", ALL_COUNTRIES)
    assert found.alternatives[0].entity.id == 276


def test_what_two_rows_are_called_is_neither() -> None:
    context = listed("Junior (U18)", "Junior (U16)", "U16", "Elite", "elite")
    assert meaning("Junior", context) is None
    assert meaning("u18", context) == 1
    assert meaning("U16", context) == 3
    assert meaning("Elite", context) is None
    assert resolver_of("event_categories").resolve("Elite", context).alternatives == ()


def test_signs_make_a_difference() -> None:
    context = listed("A+", "A-", "0+")
    assert [meaning(value, context) for value in ("a+", "A-", "A", "0-", "0 +")] == [
        *(1, 2, None, None, 3),
    ]


def test_a_name_ranks_before_a_spelling() -> None:
    context = surroundings(
        entities={"event_categories": [Entity(1, "Men", ("M", "Open")), Entity(2, "Open")]}
    )
    assert [meaning(value, context) for value in ("open", "m", "men")] == [2, 1, 1]


def test_candidates_are_ranked() -> None:
    resolver = resolver_of("countries")
    names = [each.name for each in resolver.candidates(ALL_COUNTRIES, "ger")]
    assert names[0] == "Germany"
    assert "Niger" in names
    assert len(names) == len(set(names)) <= 50
    first = resolver.candidates(ALL_COUNTRIES, " ")
    assert [each.name for each in first[:2]] == ["Afghanistan", "Åland Islands"]
    assert len(first) == 50
    assert resolver.candidates(ALL_COUNTRIES, "Schwiez")[0].name == "Switzerland"


def test_candidates_of_a_few() -> None:
    resolver = resolver_of("event_categories")
    context = surroundings()
    assert list(resolver.candidates(context, "")) == [*CATEGORIES[:1], *CATEGORIES[:0:-1]]
    assert [each.id for each in resolver.candidates(context, "vet")] == [MASTERS]
    assert resolver.candidates(context, "zzz") == []
    assert resolver_of("nothing/1").candidates(context, "a") == []


def test_suggestions_end_before_they_cost_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entities, "COMPARISONS", 4)
    index = EntityIndex([Entity(1, "Junior"), Entity(2, "Senior")])
    assert [len(index.likely("Junoir")) > 0 for _ in range(3)] == [True, True, False]


def test_scopes() -> None:
    context = surroundings()
    assert scope_of(FIELDS["CUSTOM_LIST_T_SHIRT"], context) == EntityScope("custom_list/7", 1, 5)
    with pytest.raises(ValueError, match="EMAIL has no resolver"):
        scope_of(FIELDS["EMAIL"], context)


@pytest.mark.parametrize(
    ("field", "decision", "refusal"),
    [
        ("EVENT_CATEGORY_NAME", CellDecision(id=3, target_id=JUNIOR), None),
        ("EVENT_CATEGORY_NAME", CellDecision(id=3, create=True), None),
        ("EVENT_CATEGORY_NAME", CellDecision(id=3, ignore=True), None),
        ("EVENT_CATEGORY_NAME", CellDecision(id=3, target_id=999), "value 3: there is no Category"),
        ("EVENT_CATEGORY_NAME", CellDecision(id=3), "value 3: set exactly one"),
        (
            "EVENT_CATEGORY_NAME",
            CellDecision(id=3, ignore=True, confirm=True),
            "value 3: set exactly one",
        ),
        ("ID_COUNTRY", CellDecision(id=4, create=True), "value 4: Country takes what is there"),
        ("ID_COUNTRY", CellDecision(id=4, confirm=True), None),
    ],
)
def test_decisions_are_checked(field: str, decision: CellDecision, refusal: str | None) -> None:
    candidates = {each.id: each for each in CATEGORIES}
    said = check_decision(FIELDS[field], decision, candidates)
    assert (said is None) == (refusal is None)
    assert said is None or said.startswith(refusal or "")


@settings(deadline=None)
@given(st.text(max_size=40))
def test_value_keys_are_stable(text: str) -> None:
    key = value_key(text)
    assert value_key(f"  {text} ") == key
    assert value_key(key) == key
    assert bool(key) == bool(text.strip())


@settings(deadline=None)
@given(
    st.lists(st.text(max_size=12), max_size=8, unique=True),
    st.text(max_size=12),
)
def test_any_list_and_any_value(names: Sequence[str], value: str) -> None:
    index = EntityIndex([Entity(id, name) for id, name in enumerate(names, 1)])
    found = index.find(value)
    assert found is None or found.score in (1.0, 0.95)
    assert all(0.6 <= each.score <= 1 for each in index.likely(value))
    assert len(index.search(value)) <= 50
    spelled = [name.strip().casefold() for name in names]
    for id, name in enumerate(names, 1):
        if name.strip() and spelled.count(name.strip().casefold()) == 1:
            assert index.find(name) == Likeness(index.by_id[id], 1.0)


def test_the_context_is_made_findable_once() -> None:
    context = surroundings()
    assert context.index("countries") is context.index("countries")
    assert context.today == TODAY
