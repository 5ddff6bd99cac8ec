"""People, what they take part in, and the tables that cells of their spreadsheets refer to.

Every row has an id of its own that is never assigned twice, so that it differs from that of a later
row with the same natural key; the natural key is a unique constraint.
"""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)

from adapters.database.models.base import (
    BigId,
    UtcDateTime,
    decimal_column,
    key_column,
    metadata,
    text_column,
)


def _own_id() -> Column[Any]:
    return Column("id", BigId, primary_key=True)


def _organisation() -> Column[Any]:
    return Column("organisation_id", BigInteger, nullable=False)


def _spellings() -> Column[Any]:
    """JSON array of codes and other names."""
    return Column("spellings", Text, nullable=False, default="[]")


def _owner(column: str, table: str) -> Column[Any]:
    """A reference that is part of the row's identity."""
    return Column(column, BigInteger, ForeignKey(f"{table}.id"), nullable=False)


def _choice(column: str, table: str) -> Column[Any]:
    """A reference that may be absent."""
    return Column(column, BigInteger, ForeignKey(f"{table}.id"))


PERSON_LOOKUPS: Final = ("name_key", "mail_key")
"""Columns of people that follow from others."""

countries = Table(
    "countries",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("alpha2", Text, nullable=False, unique=True),
    Column("alpha3", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    _spellings(),
)
"""Countries of ISO 3166-1; `id` is the numeric code. The schema comes with them."""

persons = Table(
    "persons",
    metadata,
    _own_id(),
    _organisation(),
    key_column("person_key"),
    *map(text_column, ("first_name", "last_name", "email")),
    Column("birthdate", Date),
    *map(text_column, ("gender", "phone", "street", "postcode", "city")),
    Column("country_id", Integer, ForeignKey("countries.id")),
    text_column("club"),
    *map(text_column, PERSON_LOOKUPS),
    UniqueConstraint("organisation_id", "person_key"),
    Index(None, "organisation_id", "name_key"),
    Index(None, "organisation_id", "mail_key"),
    sqlite_autoincrement=True,
)
"""People of an organisation. `name_key` and `mail_key` are what they are looked up by; they follow
from the other columns, and are NULL in a row that another program wrote."""

events = Table(
    "events",
    metadata,
    _own_id(),
    _organisation(),
    Column("name", Text, nullable=False),
    Column("starts_on", Date),
    Index(None, "organisation_id"),
    sqlite_autoincrement=True,
)

event_categories = Table(
    "event_categories",
    metadata,
    _own_id(),
    _owner("event_id", "events"),
    Column("name", Text, nullable=False),
    _spellings(),
    UniqueConstraint("event_id", "name"),
    sqlite_autoincrement=True,
)

event_participants = Table(
    "event_participants",
    metadata,
    _own_id(),
    _owner("event_id", "events"),
    _owner("person_id", "persons"),
    _choice("category_id", "event_categories"),
    *map(text_column, ("bib", "team")),
    Column("registered_on", Date),
    text_column("notes"),
    UniqueConstraint("event_id", "person_id"),
    Index(None, "person_id"),
    Index(None, "event_id", "bib"),
    sqlite_autoincrement=True,
)

membership_periods = Table(
    "membership_periods",
    metadata,
    _own_id(),
    _organisation(),
    Column("name", Text, nullable=False),
    Column("starts_on", Date),
    Column("ends_on", Date),
    Index(None, "organisation_id"),
    sqlite_autoincrement=True,
)

membership_types = Table(
    "membership_types",
    metadata,
    _own_id(),
    _organisation(),
    Column("name", Text, nullable=False),
    _spellings(),
    UniqueConstraint("organisation_id", "name"),
    sqlite_autoincrement=True,
)

memberships = Table(
    "memberships",
    metadata,
    _own_id(),
    _owner("membership_period_id", "membership_periods"),
    _owner("person_id", "persons"),
    _choice("membership_type_id", "membership_types"),
    text_column("member_no"),
    Column("joined_on", Date),
    Column("left_on", Date),
    decimal_column("fee"),
    text_column("notes"),
    UniqueConstraint("membership_period_id", "person_id"),
    Index(None, "person_id"),
    sqlite_autoincrement=True,
)

races = Table(
    "races",
    metadata,
    _own_id(),
    _owner("event_id", "events"),
    Column("name", Text, nullable=False),
    Column("starts_at", UtcDateTime),
    Index(None, "event_id"),
    sqlite_autoincrement=True,
)

race_results = Table(
    "race_results",
    metadata,
    _own_id(),
    _owner("race_id", "races"),
    _owner("person_id", "persons"),
    _choice("category_id", "event_categories"),
    text_column("bib"),
    Column("finish_time_ms", BigInteger),
    Column("rank", Integer),
    text_column("status"),
    UniqueConstraint("race_id", "person_id"),
    Index(None, "person_id"),
    Index(None, "race_id", "bib"),
    sqlite_autoincrement=True,
)

custom_lists = Table(
    "custom_lists",
    metadata,
    _own_id(),
    _organisation(),
    key_column("key"),
    Column("name", Text, nullable=False),
    Column("open", Boolean, nullable=False, default=False),
    UniqueConstraint("organisation_id", "key"),
    sqlite_autoincrement=True,
)
"""Lists of choices that organisations make for themselves; people may add to an open one."""

custom_list_items = Table(
    "custom_list_items",
    metadata,
    _own_id(),
    _owner("custom_list_id", "custom_lists"),
    Column("name", Text, nullable=False),
    UniqueConstraint("custom_list_id", "name"),
    sqlite_autoincrement=True,
)

custom_list_values = Table(
    "custom_list_values",
    metadata,
    _own_id(),
    _owner("participant_id", "event_participants"),
    _owner("custom_list_id", "custom_lists"),
    _owner("custom_list_item_id", "custom_list_items"),
    UniqueConstraint("participant_id", "custom_list_id"),
    sqlite_autoincrement=True,
)

TARGETS: Final = {
    persons.name: ("organisation_id", "person_key"),
    event_participants.name: ("event_id", "person_id"),
    memberships.name: ("membership_period_id", "person_id"),
    race_results.name: ("race_id", "person_id"),
    custom_list_values.name: ("participant_id", "custom_list_id"),
}
"""Tables that rows of spreadsheets go to, with their natural keys."""
