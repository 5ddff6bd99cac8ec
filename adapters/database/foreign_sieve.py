"""Rows that a table of another team refuses, found one after another in its own server.

A table refuses rows for reasons that it alone knows, and tells of one row at a time. To try each
by a statement of its own takes a round trip; here a procedure of their server does it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.errors import cause_of
from adapters.database.foreign import refuses, rows_of, state_of

UNIQUE: Final = "23505"
_GIVEN: Final = "docflow.rows"
_FOUND: Final = "docflow.refused"
_TRY: Final = """
#variable_conflict use_variable
DECLARE
  s record; is_same boolean; taken bigint; refused text[] := '{{}}';
  state text; said text; detail text; of_table text; of_column text; ruled text;
BEGIN
  FOR s IN
    SELECT {texts} FROM json_array_elements(current_setting('{given}')::json) AS e
  LOOP
    FOR attempt IN 1..2 LOOP
      BEGIN
        taken := 1;
        IF (CASE{lost} WHEN true THEN false END) THEN
          EXIT;
        END IF;
        {find};
        IF NOT FOUND THEN
          {insert}
        ELSIF NOT is_same THEN
          {update}
        END IF;
        IF taken = 0 THEN
          refused := array_append(refused, json_build_array(s.place)::text);
        END IF;
        EXIT;
      EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, said = MESSAGE_TEXT,
          detail = PG_EXCEPTION_DETAIL, of_table = TABLE_NAME, of_column = COLUMN_NAME,
          ruled = CONSTRAINT_NAME;
        IF NOT {refuses} THEN
          RAISE;
        END IF;
        -- Another session may have made the row meanwhile: then it is there now.
        IF state <> '{unique}' OR attempt = 2 THEN
          IF ruled = '' AND of_column = '' THEN
            {read}
          END IF;
          refused := array_append(refused, json_build_array(
            s.place, state, said, detail, of_table, of_column, ruled)::text);
          EXIT;
        END IF;
      END;
    END LOOP;
  END LOOP;
  PERFORM set_config('{found}', '[' || array_to_string(refused, ',') || ']', true);
END
"""
_COUNTED: Final = "{sql}; GET DIAGNOSTICS taken = ROW_COUNT;"
_READ: Final = """
            BEGIN
              PERFORM {value};
            EXCEPTION WHEN OTHERS THEN
              of_column := {name};
            END;"""
"""Finds the column that cannot read a value, which their server does not name."""


@dataclass(frozen=True, slots=True)
class Said:
    """What their server said of an error; a part that it left out is empty."""

    state: str
    message: str
    detail: str
    table: str
    column: str
    constraint: str

    @classmethod
    def of(cls, error: BaseException) -> "Said":
        """What it said of one that was raised."""
        cause = cause_of(error)
        names = ("message", "detail", "table_name", "column_name", "constraint_name")
        return cls(state_of(error) or "", *(getattr(cause, name, None) or "" for name in names))


def procedure(
    lost: Sequence[str],
    find: str,
    insert: str | None,
    update: str | None,
    values: Mapping[str, str],
) -> str:
    """Return what tries rows. Its statements know a row as `s`, with the columns `c0`, `c1`, ...

    Args:
        lost: SQL that is true if a column does not keep all of a value; such a row is not tried.
        find: Selects into `is_same` whether the row that is there has these values.
        insert: Makes a row that is not there; None: it is not made.
        update: Changes a row that is there and differs; None: it stays.
        values: Column to SQL of its value, in the order of the row.
    """
    texts = (f"e->>{n} AS c{n - 1}" for n in range(1, len(values) + 1))
    return _TRY.format(
        texts=", ".join(("(e->>0)::bigint AS place", *texts)),
        given=_GIVEN,
        found=_FOUND,
        lost="".join(f" WHEN {sql} THEN true" for sql in lost),
        find=find,
        insert="NULL;" if insert is None else _COUNTED.format(sql=insert),
        update="NULL;" if update is None else _COUNTED.format(sql=update),
        refuses=refuses("state", "said"),
        unique=UNIQUE,
        read="".join(_READ.format(value=sql, name=literal(name)) for name, sql in values.items()),
    )


def literal(content: str) -> str:
    """SQL of a text."""
    return "'" + content.replace("'", "''") + "'"


async def tried(
    connection: AsyncConnection, procedure: str, rows: Sequence[tuple[int, Sequence[str | None]]]
) -> Sequence[tuple[int, Said | None]]:
    """Try rows in their order, take all of it back, and return the places of the refused ones.

    None: the table did not take the row, and said nothing.
    """
    given = json.dumps([[place, *row] for place, row in rows], ensure_ascii=False)
    async with connection.begin_nested() as attempt:
        await rows_of(connection, "SELECT set_config($1, $2, true)", _GIVEN, given)
        await connection.exec_driver_sql(f"DO {literal(procedure)}")
        [(packed,)] = await rows_of(connection, "SELECT current_setting($1)", _FOUND)
        await attempt.rollback()
    found = json.loads(packed)
    return [
        (place, Said(*(part or "" for part in parts)) if parts else None) for place, *parts in found
    ]
