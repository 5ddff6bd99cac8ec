"""How the rows of an import are understood, as the database has it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from types import MappingProxyType

from activities.spreadsheets.contexts import fields_of, load_context, people_answers
from activities.spreadsheets.staged_reader import Plan
from adapters.ports import SpreadsheetStore
from contracts.spreadsheets import CellMapping, SpreadsheetOrder
from domain.spreadsheets.bibs import SAME_BIB
from domain.spreadsheets.edits import Edits
from domain.spreadsheets.people import PERSON
from domain.spreadsheets.people_matching import PeopleAnswers, decided
from domain.spreadsheets.sheet_types import SheetTypes
from domain.spreadsheets.value_book import ValueBook


async def load_plan(
    store: SpreadsheetStore,
    types: SheetTypes,
    order: SpreadsheetOrder,
    edits: Edits,
    today: date,
    *,
    made: Mapping[int, int] = MappingProxyType({}),
    counting: bool = False,
) -> Plan:
    """Load what is decided about the values and people of an import.

    Args:
        store: Tables.
        types: The import types there are.
        order: The import.
        edits: Corrections of its review.
        today: The day that dates are compared with.
        made: Mapping to the row that was made for it.
        counting: Values were not collected ahead: their rows are counted on the way.
    """
    fields = await fields_of(store, types, order)
    mapped = {column.target for column in edits.columns if column.target}
    context = await load_context(store, types, order, today, only=mapped)
    book = ValueBook(fields, context, counting=counting)
    people: dict[str, CellMapping] = {}
    bibs: dict[str, CellMapping] = {}
    async for page in store.mappings(order.uuid):
        people |= decided(PERSON, page)
        bibs |= decided(SAME_BIB, page)
        book.load(
            mapping.model_copy(update={"target_id": made[mapping.id]})
            if mapping.id in made
            else mapping
            for mapping in page
        )
    sheet_type = types.get(order.import_type)
    answers = PeopleAnswers()
    if sheet_type.is_about_people:
        answers = replace(await people_answers(store, order, people), bibs=bibs)
    return Plan(sheet_type, fields, edits.columns, context, book, answers, edits)
