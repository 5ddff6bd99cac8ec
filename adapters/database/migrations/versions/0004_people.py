"""People, what they take part in, and the countries of ISO 3166-1."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from adapters.database.schema import country_rows

revision = "0004"
down_revision = "0003"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)
EXACT = sa.Numeric(20, 6).with_variant(sa.Text(), "sqlite")

TYPES = {
    **dict.fromkeys(("birthdate", "starts_on", "ends_on"), sa.Date()),
    **dict.fromkeys(("registered_on", "joined_on", "left_on"), sa.Date()),
    "starts_at": MOMENT,
    "fee": EXACT,
    "finish_time_ms": sa.BigInteger(),
    "rank": sa.Integer(),
    "organisation_id": sa.BigInteger(),
    "open": sa.Boolean(),
}
REFERENCES = {
    "country_id": "countries",
    "event_id": "events",
    "person_id": "persons",
    "category_id": "event_categories",
    "membership_period_id": "membership_periods",
    "membership_type_id": "membership_types",
    "race_id": "races",
    "participant_id": "event_participants",
    "custom_list_id": "custom_lists",
    "custom_list_item_id": "custom_list_items",
}
TABLES = {
    "persons": (
        "organisation_id person_key",
        "first_name last_name email birthdate gender phone street postcode city country_id club",
        "organisation_id person_key",
    ),
    "events": ("organisation_id name", "starts_on", ""),
    "event_categories": ("event_id name spellings", "", "event_id name"),
    "event_participants": (
        "event_id person_id",
        "category_id bib team registered_on notes",
        "event_id person_id",
    ),
    "membership_periods": ("organisation_id name", "starts_on ends_on", ""),
    "membership_types": ("organisation_id name spellings", "", "organisation_id name"),
    "memberships": (
        "membership_period_id person_id",
        "membership_type_id member_no joined_on left_on fee notes",
        "membership_period_id person_id",
    ),
    "races": ("event_id name", "starts_at", ""),
    "race_results": (
        "race_id person_id",
        "category_id bib finish_time_ms rank status",
        "race_id person_id",
    ),
    "custom_lists": ("organisation_id key name open", "", "organisation_id key"),
    "custom_list_items": ("custom_list_id name", "", "custom_list_id name"),
    "custom_list_values": (
        "participant_id custom_list_id custom_list_item_id",
        "",
        "participant_id custom_list_id",
    ),
}
INDEXES = {
    "events": "organisation_id",
    "membership_periods": "organisation_id",
    "races": "event_id",
    "event_participants": "person_id",
    "memberships": "person_id",
    "race_results": "person_id",
}


def column(table: str, name: str, nullable: bool) -> sa.Column[Any]:
    target = REFERENCES.get(name)
    if target is None:
        return sa.Column(name, TYPES.get(name, sa.Text()), nullable=nullable)
    kind = sa.Integer() if target == "countries" else sa.BigInteger()
    foreign_key = sa.ForeignKey(f"{target}.id", name=f"fk_{table}_{name}")
    return sa.Column(name, kind, foreign_key, nullable=nullable)


def upgrade() -> None:
    countries = op.create_table(
        "countries",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("alpha2", "alpha3", "name")),
        sa.Column("spellings", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_countries"),
        sa.UniqueConstraint("alpha2", name="uq_countries_alpha2"),
        sa.UniqueConstraint("alpha3", name="uq_countries_alpha3"),
    )
    op.bulk_insert(countries, country_rows())
    for table, (required, optional, key) in TABLES.items():
        op.create_table(
            table,
            sa.Column("id", ID, nullable=False),
            *(column(table, name, nullable=False) for name in required.split()),
            *(column(table, name, nullable=True) for name in optional.split()),
            sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
            *(
                [sa.UniqueConstraint(*key.split(), name=f"uq_{table}_{key.replace(' ', '_')}")]
                if key
                else []
            ),
            sqlite_autoincrement=True,
        )
    for table, name in INDEXES.items():
        op.create_index(f"ix_{table}_{name}", table, [name])
