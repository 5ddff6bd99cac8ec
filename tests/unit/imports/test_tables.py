"""The seven table types are consistent in themselves and with the registry."""

from collections import Counter

import pytest

from activities.imports.tables import own_tables
from adapters.database.models.every import DOMAIN, key_of
from workflows.imports.messages import IMPORT_MESSAGE, DocumentType, TableMessage
from workflows.imports.runs import Handler
from workflows.imports.types import REGISTRY, TableSpec, scope_of
from workflows.shared.fields import squash
from workflows.shared.sections import SEQUENCE

TABLE_TYPES = [t for t, facts in REGISTRY.items() if facts.handler is Handler.LOAD_ROWS]


def message_of(document_type: DocumentType, **more: str) -> TableMessage:
    message = IMPORT_MESSAGE.validate_python(
        {
            "document_type": document_type,
            "task_id": "T1",
            "project_id": "P1",
            "blob_name": "in/file.csv",
            "service_id": "S1",
            **more,
        }
    )
    assert isinstance(message, TableMessage)
    return message


def test_every_table_type_of_the_registry_has_a_spec() -> None:
    assert set(own_tables()) == set(TABLE_TYPES)


@pytest.mark.parametrize("document_type", TABLE_TYPES)
def test_spec_agrees_with_the_registry(document_type: DocumentType) -> None:
    spec, facts = own_tables()[document_type], REGISTRY[document_type]
    assert spec.table == facts.table
    assert spec.natural_key == key_of(DOMAIN[spec.table])
    assert tuple(scope_of(message_of(document_type), spec)) == spec.scope


@pytest.mark.parametrize("spec", own_tables().values(), ids=lambda spec: spec.table)
def test_no_header_means_two_fields(spec: TableSpec) -> None:
    meanings = Counter(header for field in spec.fields for header in field.headers)
    assert [header for header, fields in meanings.items() if fields > 1] == []
    assert "" not in meanings


@pytest.mark.parametrize("spec", own_tables().values(), ids=lambda spec: spec.table)
def test_a_key_is_never_blank(spec: TableSpec) -> None:
    for name in spec.key:
        field = spec.by_name[name]
        assert field.required or field.blank is not None or name == SEQUENCE


@pytest.mark.parametrize(
    ("document_type", "header", "field"),
    [
        (DocumentType.MTO, "Zeichnungsnummer", "drawing"),
        (DocumentType.MTO, "Größe", "size"),
        (DocumentType.MATERIAL, "Lieferzeit (Tage)", "lead_time_days"),
        (DocumentType.CREW_TRADE, "Überstunde", "over_rate"),
        (DocumentType.CREW_MEMBER, "Gültig ab", "valid_from"),
        (DocumentType.EQUIPMENT, "Owned / Rented", "ownership"),
        (DocumentType.ESTIMATION_MASTER, "Mark-Up %", "markup"),
    ],
)
def test_headers_of_the_trade_are_known(
    document_type: DocumentType, header: str, field: str
) -> None:
    assert own_tables()[document_type].by_header[squash(header)].name == field
