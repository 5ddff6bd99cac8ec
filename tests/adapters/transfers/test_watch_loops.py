"""Jobs that write into a folder whose watch starts them again are named."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from adapters.ports.errors import Unavailable
from adapters.ports.transfers import SettingsFile
from tests.support.cli import run_docflow
from workers.shared.cli.context import CliContext
from workers.shared.register import Context
from workers.shared.resources import open_resources
from workers.transfers.register import TRANSFERS
from workers.transfers.resources import watch_loops_in
from workflows.shared.contracts import BlobRef
from workflows.transfers.job_settings import read_settings
from workflows.transfers.routes import RouteRule
from workflows.transfers.settings_check import watch_loops
from workflows.transfers.watches import Watch

READ = {"Action": "ReadFile", "Partner": "acme", "Path": "{data.path}"}


def a_file(*actions: dict[str, Any], partner: str = "acme", **fields: Any) -> str:
    listed = [READ, *({"Partner": partner, **each} for each in actions)]
    job = {"Job": "orders", "Queue": "jobs", **fields, "Actions": {"List": listed}}
    return json.dumps({"Jobs": [job]})


def a_watch(path: str = "in/*.csv", queue: str | None = "jobs") -> dict[str, Watch]:
    return {"acme": Watch(name="acme", partner="acme", path=path, account_id="TMS001", queue=queue)}


def writing(path: str) -> dict[str, Any]:
    return {"Action": "WriteFile", "Path": path}


@pytest.mark.parametrize(
    ("target", "pattern", "loops"),
    [
        ("in/{name}", "in/*.csv", True),
        ("/in/result.csv", "in/*.csv", True),
        ("{name}", "*", True),
        ("in/{stem}.[1]", "in/report-?.csv", True),
        ("in/{name}.done", "in/*.csv", False),
        ("in/result.txt", "in/*.csv", False),
        ("out/{name}", "in/*.csv", False),
        ("{time:%Y}/{name}", "in/*.csv", False),
    ],
)
def test_a_write_that_its_own_watch_may_see_is_a_loop(
    target: str, pattern: str, loops: bool
) -> None:
    settings = read_settings(a_file(writing(target)))
    assert bool([*watch_loops(settings, a_watch(pattern))]) is loops


@pytest.mark.parametrize(
    "file",
    [
        a_file(writing("in/{name}"), partner="store"),
        a_file(writing("in/{name}"), Queue="elsewhere"),
        a_file(writing("in/{name}"), EventAccountID="ANOTHER"),
    ],
)
def test_another_partner_queue_or_event_is_no_loop(file: str) -> None:
    assert [*watch_loops(read_settings(file), a_watch())] == []


def test_a_move_within_the_watched_folder_is_a_loop() -> None:
    move = {**READ, "After": "move", "MoveTo": "in/old-{name}"}
    [loop] = watch_loops(read_settings(a_file(move, writing("out/{name}"))), a_watch())
    assert "action 2 (ReadFile): 'in/old-{name}' at acme" in loop


def jobs(**actions: Sequence[dict[str, Any]]) -> str:
    """A file of jobs, each with the subject of its own name."""
    made = [
        {
            "Job": name,
            "Queue": "jobs",
            "EventSubject": name,
            "Actions": {"List": [READ, *({"Partner": "acme", **each} for each in listed)]},
        }
        for name, listed in actions.items()
    ]
    return json.dumps({"Jobs": made})


def watches_of(*names: str) -> dict[str, Watch]:
    """Watches of folders, which start the jobs of the same names."""
    return {
        name: Watch(
            name=name, partner="acme", path=f"{name}/*", account_id="A", subject=name, queue="jobs"
        )
        for name in names
    }


def firing(subject: str) -> dict[str, Any]:
    return {"Action": "FireEvent", "Queue": "jobs", "Source": "s", "Subject": subject}


def test_jobs_that_write_into_the_folders_of_each_other_are_one_loop() -> None:
    text = jobs(
        a=[writing("b/{name}")],
        b=[writing("c/{name}")],
        c=[writing("a/{name}")],
        d=[writing("a/x")],
    )
    [loop] = watch_loops(read_settings(text), watches_of("a", "b", "c", "d"))
    for job, to in (("a", "b"), ("b", "c"), ("c", "a")):
        assert (
            f"job {job} of queue jobs, action 2 (WriteFile): '{to}/{{name}}' at acme is in the "
            f"folder of watch {to}, which gives its files to job {to} of queue jobs"
        ) in loop
    assert [*watch_loops(read_settings(text), watches_of("a", "b", "d"))] == []


@pytest.mark.parametrize(("subject", "loops"), [("b", 1), ("{data.next}", 1), ("c", 0)])
def test_a_job_that_is_sent_an_event_closes_a_loop_as_well(subject: str, loops: int) -> None:
    text = jobs(a=[firing(subject)], b=[writing("a/{name}")], c=[writing("out/{name}")])
    found = [*watch_loops(read_settings(text), watches_of("a"))]
    assert len(found) == loops
    assert all("job a of queue jobs, action 2 (FireEvent), starts job b" in each for each in found)


def test_a_circle_of_events_alone_is_left_to_the_protection_of_runs() -> None:
    text = jobs(a=[firing("b"), writing("out/{name}")], b=[firing("a")])
    assert [*watch_loops(read_settings(text), watches_of("a"))] == []


class Known:
    """Settings and rules, as far as they can be read."""

    def __init__(self, text: str | None) -> None:
        self._text = text

    async def read(self) -> SettingsFile:
        if self._text is None:
            raise Unavailable("no route to host")
        text = self._text.encode()
        return SettingsFile(text, BlobRef(name="jobsettings.json", size=len(text)))

    async def rules(self) -> list[RouteRule]:
        return [RouteRule(queue="jobs", rule="all")]


LOOP = a_file(writing("in/{name}"))
WATCHES = "watches: [{name: in, partner: acme, path: 'in/*', account_id: A, queue: jobs}]"


@pytest.mark.parametrize(("text", "loops"), [(LOOP, 1), (None, 0), ("{", 0)])
async def test_a_worker_asks_the_rules_where_a_watch_leads(text: str | None, loops: int) -> None:
    known: Any = Known(text)
    assert len(await watch_loops_in(known, a_watch(queue=None), known)) == loops


async def test_a_worker_names_a_loop_when_it_starts(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "jobsettings.json").write_text(LOOP)
    (tmp_path / "watches.yaml").write_text(WATCHES)
    environment = {
        "DATABASE_URL": database_url,
        "DOCFLOW_SCRATCH": str(tmp_path / "scratch"),
        "DOCFLOW_BLOB_FOLDER": str(tmp_path / "blobs"),
        "DOCFLOW_TRANSFERS_SETTINGS": str(tmp_path / "jobsettings.json"),
        "DOCFLOW_TRANSFERS_WATCHES": str(tmp_path / "watches.yaml"),
    }
    client: Any = None
    async with open_resources(environment) as common:
        context = Context(environment, client, common)
        async with TRANSFERS.open(context, TRANSFERS.settings(environment)):
            assert "a loop: job orders of queue jobs" in caplog.text


def test_the_check_names_a_loop_and_does_not_refuse_it(tmp_path: Path) -> None:
    watches, file = tmp_path / "watches.yaml", tmp_path / "jobsettings.json"
    watches.write_text(WATCHES)
    file.write_text(LOOP)
    context = CliContext({"DOCFLOW_TRANSFERS_WATCHES": str(watches)})
    ended = run_docflow("transfer", "check", str(file), context=context)
    assert ended.exit_code == 0, ended.output
    assert "a loop: job orders of queue jobs, action 2 (WriteFile)" in ended.output
