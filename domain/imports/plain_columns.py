"""Columns whose cells go into a table as they stand, or nearly so: what is made of their text."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from domain.imports.cells import convert_cells
from domain.imports.survey import Surveyed
from domain.imports.tables import SEQUENCE, TableSpec
from domain.tabular.columns import CellForm, ColumnText, NotPlain
from domain.tabular.fields import ColumnKind, FieldSpec
from domain.tabular.notations import Notation
from domain.tabular.packed import text_of

NUMBER_DIGITS: Final = 10
"""Digits of a number that is part of a key: texts of the same length sort as numbers do."""
_CHANGED: Final = 32
"""Distinct cells of a column that may become something else than their form."""
_FORMS: Final[Mapping[ColumnKind, CellForm]] = MappingProxyType(
    {ColumnKind.DECIMAL: CellForm.DECIMAL, ColumnKind.INTEGER: CellForm.INTEGER}
)


def form_of(field: FieldSpec, surveyed: Surveyed) -> CellForm:
    """What is made of most cells of a field."""
    if field.name == SEQUENCE:
        return CellForm.PADDED
    if field.kind is ColumnKind.DECIMAL and surveyed.notations.get(field.name) is Notation.COMMA:
        return CellForm.COMMA
    return _FORMS.get(field.kind, CellForm.TEXT)


def column_text(
    spec: TableSpec,
    surveyed: Surveyed,
    field: FieldSpec,
    cells: Sequence[str],
    formed: Sequence[str | None],
) -> ColumnText:
    """Where the text of a field comes from.

    Every distinct cell is converted as the rows of a table are; what differs from its form is
    kept by cell.

    Args:
        spec: The table.
        surveyed: How it is written.
        field: The field.
        cells: The distinct cells of its column.
        formed: What `form_of` makes of each.

    Raises:
        NotPlain: A cell is refused, or too many become something else.
    """
    values, refused = convert_cells(spec, surveyed, field, cells)
    if refused:
        raise NotPlain
    are_texts = form_of(field, surveyed) is CellForm.TEXT and values == list(cells)
    texts: Sequence[str] = values if are_texts else list(map(text_of, values))
    if field.name == SEQUENCE:
        texts = [text.zfill(NUMBER_DIGITS) for text in texts]
    if field.kind is ColumnKind.TEXT and "\t" in "".join(texts):
        raise NotPlain
    changed = {
        cell: text
        for cell, form, text in zip(cells, formed, texts, strict=True)
        if text is not form and text != form
    }
    if len(changed) > _CHANGED:
        raise NotPlain
    return ColumnText(surveyed.header.positions[field.name], form_of(field, surveyed), changed)
