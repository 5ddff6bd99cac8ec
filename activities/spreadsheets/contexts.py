"""The context of an import, as the database has it."""

from collections.abc import Collection, Iterable, Mapping
from datetime import date
from typing import Protocol

from adapters.ports import SpreadsheetStore
from contracts.spreadsheets import (
    CANDIDATE_FIELDS,
    CANDIDATES,
    Candidate,
    CellMapping,
    CellSummary,
    FieldCandidates,
    SpreadsheetOrder,
)
from domain.spreadsheets.entities import ImportContext
from domain.spreadsheets.fields import SheetField
from domain.spreadsheets.people_matching import PeopleAnswers
from domain.spreadsheets.resolution import resolver_of, scope_of
from domain.spreadsheets.sheet_types import SheetTypes
from domain.spreadsheets.value_book import VALUE_CHARACTERS


class Subject(Protocol):
    """Whose import it is and what it brings: an order, or its status row."""

    @property
    def organisation_id(self) -> int:
        """The organisation."""
        ...

    @property
    def import_type(self) -> str:
        """Name of the import type."""
        ...

    @property
    def context_id(self) -> int | None:
        """Event, membership period or race."""
        ...


async def fields_of(
    store: SpreadsheetStore, types: SheetTypes, subject: Subject
) -> tuple[SheetField, ...]:
    """Every field that a column may mean, the organisation's custom lists included.

    Raises:
        RuleViolation: There is no such import type.
    """
    lists = await store.custom_lists(subject.organisation_id)
    return types.get(subject.import_type).fields_for(lists)


def with_candidates(
    summary: CellSummary, fields: Iterable[SheetField], context: ImportContext
) -> CellSummary:
    """A summary with the first candidates of its open values."""
    resolvers = {each.name: each.resolver for each in fields if each.resolver is not None}
    names = dict.fromkeys(value.field for value in summary.first_open if value.field in resolvers)
    candidates = tuple(
        FieldCandidates(
            field=name,
            total=len(context.entities.get(resolvers[name], ())),
            first=tuple(
                Candidate(id=each.id, name=each.name[:VALUE_CHARACTERS])
                for each in resolver_of(resolvers[name]).candidates(context, "")[:CANDIDATES]
            ),
        )
        for name in list(names)[:CANDIDATE_FIELDS]
    )
    return summary.model_copy(update={"candidates": candidates})


async def load_context(
    store: SpreadsheetStore,
    types: SheetTypes,
    subject: Subject,
    today: date,
    *,
    only: Collection[str] | None = None,
) -> ImportContext:
    """Load what cells may refer to, and the decisions on their values before.

    Args:
        store: Tables.
        types: The import types there are.
        subject: Whose import it is.
        today: The day that dates are compared with.
        only: Names of the fields that are asked about; all of the type when absent.

    Raises:
        RuleViolation: There is no such import type.
    """
    lists = await store.custom_lists(subject.organisation_id)
    bare = ImportContext(subject.organisation_id, subject.context_id, today, custom_lists=lists)
    referring = [
        field
        for field in types.get(subject.import_type).fields_for(lists)
        if field.resolver is not None and (only is None or field.name in only)
    ]
    scopes = {scope.kind: scope for scope in (scope_of(field, bare) for field in referring)}
    return ImportContext(
        subject.organisation_id,
        subject.context_id,
        today,
        {kind: await store.entities(scope) for kind, scope in scopes.items()},
        {
            field.name: await store.remembered_values(
                subject.organisation_id, subject.import_type, field.name
            )
            for field in referring
        },
        lists,
    )


async def people_answers(
    store: SpreadsheetStore, order: SpreadsheetOrder, decided: Mapping[str, CellMapping]
) -> PeopleAnswers:
    """What is decided about people, in this import and before.

    Args:
        store: Tables.
        order: The import.
        decided: Question to what was answered in this import.
    """
    await store.index_people(order.organisation_id)
    answers = PeopleAnswers(order.uuid, decided)
    chosen = await store.people_by_id(order.organisation_id, sorted(answers.chosen()))
    return PeopleAnswers(
        order.uuid,
        decided,
        {each.id: each.key for each in chosen},
        await store.remembered_people(order.organisation_id),
    )
