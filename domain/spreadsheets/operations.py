"""Operations of a review: which of them count, what they change, and how they are called."""

from collections.abc import Mapping, Sequence

from contracts.spreadsheets.reviews import (
    Constant,
    Exclude,
    Join,
    Notation,
    Operation,
    Replace,
    ReviewOperation,
    SetCells,
    Split,
    UndoOperation,
)


def active(operations: Sequence[ReviewOperation]) -> list[ReviewOperation]:
    """The operations that count, undos left out.

    Args:
        operations: All of them, by version. An undo can be taken back as well.
    """
    gone = undone(operations)
    return [
        each
        for each in operations
        if each.version not in gone and not isinstance(each.operation, UndoOperation)
    ]


def undone(operations: Sequence[ReviewOperation]) -> set[int]:
    """Versions of the operations, undos among them, that are taken back."""
    found: set[int] = set()
    for each in reversed(operations):
        if isinstance(each.operation, UndoOperation) and each.version not in found:
            found.add(each.operation.version)
    return found


def changed_rows(operation: Operation, operations: Sequence[ReviewOperation]) -> set[int] | None:
    """The only rows that an operation can change; None: any."""
    match operation:
        case SetCells(cells=cells):
            return {cell.row for cell in cells}
        case Exclude(rows=rows):
            return set(rows)
        case UndoOperation(version=version):
            found = [each.operation for each in operations if each.version == version]
            return changed_rows(found[0], operations) if found else set()
        case _:
            return None


def changed_columns(
    operation: Operation, operations: Sequence[ReviewOperation], made: Mapping[int, Sequence[int]]
) -> set[int] | None:
    """Ids of the columns whose cells an operation can change; None: of rows as a whole.

    Args:
        operation: The last one, or one that is taken back.
        operations: Those that were applied, by version.
        made: Version to the columns that its operation has made.
    """
    match operation:
        case UndoOperation(version=version):
            later = [each for each in operations if each.version > version]
            undone = [each for each in operations if each.version == version]
            if not undone:
                return set()
            found = changed_columns(undone[0].operation, operations, made)
            if found is None:
                return None
            found |= set(made.get(version, ()))
            for each in later:
                # What is made of a changed column changes with it.
                if found & (about_columns(each.operation) or set()):
                    found |= set(made.get(each.version, ()))
            return found
        case SetCells(cells=cells):
            return {cell.column for cell in cells}
        case Exclude():
            return None
        case Replace(column=column) | Notation(column=column):
            return {column}
        case Constant(column=column):
            return set() if column is None else {column}
        case _:
            return set()


def about_columns(operation: Operation) -> set[int] | None:
    """Ids of the columns that an operation is about as a whole; None: it is about rows."""
    match operation:
        case Replace(column=column) | Notation(column=column) | Split(column=column):
            return {column}
        case Constant(column=column):
            return set() if column is None else {column}
        case Join(columns=columns):
            return set(columns)
        case _:
            return None


def with_columns(operation: Operation, ids: Mapping[int, int]) -> Operation:
    """An operation about columns, for others in their places."""
    match operation:
        case Join(columns=(one, other)):
            return operation.model_copy(update={"columns": (ids[one], ids[other])})
        case Replace(column=column) | Notation(column=column) | Split(column=column):
            return operation.model_copy(update={"column": ids[column]})
        case Constant(column=int(column)):
            return operation.model_copy(update={"column": ids[column]})
        case _:
            return operation


def described(operation: Operation, headers: Mapping[int, str]) -> tuple[str, str]:
    """What an operation is about, and what it does, for people and without values of cells.

    Args:
        operation: The operation.
        headers: Id of each column to its header.
    """

    def named(id: int) -> str:
        return headers.get(id, f"column {id}")

    match operation:
        case SetCells(cells=[cell]):
            return f"row {cell.row}, {named(cell.column)}", "corrected"
        case SetCells(cells=cells):
            return f"{len(cells)} cells", "corrected"
        case Replace(column=column):
            return named(column), "text replaced"
        case Constant(column=int(column)):
            return named(column), "blank cells filled" if operation.blanks else "filled"
        case Constant(field=field):
            return str(field), "filled"
        case Split(column=column, fields=fields):
            return named(column), f"split into {' and '.join(fields)}"
        case Join(columns=(one, other), field=field):
            return f"{named(one)} and {named(other)}", f"joined as {field}"
        case Notation(column=column, notation=notation):
            words = notation.value.lower().replace("_", " ")
            return named(column), f"read as {words}"
        case Exclude(rows=rows, back=back):
            count = f"row {rows[0]}" if len(rows) == 1 else f"{len(rows)} rows"
            return count, "taken in again" if back else "left out"
        case UndoOperation(version=version):
            return f"change {version}", "taken back"
