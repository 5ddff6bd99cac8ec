"""The seven tables that spreadsheets fill."""

from sqlalchemy import BigInteger, Column, Date, Index, Integer

from adapters.database.models.base import (
    decimal_column,
    domain_table,
    key_column,
    staged_twin,
    text_column,
)

mto_lines = domain_table(
    "mto_lines",
    (
        *map(key_column, ("project_id", "service_id", "drawing", "commodity_code", "size")),
        Column("sequence", BigInteger, nullable=False),
    ),
    *map(text_column, ("line_no", "spool", "area", "system", "spec", "description")),
    decimal_column("quantity"),
    *map(text_column, ("unit", "revision")),
)

estimate_lines = domain_table(
    "estimate_lines",
    (
        *map(key_column, ("project_id", "service_id", "item_code", "section")),
        Column("sequence", BigInteger, nullable=False),
    ),
    *map(text_column, ("cost_code", "wbs_code", "description", "unit")),
    *map(
        decimal_column,
        (
            *("quantity", "unit_rate", "man_hours", "labour_cost", "material_cost"),
            *("equipment_cost", "subcontract_cost", "markup"),
        ),
    ),
)

equipment = domain_table(
    "equipment",
    tuple(map(key_column, ("project_id", "code"))),
    *map(text_column, ("description", "category", "make", "model", "serial", "ownership")),
    decimal_column("rate"),
    *map(text_column, ("rate_unit", "fuel", "status")),
)

materials = domain_table(
    "materials",
    tuple(map(key_column, ("project_id", "code"))),
    *map(text_column, ("description", "unit")),
    decimal_column("price"),
    *map(text_column, ("currency", "supplier")),
    Column("lead_time_days", Integer),
)

crew_trades = domain_table(
    "crew_trades",
    tuple(map(key_column, ("project_id", "code"))),
    text_column("name"),
    *map(decimal_column, ("straight_rate", "over_rate", "double_rate", "burden")),
)

crews = domain_table(
    "crews",
    tuple(map(key_column, ("project_id", "code"))),
    *map(text_column, ("name", "foreman", "shift", "calendar")),
    decimal_column("output_per_hour"),
)

crew_members = domain_table(
    "crew_members",
    (
        *map(key_column, ("project_id", "employee_no")),
        Column("valid_from", Date, nullable=False),
    ),
    *map(text_column, ("name", "crew", "trade", "classification")),
    Column("valid_to", Date),
)

Index(None, crew_members.c.project_id, crew_members.c.crew)

for _table in (
    *(mto_lines, estimate_lines, equipment, materials),
    *(crew_trades, crews, crew_members),
):
    staged_twin(_table)
