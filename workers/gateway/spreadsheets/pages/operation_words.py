"""Changes of a review in sentences, in the language of the request."""

from collections.abc import Mapping

from contracts.spreadsheets.reviews import (
    Constant,
    Exclude,
    Join,
    Notation,
    NotationName,
    Operation,
    Replace,
    SetCells,
    Split,
    UndoOperation,
)
from workers.gateway.pages.language import N_, counted, gettext, localised

_NOTATIONS: Mapping[str, str] = {
    NotationName.DAY_FIRST: N_("dates with the day first"),
    NotationName.MONTH_FIRST: N_("dates with the month first"),
    NotationName.DECIMAL_COMMA: N_("numbers with a decimal comma"),
    NotationName.DECIMAL_POINT: N_("numbers with a decimal point"),
    NotationName.HOURS_MINUTES: N_("hours and minutes"),
    NotationName.MINUTES_SECONDS: N_("minutes and seconds"),
}


def operation_words(
    operation: Operation, headers: Mapping[int, str], fields: Mapping[str, str]
) -> str:
    """What an operation is about, and what it does, without values of cells.

    Args:
        operation: The operation.
        headers: Id of each column to its header.
        fields: Name of each field to its title.
    """
    about, done = _parts(operation, headers, fields)
    return f"{about}: {done}"


def _parts(
    operation: Operation, headers: Mapping[int, str], fields: Mapping[str, str]
) -> tuple[str, str]:
    def column(id: int) -> str:
        return headers.get(id) or gettext("column %(number)s", number=id)

    def field(name: str) -> str:
        return localised(fields.get(name, name))

    match operation:
        case SetCells(cells=[cell]):
            place = {"row": cell.row, "column": column(cell.column)}
            return gettext("row %(row)s, %(column)s", **place), gettext("corrected")
        case SetCells(cells=cells):
            return counted("%(count)s cell", "%(count)s cells", len(cells)), gettext("corrected")
        case Replace(column=id):
            return column(id), gettext("text replaced")
        case Constant(column=int(id), blanks=blanks):
            return column(id), gettext("blank cells filled") if blanks else gettext("filled")
        case Constant(field=name):
            return field(str(name)), gettext("filled")
        case Split(column=id, fields=(first, second)):
            parts = {"first": field(first), "second": field(second)}
            return column(id), gettext("split into %(first)s and %(second)s", **parts)
        case Join(columns=(one, other), field=name):
            both = gettext("%(one)s and %(other)s", one=column(one), other=column(other))
            return both, gettext("joined as %(field)s", field=field(name))
        case Notation(column=id, notation=notation):
            return column(id), gettext("read as %(what)s", what=localised(_NOTATIONS[notation]))
        case Exclude(rows=rows, back=back):
            done = gettext("taken in again") if back else gettext("left out")
            if len(rows) == 1:
                return gettext("row %(row)s", row=rows[0]), done
            return counted("%(count)s row", "%(count)s rows", len(rows)), done
        case UndoOperation(version=version):
            return gettext("change %(version)s", version=version), gettext("taken back")
