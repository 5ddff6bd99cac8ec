"""Whether a load may be done, before anything is written."""

from collections.abc import Sequence

from contracts.jobs.vectors import LoadMode, VectorTable
from domain.errors import RuleViolation
from domain.jobs.vectors.schemas import differences


def check_load(
    incoming: VectorTable, mode: LoadMode, key: Sequence[str], existing: VectorTable | None
) -> VectorTable:
    """The table as it will be.

    Args:
        incoming: As the features are.
        mode: Of the load.
        key: Columns that make a row the same row.
        existing: The table of that name; None: there is none.

    Raises:
        RuleViolation: It may not be done; the message says why, and what to do.
    """
    name = incoming.name
    if mode is LoadMode.UPSERT:
        _check_key(incoming, key)
    elif key:
        raise RuleViolation(f"a key is for the mode upsert, not for {mode.value}")
    if mode is LoadMode.REPLACE or existing is None:
        return incoming
    if mode is LoadMode.CREATE:
        raise RuleViolation(
            f"the table {name!r} exists; use mode=replace, append or upsert, or another dataset"
        )
    found = list(differences(existing, incoming))
    if found:
        raise RuleViolation(f"the file does not fit into the table {name!r}: {'; '.join(found)}")
    return existing


def _check_key(table: VectorTable, key: Sequence[str]) -> None:
    if not key:
        raise RuleViolation("mode=upsert needs a key: the columns that make a row the same row")
    known = {column.name for column in table.columns}
    if missing := [name for name in key if name not in known]:
        listed = ", ".join(sorted(known)) or "none"
        raise RuleViolation(f"the key column {missing[0]!r} does not exist; there are: {listed}")
