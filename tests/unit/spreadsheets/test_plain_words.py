"""Plain words in place of names of fields, tables and columns."""

import pytest

from activities.spreadsheets.sheet_types import discover
from workflows.spreadsheets import decisions
from workflows.spreadsheets.mappings import FieldMetadata

RESULT = discover()["RESULT"]


def test_records_and_columns_have_words() -> None:
    assert decisions.record_title("event_participants") == "Event participant"
    assert decisions.record_title("parking_spaces") == "Parking spaces"
    titles = [decisions.column_title(each) for each in ("person_key", "category_id", "bib")]
    assert titles == ["Person", "Category", "Bib"]
    fields = decisions.column_titles(RESULT.fields)
    assert fields["race_results", "finish_time_ms"].title == "Finish time"


@pytest.mark.parametrize(
    ("stored", "shown"),
    [("5025500", "1:23:45.500"), ("90061000", "25:01:01"), (None, None), ("soon", "soon")],
)
def test_times_are_written_as_people_do(stored: str | None, shown: str | None) -> None:
    field = decisions.column_titles(RESULT.fields)["race_results", "finish_time_ms"]
    assert decisions.shown_value(field, stored) == shown
    assert decisions.shown_value(None, stored) == stored


def test_runs_of_earlier_releases_know_no_titles() -> None:
    facts = (FieldMetadata(name="LAST_NAME"), FieldMetadata(name="ID_COUNTRY", title="Country"))
    titles = decisions.field_titles(facts)
    names = ["LAST_NAME", "ID_COUNTRY", "SHOE_SIZE"]
    assert list(decisions.titled(names, titles)) == ["Last name", "Country", "Shoe size"]
