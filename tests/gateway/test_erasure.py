"""A person is erased: rows, images, files, results, the trail and histories."""

from datetime import UTC, datetime
from typing import Any
from unicodedata import normalize

import pytest
from sqlalchemy import func, insert, select, text, update
from temporalio.service import RPCError

from activities.spreadsheets.erasure import SqlErasure
from adapters.database.models.base import DOMAIN
from adapters.database.models.spreadsheets import persons, spreadsheet_imports
from adapters.types.store import SqlDeclaredTypes
from adapters.types.tables import register_table
from tests.support.gateway import Stack, import_in, sheet, token, until
from tests.support.waiting import eventually
from workers.shared.services.identity import ADMIN, OPERATOR
from workflows.shared.declared_types import DeclaredType
from workflows.spreadsheets.mappings import UndoState

pytestmark = pytest.mark.asyncio(loop_scope="session")

OURS = 177
HEADER = ("First name", "Last name", "Email", "Street")
ANNA = ("Änna", "Erased", "aenna@erased.example.org", "Erased Lane 1")
BEN = ("Ben", "Kept", "ben@kept.example.org", "Kept Lane 2")
CLEO = ("Cleo", "Kept", "cleo@kept.example.org", "Kept Lane 3")
# She shares a first name with the person who is erased.
DORA = ("Änna", "Kept", "dora@kept.example.org", "Kept Lane 4")
# Decomposed, without her mail address, and wrong: no row of the database says it.
WRONG = (*(normalize("NFD", each) for each in ANNA[:2]), "no address", "Wrong Lane 5")
PEOPLE = "/api/v1/people"
EVENT = {"table": "events", "name": "Erasmus run", "starts_on": "2026-05-10"}


async def test_a_person_is_erased(stack: Stack) -> None:
    async with stack.browser(token("ada", OURS, ADMIN)) as ada:
        event = (await ada.post("/api/v1/uploads/contexts", json=EVENT)).json()
        form = {"contextId": str(event["id"]), "autoStart": "true"}
        both = await import_in(ada, "COMPLETED", sheet(HEADER, ANNA, BEN), **form)
        other = await import_in(ada, "COMPLETED", sheet(HEADER, CLEO, DORA), **form)
        # It says her name in capitals, and asks who that is.
        loud = tuple(each.upper() for each in ANNA)
        asking = await import_in(ada, "CELL_MAPPING", sheet(HEADER, loud), **form)
        waiting = await import_in(ada, "COLUMN_MAPPING", sheet(("?", "??"), ANNA[:2]), **form)
        wrong = await import_in(ada, "COMPLETED", sheet(HEADER, WRONG), **form)
        await _add_guests(stack)

        wanted = {"organisation_id": OURS, "text": "erased nna"}
        [anna] = (await ada.post(f"{PEOPLE}/find", json=wanted)).json()["items"]
        assert ANNA[2] in anna["name"]
        url, body = f"{PEOPLE}/{anna['id']}/erase", {"organisation_id": OURS, "reason": "her wish"}
        rows = {"persons": 1, "event_participants": 1}
        looked = (await ada.post(url, json={**body, "dry_run": True})).json()
        # Other tests have rows as well.
        others = {"not_searched": looked["not_searched"]}
        assert "erasure_guests" in looked["not_searched"]
        assert looked == {
            "rows": rows,
            "uploads": [both, wrong],
            "open": [asking, waiting],
            **others,
        }
        assert await _people(stack) == 4

        await _set_undo(stack, both, UndoState.RUNNING)
        looked = (await ada.post(url, json={**body, "dry_run": True})).json()
        assert (looked["uploads"], looked["open"]) == ([wrong], [both, asking, waiting])
        # Its undo has begun since somebody looked.
        resources, kept = stack.resources, _files_that_say(stack, "erased")
        erasure = SqlErasure(resources.database, resources.blobs, resources.scratch)
        assert not await erasure.forget_upload(both)
        assert _files_that_say(stack, "erased") == kept > 0
        await _set_undo(stack, both, None)

        refused = await ada.post(url, json=body)
        assert (refused.status_code, waiting in refused.json()["detail"]) == (409, True)
        assert await _people(stack) == 4
        for uuid in (asking, waiting):
            await ada.post(f"/api/v1/runs/spreadsheet/{uuid}/cancel", json={})
            await until(ada, uuid, "CANCELLED")

        erased = await ada.post(url, json=body)
        uploads = [both, asking, waiting, wrong]
        assert erased.json() == {"rows": rows, "uploads": uploads, "open": [], **others}
        assert await _people(stack) == 3
        assert await _places_that_say(stack, "erased") == []
        assert (_files_that_say(stack, "erased"), _files_that_say(stack, "cleo@kept")) == (0, 2)
        await eventually(lambda: _is_forgotten(stack, f"spreadsheet/{both}"))
        assert (await ada.get(f"/api/v1/uploads/{other}")).json()["success_count"] == 2
        assert (await ada.post(f"/api/v1/uploads/{both}/undo", json={})).status_code in (409, 410)
        assert (await ada.post(url, json=body)).status_code == 404
        entries = (await ada.get("/api/v1/audit", params={"action": "erasePerson"})).json()["items"]
        done = next(each for each in entries if each["status"] == 200 and not _dry(each))
        assert (done["who"], done["object"], done["reason"]) == ("ada", str(anna["id"]), "her wish")


async def test_admins_of_the_organisation_alone_erase(stack: Stack) -> None:
    wanted = {"organisation_id": OURS, "text": "kept"}
    for organisation, role in ((OURS, OPERATOR), (OURS + 1, ADMIN)):
        async with stack.browser(token("eve", organisation, role)) as eve:
            assert (await eve.post(f"{PEOPLE}/find", json=wanted)).status_code == 403
            sent = {"organisation_id": OURS, "dry_run": True}
            assert (await eve.post(f"{PEOPLE}/1/erase", json=sent)).status_code == 403


def _dry(entry: Any) -> bool:
    return entry["after"]["dry_run"]


async def _add_guests(stack: Stack) -> None:
    """Types of a team: one with a row of the organisation, one with a row of another, one bare."""
    database = stack.resources.database
    for name, organisation in (("guests", OURS), ("strangers", OURS + 1), ("bare", None)):
        declared = DeclaredType.model_validate(
            {
                "name": f"erasure_{name}",
                "title": name,
                "scope": ["organisation_id"],
                "key": ["mail"],
                "fields": {"mail": {"kind": "email", "required": True}},
            }
        )
        await SqlDeclaredTypes(database).apply(declared)
        if organisation is not None:
            table = DOMAIN[register_table(declared)]
            row = {"organisation_id": str(organisation), "mail": "guest@kept.example.org"}
            row |= {"version": 1, "source_task": "t", "source_line": 2}
            moments = dict.fromkeys(("created_at", "updated_at"), datetime.now(UTC))
            async with database.transaction() as connection:
                await connection.execute(insert(table).values(**row, **moments))


async def _set_undo(stack: Stack, uuid: str, state: UndoState | None) -> None:
    own = update(spreadsheet_imports).where(spreadsheet_imports.c.uuid == uuid)
    async with stack.resources.database.transaction() as connection:
        await connection.execute(own.values(undo_state=state))


async def _people(stack: Stack) -> int:
    query = select(func.count()).select_from(persons).where(persons.c.organisation_id == OURS)
    async with stack.resources.database.reading() as connection:
        return (await connection.execute(query)).scalar_one()


async def _places_that_say(stack: Stack, word: str) -> list[str]:
    """Tables with a row, of whatever kind, in which a word stands."""
    tables = text(
        "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables "
        "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
    )
    async with stack.resources.database.reading() as connection:
        names = (await connection.scalars(tables)).all()
        assert len(names) > 20
        found: list[str] = []
        for name in names:
            holds = text(f"SELECT count(*) FROM {name} AS r WHERE r::text ILIKE :word")
            if (await connection.execute(holds, {"word": f"%{word}%"})).scalar_one():
                found.append(name)
    return found


def _files_that_say(stack: Stack, word: str) -> int:
    folder = stack.resources.scratch.parent / "blobs"
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sum(word in path.read_bytes().decode("utf-8", "replace").casefold() for path in files)


async def _is_forgotten(stack: Stack, id: str) -> bool:
    try:
        await stack.client.get_workflow_handle(id).describe()
    except RPCError:
        return True
    return False
