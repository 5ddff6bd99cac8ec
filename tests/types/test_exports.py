"""`docflow type export` writes files that restore rows when they are imported again."""

import asyncio
import csv
from pathlib import Path
from typing import Any

import pytest

from adapters.types.files import read_type
from tests.support.cli import run_docflow
from tests.support.spreadsheets.activities import SpreadsheetSetup
from tests.types.conftest import Installation
from workers.shared.cli.context import CliContext
from workflows.imports.runs import Counts
from workflows.spreadsheets.runs import RowCounts

LAPS = """
name: laps
title: Laps
key: [bib]
unmapped: keep
scope: SCOPE
fields:
  bib: {kind: code, required: true}
  lap: {kind: duration}
"""
ROWS = "bib,lap,Colour,=Note\n007,1:05:07.5,red,=1+1\n2,26:00:00,,007\n"


async def exported(installation: Installation, *options: str) -> Any:
    url = installation.database.engine.url.render_as_string(hide_password=False)
    context = CliContext({"DATABASE_URL": url})
    return await asyncio.to_thread(run_docflow, "type", "export", *options, context=context)


async def rows(installation: Installation, text: str, *columns: str) -> list[tuple[Any, ...]]:
    return await installation.rows(read_type(text, "laps.yaml"), *columns)


@pytest.mark.parametrize("scope", ["[project_id]", "[]"])
@pytest.mark.parametrize("suffix", ["csv", "xlsx", "parquet"])
async def test_an_export_restores_rows_with_their_kept_columns(
    installation: Installation, tmp_path: Path, scope: str, suffix: str
) -> None:
    text = LAPS.replace("SCOPE", scope)
    await installation.types.apply(read_type(text, "laps.yaml"))
    await installation.imported("laps", ROWS.encode())
    before = await rows(installation, text, "bib", "lap", "other")
    assert [row[1] for row in before] == [3_907_500, 93_600_000]
    out = tmp_path / f"laps.{suffix}"
    done = await exported(installation, "laps", "--out", str(out))
    assert done.exit_code == 0, done.output
    if suffix != "parquet":
        await installation.run_sql("DELETE FROM docflow_types.laps")
        content = out.read_bytes()
        again = await installation.imported("laps", content, filename=out.name, task_id="T2")
        assert again.counts == Counts(created=2), again
        assert await rows(installation, text, "bib", "lap", "other") == before


async def test_rows_of_several_scopes_are_asked_for(
    installation: Installation, tmp_path: Path
) -> None:
    text = LAPS.replace("SCOPE", "[project_id, race]")
    await installation.types.apply(read_type(text, "laps.yaml"))
    for project, race in (("P1", "a"), ("P1", "b"), ("P2", "a")):
        done = await installation.imported(
            "laps", ROWS.encode(), task_id=project + race, project_id=project, scope={"race": race}
        )
        assert done.counts.created == 2
    refused = await exported(installation, "laps")
    assert refused.exit_code == 2
    assert "in several scopes: project_id=P1, race=a; project_id=P1, race=b; " in refused.output
    assert (await exported(installation, "laps", "--project", "P1")).exit_code == 2
    for options, count in (
        (("--project", "P2"), 2),
        (("--project", "P1", "--scope", "race=b"), 2),
        (("--project", "P9"), 0),
        (("--all",), 6),
    ):
        out = tmp_path / f"{count}{len(options)}.csv"
        done = await exported(installation, "laps", *options, "--out", str(out))
        assert done.exit_code == 0, done.output
        with out.open(encoding="utf-8-sig", newline="") as file:
            header, *found = csv.reader(file)
        assert len(found) == count
        own = ["project_id", "race"] if options == ("--all",) else []
        assert header[: len(own) + 2] == [*own, "bib", "lap"]


async def test_an_export_of_people_is_uploaded_again_without_a_change(
    installation: Installation, sheets: SpreadsheetSetup, tmp_path: Path
) -> None:
    async def uploaded(kind: str, content: bytes, context_id: int | None = None) -> RowCounts:
        sheet = await sheets.prepare(content, import_type=kind, context_id=context_id)
        if (await sheet.collect()).open:
            await sheet.decide(Seniors="create", M="create")
        done = await sheet.process()
        await sheet.finish()
        return done.counts

    made = RowCounts(created=1)
    assert await uploaded("events", b"name,starts_on\nRun,2026-05-01\n") == made
    assert await uploaded("custom_lists", b"key,name,open\nSHIRT,Shirt,yes\n") == made
    people = (
        b"First name,Last name,Birthdate,Country,Category,Shirt,Team\n"
        b"Ada,Byron,1990-12-10,France,Seniors,M,=Blue\n"
    )
    assert await uploaded("EVENT_PARTICIPANT", people, 1) == made
    out = tmp_path / "people.csv"
    options = ("EVENT_PARTICIPANT", "--scope", "event_id=1", "--out", str(out))
    done = await exported(installation, *options)
    assert done.exit_code == 0, done.output
    (row,) = csv.DictReader(out.read_text(encoding="utf-8-sig").splitlines())
    names = ("EVENT_CATEGORY_NAME", "ID_COUNTRY", "CUSTOM_LIST_SHIRT", "TEAM", "BIB")
    assert [row[name] for name in names] == ["Seniors", "France", "M", "'=Blue", ""]
    assert await uploaded("EVENT_PARTICIPANT", out.read_bytes(), 1) == RowCounts(skipped=1)

    assert await uploaded("races", b"name,starts_at\n10 km,2026-05-01 09:00\n", 1) == made
    periods = b"name,starts_on,ends_on\n2026,2026-01-01,2026-12-31\n"
    assert await uploaded("membership_periods", periods) == made
    assert await uploaded("membership_types", b"name\nSeniors\n") == made
    who = "Ada,Byron,1990-12-10"
    for kind, scope, headers, cells in (
        ("RESULT", "race_id", "Time,Rank,Category", "1:02:03.4,2,Seniors"),
        ("MEMBERSHIP", "membership_period_id", "Membership type,Fee", "Seniors,12.50"),
    ):
        rows_of = f"First name,Last name,Birthdate,{headers}\n{who},{cells}\n"
        assert await uploaded(kind, rows_of.encode(), 1) == made
        options = (kind, "--scope", f"{scope}=1", "--out", str(out), "--force")
        assert (await exported(installation, *options)).exit_code == 0
        assert await uploaded(kind, out.read_bytes(), 1) == RowCounts(skipped=1), out.read_text()
    done = await exported(installation, "events", "--all", "--out", str(tmp_path / "events.csv"))
    assert (tmp_path / "events.csv").read_text(encoding="utf-8-sig").splitlines()[1:] == [
        "1,Run,2026-05-01"
    ]
