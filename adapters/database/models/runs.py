"""The table `runs`: one row for each run of a pipeline, as people list, find and answer it.

The row follows the row that the pipeline itself keeps of the run, by a trigger: whatever writes
that one, a step, a sweep or an operator, has written this one in the same transaction. What a
pipeline adds is a mapping of its columns, next to its table.
"""

from collections.abc import Callable, Mapping
from string import Template
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Computed,
    Connection,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    case,
    cast,
    func,
    literal,
    literal_column,
    null,
    text,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import JSONB, TSVECTOR

from adapters.database.models.base import UtcDateTime, metadata
from workflows.shared.runs import RunState

REVISION: Final = literal_column("(pg_current_xact_id()::text)::bigint", BigInteger)
"""Number of the transaction. Those that have all ended are read in its order: a reader that asks
for what is behind a number, and below `COMPLETE`, misses no change."""
COMPLETE: Final = literal_column(
    "(pg_snapshot_xmin(pg_current_snapshot())::text)::bigint", BigInteger
)
"""Number of the oldest transaction that may still change something."""

_BETWEEN_WORDS: Final = literal_column(
    r"'[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u2000-\u206f\u3000-\u303f]+'", Text
)
"""Blanks, control characters and punctuation."""
_MOST_SEARCHED: Final = 500
"""Characters; a word may have 2,046 bytes, and a character has 4 at most."""


def folded(text: ColumnElement[str]) -> ColumnElement[str]:
    """The words of a text as they are looked for, with a blank between them."""
    plain = func.lower(func.normalize(text, literal_column("NFKC")))
    words = func.regexp_replace(plain, _BETWEEN_WORDS, literal(" "), literal("g"))
    return func.btrim(func.left(words, literal(_MOST_SEARCHED)))


def _sql(column: ColumnElement[Any]) -> str:
    compiled = column.compile(
        dialect=postgresql.dialect(paramstyle="named"), compile_kwargs={"literal_binds": True}
    )
    return str(compiled)


_SEARCHED: Final = literal_column(
    "coalesce(project, '') || ' ' || CASE WHEN short ~ '^[0-9a-f][0-9a-f-]{31,}$' THEN '' "
    "ELSE short END || ' ' || coalesce(title, '')",
    Text,
)
"""A UUID or digest has no words: a digit or letter would find every sixteenth."""
_WORDS: Final = func.array_to_tsvector(func.string_to_array(folded(_SEARCHED), literal(" ")))

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("pipeline", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("short", Text, nullable=False),
    Column("title", Text),
    Column("state", Text, nullable=False),
    Column("own_state", Text, nullable=False),
    Column("needs_attention", Boolean, nullable=False),
    Column("reason", Text),
    Column("waits_for", Text),
    Column("counts", JSONB, nullable=False),
    Column("project", Text),
    Column("organisation_id", BigInteger),
    Column("size", BigInteger),
    Column("owner", Text),
    Column("links", JSONB, nullable=False),
    Column("answers_at", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("changed_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
    Column("revision", BigInteger, nullable=False, server_default=REVISION),
    Column("words", TSVECTOR, Computed(_sql(_WORDS), persisted=True)),
    Index(None, "changed_at", "id"),
    Index(None, "revision", "id"),
    *(Index(None, each, "changed_at", "id") for each in ("pipeline", "state", "kind", "project")),
    Index(None, "organisation_id", "created_at"),
    Index("ix_runs_open", "organisation_id", postgresql_where=text("ended_at IS NULL")),
    Index("ix_runs_own_state", text("lower(own_state)"), "changed_at", "id"),
    Index(
        "ix_runs_needing_attention",
        *("changed_at", "id"),
        postgresql_where=text("needs_attention"),
    ),
    Index(None, "words", postgresql_using="gin"),
    Index(None, "key"),
    Index(None, "short"),
    Index(None, "answers_at"),
)
"""`id` is the workflow id under which people know a run, and `answers_at` that of the run which
takes its answers now. `key` and `short` are what they may write instead of the id. `size` is that
of its file, in bytes. `revision` is that of its last change. `words` are those of its title,
project and short form."""

_KEPT: Final = ("id", "created_at")
"""What a later change of a run leaves as it is."""


Mapped = Callable[[Any], Mapping[str, ColumnElement[Any]]]
"""The columns of a row of a pipeline, as those of `runs`."""
FOLLOWED: Final[dict[Table, Mapped]] = {}
"""What the rows of `runs` follow."""


def follow(table: Table, mapped: Mapped) -> None:
    """Let the rows of `runs` follow those of a table.

    If you change a mapping, run `make migration`: the new migration executes `trigger_of`.
    """
    FOLLOWED[table] = mapped


_DEFAULTS: Final[Mapping[str, ColumnElement[Any]]] = {
    **dict.fromkeys(("title", "reason", "project", "owner"), cast(null(), Text)),
    **dict.fromkeys(("organisation_id", "size"), cast(null(), BigInteger)),
    "counts": cast(literal("{}"), JSONB),
    "links": cast(literal("{}"), JSONB),
}


def state_of(
    own: ColumnElement[str], states: Mapping[Any, RunState | ColumnElement[str]]
) -> ColumnElement[str]:
    """The state for people that stands for each state of a pipeline."""
    return case(
        *(
            (own == name, literal(str(state)) if isinstance(state, RunState) else state)
            for name, state in states.items()
        )
    )


def completed(problems: ColumnElement[Any]) -> ColumnElement[str]:
    """The state of what has ended well: with problems, or without any."""
    with_problems = literal(str(RunState.COMPLETED_WITH_PROBLEMS))
    return case((problems > 0, with_problems), else_=literal(str(RunState.COMPLETED)))


def counted(**counts: ColumnElement[Any]) -> ColumnElement[Any]:
    """Counts as JSON, without those that are 0 or unknown."""
    return linked(**{name: func.nullif(value, 0) for name, value in counts.items()})


def linked(**links: ColumnElement[Any]) -> ColumnElement[Any]:
    """Names of what belongs to a run, as JSON, without those that are unknown."""
    pairs = [part for name, value in links.items() for part in (literal(name), value)]
    return func.jsonb_strip_nulls(func.jsonb_build_object(*pairs))


def trigger_of(table: Table) -> tuple[str, str]:
    """The statements that let `runs` follow a table: its function, and the trigger."""
    columns = {
        name: _sql(column)
        for name, column in {**_DEFAULTS, **FOLLOWED[table](table.alias("own").c)}.items()
    }
    mapped = ",\n      ".join(f"{column} AS {name}" for name, column in columns.items())
    names = ", ".join(columns)
    changes = ",\n      ".join(
        f"{name} = excluded.{name}"
        for name in (*columns, "needs_attention", "waits_for", "revision")
        if name not in _KEPT
    )
    parts = {
        "name": f"runs_follow_{table.name}",
        "table": table.fullname,
        "id": columns["id"],
        "names": names,
        "mapped": mapped,
        "attention": str(RunState.NEEDS_ATTENTION),
        "changes": changes,
    }
    return _FUNCTION.substitute(parts), _TRIGGER.substitute(parts)


def is_followed(connection: Connection, table: Table) -> bool:
    """Whether the trigger of a table in a database is that of its mapping."""
    body = text("SELECT prosrc FROM pg_proc WHERE proname = :name")
    found = connection.execute(body, {"name": f"runs_follow_{table.name}"}).scalar_one_or_none()
    return found is not None and found.strip() in trigger_of(table)[0]


_FUNCTION: Final = Template("""\
CREATE OR REPLACE FUNCTION $name() RETURNS trigger LANGUAGE plpgsql AS $$$$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM runs WHERE id = (SELECT $id FROM (SELECT OLD.*) AS own);
  ELSE
    INSERT INTO runs ($names, needs_attention)
    SELECT *, mapped.state = '$attention' FROM (SELECT
      $mapped
      FROM (SELECT NEW.*) AS own) AS mapped
    ON CONFLICT (id) DO UPDATE SET
      $changes;
  END IF;
  RETURN NULL;
END
$$$$
""")
_TRIGGER: Final = Template("""\
CREATE OR REPLACE TRIGGER $name AFTER INSERT OR UPDATE OR DELETE ON $table
FOR EACH ROW EXECUTE FUNCTION $name()
""")


leases = Table(
    "leases",
    metadata,
    Column("position", BigInteger, primary_key=True),
    Column("resource", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("units", Integer, nullable=False),
    Column("granted", Boolean, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    UniqueConstraint("resource", "owner"),
    Index(None, "owner"),
)
"""How many units of a resource a run has, or waits for; the order is that of `position`.

`owner` is the workflow id of the run, and `expires_at` when a run that does not ask any more loses
its place; a lease that is granted ends with its run.
"""
