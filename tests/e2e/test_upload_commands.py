"""`docflow upload` at a gateway, with a real server, worker and database."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.testing import WorkflowEnvironment
from typer.testing import Result

from adapters.files.documents import FileDocuments
from stack.sample_club import SampleClub, sample_club
from stack.temporal import TUNING, temporal_binary
from tests.support.cli import Terminal, run_docflow_in_thread
from tests.support.fresh_database import fresh_url
from tests.support.gateway import build_app, served, token
from tests.support.waiting import eventually
from workers.shared.cli.context import CliContext
from workers.shared.plugin import docflow_plugin
from workers.shared.resources import open_resources
from workers.shared.worker_factory import build_worker
from workers.spreadsheets.register import SPREADSHEETS
from workers.spreadsheets.resources import spreadsheet_resources
from workflows.shared import attributes
from workflows.spreadsheets.mappings import FINAL

pytestmark = pytest.mark.asyncio(loop_scope="module")

REGISTRATIONS = Path(__file__).parents[2] / "samples" / "registrations.xlsx"


@dataclass(frozen=True)
class Person(Terminal):
    """A person at a terminal, and what they work on."""

    pipeline = "upload"

    club: SampleClub

    async def json(self, *arguments: str) -> Any:
        """What a command prints for programs."""
        return json.loads(await self.docflow(*arguments, "-o", "json"))

    async def run(self, *arguments: str) -> Result:
        """Run a command about runs of every pipeline."""
        return await run_docflow_in_thread(*arguments, context=CliContext(self.environment))

    async def submit(self, *options: str, file: Path = REGISTRATIONS) -> str:
        """Send a file; the uuid of its import."""
        made = await self.json(
            *("submit", str(file), "--type", "EVENT_PARTICIPANT"),
            *("--organisation", str(self.club.organisation_id)),
            *("--context", str(self.club.event_id), *options),
        )
        return made["uuid"]

    async def until(self, uuid: str, state: str) -> dict[str, Any]:
        """Wait for a state."""
        now: dict[str, Any] = {}

        async def reached() -> bool:
            nonlocal now
            now = await self.json("show", uuid)
            assert now["state"] == state or now["state"] not in FINAL, now
            return now["state"] == state

        await eventually(reached, seconds=30, pause=0.1)
        return now


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def terminal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Person]:
    folder = tmp_path_factory.mktemp("commands")
    tuning = [word for value in TUNING for word in ("--dynamic-config-value", value)]
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_binary(),
        dev_server_extra_args=tuning,
        search_attributes=attributes.ALL,
        plugins=[docflow_plugin()],
    )
    settings = {
        "DATABASE_URL": fresh_url(),
        "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
        "DOCFLOW_SCRATCH": str(folder / "scratch"),
    }
    async with environment, open_resources(settings) as resources:
        sheets = spreadsheet_resources(resources.database)
        club = await sample_club(resources.database)
        gateway, _ = build_app(environment.client, resources, allowed_hosts=("127.0.0.1",))
        bearer = token("ada", club.organisation_id, "operator")
        async with (
            build_worker(environment.client, SPREADSHEETS, resources, sheets),
            served(gateway) as address,
        ):
            # A gateway is all that the commands know.
            yield Person({"DOCFLOW_ADDRESS": address, "DOCFLOW_TOKEN": bearer}, club)


async def test_from_the_file_over_both_pauses_to_rows_and_back(
    terminal: Person, tmp_path: Path
) -> None:
    uuid = await terminal.submit()
    await terminal.until(uuid, "COLUMN_MAPPING")
    columns = await terminal.json("columns", uuid)
    (unknown,) = (column for column in columns if column["status"] == "UNRESOLVED")
    assert unknown["header"] == "Race group"
    assert "Race group" in await terminal.docflow("columns", uuid)
    said = await terminal.docflow("columns", uuid, "--set", f"{unknown['id']}=EVENT_CATEGORY_NAME")
    assert f"accepted; {uuid} is COLUMN_MAPPING" in said
    await terminal.docflow("confirm", uuid, "columns")

    listed = await terminal.docflow("list", "--state", "CELL_MAPPING")
    assert uuid in listed and "registrations.xlsx" in listed
    assert "2 values are not decided yet" in await terminal.refused("confirm", uuid, "values")
    values = await terminal.json("values", uuid, "--open")
    assert {value["value"] for value in values} == {"Elite", "Golden age"}
    meaning = {"Elite": "Senior (18+)", "Golden age": "Masters (40+)"}
    for value in values:
        wanted = meaning[value["value"]]
        found = await terminal.json(
            "values", uuid, "--candidates", "EVENT_CATEGORY_NAME", "--text", wanted
        )
        id = next(each["id"] for each in found if each["name"] == wanted)
        await terminal.docflow("values", uuid, "--set", f"{value['id']}={id}")
    await terminal.docflow("confirm", uuid, "values")

    done = await terminal.until(uuid, "COMPLETED")
    assert done["counts"] == {"created": 58, "updated": 0, "skipped": 0, "error": 2}
    wrong = await terminal.json("show", uuid, "rows", "--outcome", "ERROR")
    assert len(wrong) == 2 and all(each["message"] for each in wrong)
    assert wrong[0]["message"] in await terminal.docflow("show", uuid, "rows")
    report = tmp_path / "to-correct.xlsx"
    assert (await terminal.run("report", uuid, "--out", str(report))).exit_code == 0
    with FileDocuments().open_table(report) as table:
        assert len(list(table.rows())) == 3
    rows = await terminal.run("list", "--pipeline", "spreadsheets", "-o", "name")
    assert f"spreadsheet/{uuid}" in rows.stdout.split()
    shown = await terminal.run("show", uuid, "-o", "json")
    assert json.loads(shown.stdout)["details"]["uuid"] == uuid
    over = await terminal.run("cancel", uuid)
    assert over.exit_code == 1 and "has ended" in over.stderr

    preview = await terminal.json("undo", uuid, "--preview")
    assert (preview["left_alone"], preview["conflicts"]) == (0, [])
    assert preview["deleted"] > 0
    await terminal.docflow("undo", uuid)
    undo: dict[str, Any] = {}

    async def undone() -> bool:
        nonlocal undo
        undo = (await terminal.json("show", f"spreadsheet/{uuid}"))["undo"]
        assert undo["state"] in ("RUNNING", "UNDONE")
        return undo["state"] == "UNDONE"

    await eventually(undone, seconds=30, pause=0.1)
    assert undo["left_alone"] == 0
    assert "UNDONE" in await terminal.docflow("show", uuid)


async def test_a_column_that_loses_its_field_is_named(terminal: Person, tmp_path: Path) -> None:
    file = tmp_path / "two.csv"
    file.write_text("First name,Surname,Shoe size\nAnna,Albrecht,38\n")
    uuid = await terminal.submit(file=file)
    await terminal.until(uuid, "COLUMN_MAPPING")
    columns = {each["header"]: each for each in await terminal.json("columns", uuid)}
    surname, shoe = columns["Surname"], columns["Shoe size"]
    taken = f"{shoe['id']}={surname['target']}"
    said = await terminal.docflow("columns", uuid, "--set", taken)
    assert f"column {surname['id']} 'Surname' is no longer LAST_NAME" in said.splitlines()
    first = columns["First name"]["id"]
    answer = await terminal.json("columns", uuid, "--set", f"{shoe['id']}=FIRST_NAME")
    assert answer["lost_fields"] == [{"id": first, "header": "First name", "field": "FIRST_NAME"}]
    answer = await terminal.json("columns", uuid, "--confirm", str(shoe["id"]))
    assert answer["lost_fields"] == []
    assert (await terminal.run("cancel", uuid)).exit_code == 0


async def test_a_dry_run_without_questions_ends_by_itself(terminal: Person, tmp_path: Path) -> None:
    file = tmp_path / "known.csv"
    file.write_text("First name,Surname,E-mail,Category\nAnna,Albrecht,a@b.org,Senior (18+)\n")
    uuid = await terminal.submit("--auto-start", "--dry-run", file=file)
    done = await terminal.until(uuid, "COMPLETED")
    assert done["dry_run"] is True and done["counts"]["created"] == 1


async def test_a_dry_run_stops_at_the_review_that_was_requested(
    terminal: Person, tmp_path: Path
) -> None:
    file = tmp_path / "reviewed.csv"
    file.write_text("First name,Surname,E-mail,Category\nAnna,Albrecht,a@b.org,Senior (18+)\n")
    uuid = await terminal.submit("--auto-start", "--dry-run", "--review", file=file)
    assert (await terminal.until(uuid, "CELL_MAPPING"))["counts"]["created"] == 0
    assert (await terminal.run("cancel", uuid)).exit_code == 0


async def test_an_upload_is_given_to_another_person_and_read_in_another_way(
    terminal: Person, tmp_path: Path
) -> None:
    file = tmp_path / "unknown.csv"
    file.write_text("First name,Surname,Shoe size\nAnna,Albrecht,38\n")
    other = await terminal.submit(file=file)
    await terminal.until(other, "COLUMN_MAPPING")
    assert "to: String should have" in await terminal.refused("change", other, "--to", "")
    assert "exactly one of" in await terminal.refused("change", other)
    await terminal.docflow("change", other, "--to", "grace")
    assert "grace" in await terminal.docflow("show", other)
    await terminal.docflow("change", other, "--no-header")
    assert "Column A" in {each["header"] for each in await terminal.json("columns", other)}
    assert (await terminal.run("cancel", other, "--reason", "wrong file")).exit_code == 0
    assert (await terminal.until(other, "CANCELLED"))["reason"] is not None
    assert "was cancelled" in await terminal.refused("confirm", other, "all")


async def test_a_template_that_is_filled_in_needs_no_decision_about_columns(
    terminal: Person, tmp_path: Path
) -> None:
    assert "EVENT_PARTICIPANT" in await terminal.docflow("types")
    file = tmp_path / "template.xlsx"
    save = ("types", "--template", "EVENT_PARTICIPANT", "--out", str(file))
    assert f"saved {file}" in await terminal.docflow(*save)
    assert "add --force" in await terminal.refused(*save)
    nowhere = str(tmp_path / "none" / "template.xlsx")
    assert f"cannot write {nowhere}" in await terminal.refused(*save[:-1], nowhere)
    uuid = await terminal.submit(file=file)
    await terminal.until(uuid, "COLUMN_MAPPING")
    columns = await terminal.json("columns", uuid)
    assert {each["status"] for each in columns} == {"AUTO_MATCHED"}
    await terminal.run("cancel", uuid)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("show", "nonsense"), "is not the UUID of an upload"),
        (("show", "0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1"), "no such import"),
        (("columns", "0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1", "--set", "x"), "write ID=FIELD"),
        (
            ("values", "0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1", "--set", "1=Lower"),
            "write ID=ENTITY",
        ),
        (
            ("values", "0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1", "--confirm", "1", "--create", "1"),
            "exactly one of",
        ),
        (
            ("submit", __file__, "--type", "EVENT_PARTICIPANT", "--organisation", "1"),
            "context_id: Event participants needs one",
        ),
        (
            ("submit", str(REGISTRATIONS), "--type", "NOTHING", "--organisation", "1"),
            "there is no import type NOTHING",
        ),
        (
            (
                "submit",
                __file__,
                "--type",
                "MEMBERSHIP",
                "--organisation",
                "1",
                "--sheet",
                "x" * 101,
            ),
            "sheet: String should have at most 100",
        ),
    ],
)
async def test_invalid_input_is_refused_in_one_line(
    terminal: Person, arguments: tuple[str, ...], says: str
) -> None:
    done = await terminal.try_docflow(*arguments)
    [line] = done.stderr.splitlines()
    assert says in line
    # An import that does not exist is not a wrong option.
    assert done.exit_code == (1 if "no such" in line else 2)
