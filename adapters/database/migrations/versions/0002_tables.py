"""The seven tables that spreadsheets fill, each with its staging twin."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

MOMENT = sa.DateTime(timezone=True)
EXACT = sa.Numeric(20, 6).with_variant(sa.Text(), "sqlite")

TYPES = {
    "sequence": sa.BigInteger(),
    "lead_time_days": sa.Integer(),
    "valid_from": sa.Date(),
    "valid_to": sa.Date(),
    **dict.fromkeys(
        (
            *("quantity", "unit_rate", "man_hours", "labour_cost", "material_cost"),
            *("equipment_cost", "subcontract_cost", "markup", "rate", "price"),
            *("straight_rate", "over_rate", "double_rate", "burden", "output_per_hour"),
        ),
        EXACT,
    ),
}
TABLES = {
    "mto_lines": (
        "project_id service_id drawing commodity_code size sequence",
        "line_no spool area system spec description quantity unit revision",
    ),
    "estimate_lines": (
        "project_id service_id item_code",
        "cost_code wbs_code description unit quantity unit_rate man_hours labour_cost"
        " material_cost equipment_cost subcontract_cost markup",
    ),
    "equipment": (
        "project_id code",
        "description category make model serial ownership rate rate_unit fuel status",
    ),
    "materials": (
        "project_id code",
        "description unit price currency supplier lead_time_days",
    ),
    "crew_trades": ("project_id code", "name straight_rate over_rate double_rate burden"),
    "crews": ("project_id code", "name foreman shift calendar output_per_hour"),
    "crew_members": (
        "project_id employee_no valid_from",
        "name crew trade classification valid_to",
    ),
}


def column(name: str, nullable: bool) -> sa.Column[Any]:
    return sa.Column(name, TYPES.get(name, sa.Text()), nullable=nullable)


def upgrade() -> None:
    for name, (key_names, value_names) in TABLES.items():
        key, values = key_names.split(), value_names.split()
        op.create_table(
            name,
            *(column(part, nullable=False) for part in key),
            *(column(value, nullable=True) for value in values),
            sa.Column("version", sa.Integer(), nullable=False),
            sa.Column("source_task", sa.Text(), nullable=False),
            sa.Column("source_line", sa.Integer(), nullable=False),
            sa.Column("created_at", MOMENT, nullable=False),
            sa.Column("updated_at", MOMENT, nullable=False),
            sa.PrimaryKeyConstraint(*key, name=f"pk_{name}"),
        )
        op.create_table(
            f"staged_{name}",
            sa.Column("load_id", sa.BigInteger(), nullable=False),
            *(column(part, nullable=False) for part in key),
            *(column(value, nullable=True) for value in values),
            sa.Column("source_line", sa.Integer(), nullable=False),
            sa.Column("cells", sa.Text()),
            sa.PrimaryKeyConstraint("load_id", *key, name=f"pk_staged_{name}"),
        )
    op.create_index("ix_crew_members_project_id_crew", "crew_members", ["project_id", "crew"])
