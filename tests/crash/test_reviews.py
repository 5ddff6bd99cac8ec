"""Corrections of a review whose worker and gateway are killed while they are applied."""

import asyncio
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from sqlalchemy import func, select

from adapters.database.models.spreadsheets import persons, spreadsheet_review_operations
from stack.parts import Part
from tests.crash.harness import until
from tests.support.installation import Installation, running_installation

pytestmark = [pytest.mark.chaos(alone=True), pytest.mark.asyncio(loop_scope="module")]

ROWS: Final = 20_000
CITY: Final = 4
LAST_NAME: Final = 2
TWICE_SHOWS: Final = {"kind": "REPLACE", "column": CITY, "find": "Graz", "put": "Graz+"}
"""Each time it is applied, all cells are a character longer."""


async def test_killed_processes_lose_no_correction_and_repeat_none(tmp_path: Path) -> None:
    async with (
        running_installation(tmp_path, gateways=1) as installation,
        installation.person() as ada,
    ):
        worker, gateway = installation.workers[0], installation.gateways[0]
        address = f"/api/v1/uploads/{await _in_review(installation, ada, tmp_path)}"
        hits: list[bool] = []
        for number, victims in enumerate(((worker,), (gateway,), (worker, gateway))):
            hits.append(await _change(installation, ada, address, TWICE_SHOWS, victims))
            cell = {"row": 2 + number, "column": LAST_NAME, "value": f"Corrected {number}"}
            await _change(installation, ada, address, {"kind": "SET", "cells": [cell]}, ())
        print(f"killed while it was applied: {hits}")
        assert hits[0] or hits[2]
        kinds = [each["operation"]["kind"] for each in await _operations(ada, address)]
        assert kinds == ["SET", "REPLACE"] * 3
        confirmed = await ada.post(f"{address}/confirm", json={"what": "rows"})
        assert confirmed.status_code == 202, confirmed.text

        async def is_completed() -> bool:
            return (await ada.get(address)).json()["state"] == "COMPLETED"

        await until(is_completed, "rows are written", within=300, every=0.2)
        summary = (await ada.get(f"{address}/summary")).json()
        assert (summary["created"], summary["error"]) == (ROWS, 0)
        async with installation.resources.database.reading() as connection:
            query = select(persons.c.city, func.count()).where(persons.c.city.startswith("Graz"))
            found = (await connection.execute(query.group_by(persons.c.city))).all()
            named = select(func.count()).where(persons.c.last_name.startswith("Corrected"))
            corrected = (await connection.execute(named)).scalar_one()
        assert [tuple(row) for row in found] == [("Graz+++", ROWS)]
        assert corrected == 3


async def _in_review(installation: Installation, ada: httpx.AsyncClient, folder: Path) -> str:
    file = folder / "runners.csv"
    rows = (f"First{n},Last{n},runner{n}@example.org,Graz\n" for n in range(ROWS))
    file.write_text("First name,Last name,Email,City\n" + "".join(rows))
    fields = {
        "importType": "EVENT_PARTICIPANT",
        "contextId": str(installation.club.event_id),
        "autoStart": "true",
        # Rows without a problem would be written at once.
        "dryRun": "true",
        "review": "true",
    }
    sent = await ada.post(
        "/api/imports", data=fields, files={"file": (file.name, file.read_bytes())}
    )
    assert sent.status_code == 201, sent.text
    uuid: str = sent.json()["identifier"]

    async def is_open() -> bool:
        review = await ada.get(f"/api/v1/uploads/{uuid}/review")
        return review.status_code == 200 and review.json()["is_checked"]

    await until(is_open, "rows are reviewed", within=300, every=0.2)
    return uuid


async def _change(
    installation: Installation,
    ada: httpx.AsyncClient,
    address: str,
    operation: dict[str, Any],
    victims: tuple[Part, ...],
) -> bool:
    """Change rows once, whatever is killed meanwhile; whether it was not applied by then."""
    review = await ada.get(f"{address}/review")
    version, hit = review.headers["etag"], False
    asked, open_before = len(await _operations(ada, address)), await _proposed(installation)

    async def is_proposed() -> bool:
        return await _proposed(installation) > open_before

    for attempt in range(20):
        sending = asyncio.create_task(
            ada.post(f"{address}/review/changes", json=operation, headers={"if-match": version})
        )
        if victims and attempt == 0:
            await until(is_proposed, "a change is proposed", every=0.005)
            await asyncio.gather(*(victim.kill() for victim in victims))
            hit = await is_proposed()
            await asyncio.gather(*(victim.start() for victim in victims))
        try:
            status = (await sending).status_code
        except httpx.TransportError:
            # It may have been taken all the same.
            status = 503
        if status == 200:
            return hit
        assert status in (412, 503), status
        if len(await _operations(ada, address)) > asked:
            return hit
    raise AssertionError("the change was never taken")


async def _operations(ada: httpx.AsyncClient, address: str) -> list[dict[str, Any]]:
    found = await ada.get(f"{address}/review/changes")
    assert found.status_code == 200, found.text
    return found.json()["items"]


async def _proposed(installation: Installation) -> int:
    """Changes that are stored and that no version has."""
    table = spreadsheet_review_operations
    query = select(func.count()).where(table.c.version.is_(None))
    async with installation.resources.database.reading() as connection:
        return (await connection.execute(query)).scalar_one()
