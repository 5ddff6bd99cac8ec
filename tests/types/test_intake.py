"""Messages of types that are declared, of types that are not, and of types that cannot be asked."""

import json
from typing import Any, cast

from adapters.database.engine import open_database
from adapters.types.store import SqlDeclaredTypes
from tests.support.memory.rejected import MemoryRejectedMessages
from tests.types.conftest import Installation
from workers.imports.intake import ImportIntake
from workers.imports.messages import read_message
from workers.shared.services.bodies import UNKNOWN_DOCUMENT_TYPE, Abandon, DeadLetter
from workflows.imports.messages import DeclaredMessage, DocumentType


def body(document_type: str, **fields: Any) -> bytes:
    message = {"document_type": document_type, "task_id": "T1", "project_id": "P1", **fields}
    return json.dumps({"blob_name": "in/file", **message}).encode()


def intake(types: SqlDeclaredTypes) -> ImportIntake:
    # What is refused or given back never comes as far as Temporal.
    return ImportIntake(cast(Any, None), MemoryRejectedMessages(), queue="q", types=types)


async def test_a_type_that_is_not_declared_is_a_dead_letter_with_those_that_are(
    installation: Installation,
) -> None:
    await installation.declare("parts", "invoice_lines")
    verdict = await intake(installation.types).accept(body("part"), 0, "m-1")
    assert isinstance(verdict, DeadLetter)
    assert verdict.reason == UNKNOWN_DOCUMENT_TYPE
    known = (*DocumentType, "invoice_lines", "parts")
    said = "document_type 'part' is not known; did you mean 'parts'? known are "
    assert verdict.description == said + ", ".join(known)


async def test_a_message_is_given_back_while_types_cannot_be_looked_up() -> None:
    async with open_database("postgresql://u:p@127.0.0.1:1/none") as database:
        verdict = await intake(SqlDeclaredTypes(database)).accept(body("parts"), 0, "m-1")
    assert isinstance(verdict, Abandon)
    assert verdict.reason.startswith("its type cannot be looked up")


def test_fields_of_a_message_of_a_declared_type_are_named() -> None:
    given = body("parts", scope={"site": " Zu\u0308rich "}, type_digest="0" * 64)
    message = read_message(given, ["parts"])
    assert isinstance(message, DeclaredMessage)
    assert (message.scope, message.strategy) == ({"site": "Z\u00fcrich"}, "type")
