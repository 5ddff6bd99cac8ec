"""The run of an outage, from the first failed check to its end."""

import json
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client, WorkflowHandle
from temporalio.common import SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError

from activities.shared.dependencies import Dependencies
from adapters.database.engine import open_database
from adapters.database.runs import SqlRuns
from adapters.temporal import TemporalOutages
from tests.support.cli import run_docflow_in_thread
from tests.support.fresh_database import fresh_url
from tests.support.scripted import ScriptedActivities, scripted, still_down
from tests.support.waiting import eventually
from workers.shared.cli.context import CliContext
from workers.shared.services.identity import Identity
from workers.shared.services.inbox import Inbox
from workers.shared.services.outages import OutageView, open_outages
from workers.shared.services.run_service import RunService
from workers.shared.services.runs import TemporalRuns
from workflows.shared import attributes
from workflows.shared.dependencies import (
    PROBLEM,
    SETTINGS,
    WAITING,
    Dependency,
    OutageInput,
    OutageStatus,
    Recovery,
    WaitInput,
    outage_id,
)
from workflows.shared.runs import RunFilter
from workflows.shared.waiting import CHANGES_SHOWN, Outage

pytestmark = pytest.mark.asyncio(loop_scope="session")

Handle = WorkflowHandle[Any, OutageStatus]


def _outage(**fields: Any) -> OutageInput:
    return OutageInput(
        dependency=Dependency.DATABASE,
        since=datetime.now(UTC),
        problem="connection refused",
        **fields,
    )


@dataclass
class Outages:
    """Outages on a worker of the test's own."""

    server: Any
    run_worker: Any

    @asynccontextmanager
    async def running(
        self, script: ScriptedActivities, order: OutageInput
    ) -> AsyncIterator[Handle]:
        queue = f"outage-{uuid.uuid4().hex}"
        client: Client = self.server.client
        async with self.run_worker(queue, [Outage], script.activities()):
            await TemporalOutages(client).begin(order, queue)
            yield client.get_workflow_handle(outage_id(order.dependency), result_type=OutageStatus)


@pytest.fixture
def outages(server: Any, run_worker: Any) -> Outages:
    return Outages(server, run_worker)


async def _needs_attention(handle: Handle) -> bool:
    found = (await handle.describe()).typed_search_attributes
    return found.get(attributes.NEEDS_ATTENTION) or False


async def _details(handle: Handle) -> str:
    found = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return found.current_details


def _down_for(time: timedelta, checks: int = 1) -> ScriptedActivities:
    return scripted(Dependencies, fails={"wait": [still_down(time)] * checks})


async def test_an_outage_needs_attention_after_15_minutes(
    outages: Outages, caplog: pytest.LogCaptureFixture
) -> None:
    # The server asks again whenever time passes for the run.
    script = _down_for(timedelta(minutes=60), checks=4)
    async with outages.running(script, _outage()) as handle:

        async def is_shown() -> bool:
            return "connection refused" in await _details(handle)

        await eventually(is_shown)
        await outages.server.skip(handle, by=timedelta(minutes=1))
        assert "cannot be used" not in caplog.text
        await outages.server.skip(handle, by=timedelta(minutes=2))

        async def is_announced() -> bool:
            return "the database cannot be used since" in caplog.text

        await eventually(is_announced)
        assert not await _needs_attention(handle)
        await outages.server.skip(handle, by=timedelta(minutes=13))
        await eventually(lambda: _needs_attention(handle))
        found = (await handle.describe()).typed_search_attributes
        assert found.get(attributes.PIPELINE) == "outages"
        assert found.get(attributes.WAITING_SINCE) is not None

        async def is_over() -> bool:
            if (await handle.describe()).close_time is not None:
                return True
            await outages.server.skip(handle, by=timedelta(hours=1))
            return False

        await eventually(is_over, pause=0.5)
        result = await handle.result()
        assert not await _needs_attention(handle)
    assert result.ended is not None
    assert "the database answers again, after " in caplog.text


async def test_a_short_outage_asks_for_no_attention(
    outages: Outages, caplog: pytest.LogCaptureFixture
) -> None:
    script = _down_for(timedelta(milliseconds=10))
    async with outages.running(script, _outage()) as handle:
        await handle.result()
        assert not await _needs_attention(handle)
    assert "the database" not in caplog.text


async def test_a_wrong_setting_is_named(outages: Outages) -> None:
    script = _down_for(timedelta(hours=1))
    async with outages.running(script, _outage(settings=("DATABASE_URL",))) as handle:

        async def is_named() -> bool:
            return "this is not an outage but a setting: check DATABASE_URL" in await _details(
                handle
            )

        await eventually(is_named)
        status = await handle.query(Outage.status)
        assert (status.settings, status.ended) == (("DATABASE_URL",), None)
        await handle.terminate()


async def test_a_problem_that_changes_is_shown(outages: Outages) -> None:
    refused = Recovery(was_down=True, problem="password refused", settings=("DATABASE_URL",))
    script = scripted(
        Dependencies,
        results={"wait": lambda known: refused if known.problem == "connection refused" else over},
    )
    over = Recovery(was_down=True)
    script.held.add("wait")
    async with outages.running(script, _outage()) as handle:

        async def shows(text: str) -> bool:
            return text in await _details(handle)

        await eventually(lambda: shows("connection refused"))
        script.held.clear()
        result = await handle.result()
        memo = await (await handle.describe()).memo()
    assert (result.problem, result.settings) == ("password refused", ("DATABASE_URL",))
    assert memo == {PROBLEM: "password refused", SETTINGS: ["DATABASE_URL"]}
    assert [known.problem for known in script.received["wait"]] == [
        "connection refused",
        "password refused",
    ]


async def test_a_problem_that_comes_and_goes_is_shown_a_bounded_number_of_times(
    outages: Outages,
) -> None:
    script = scripted(Dependencies, results={"wait": _other_problem})
    async with outages.running(script, _outage()) as handle:
        await handle.result()
    assert [known.problem is None for known in script.received["wait"]] == [
        *[False] * CHANGES_SHOWN,
        True,
    ]


def _other_problem(known: WaitInput) -> Recovery:
    other = known.problem and f"not {known.problem}"
    return Recovery(was_down=True, problem=other)


async def test_there_is_one_run_of_an_outage(outages: Outages) -> None:
    script = _down_for(timedelta(hours=1))
    async with outages.running(script, _outage()) as handle:
        first = (await handle.describe()).run_id
        await TemporalOutages(outages.server.client).begin(_outage(), "another-queue")
        assert (await handle.describe()).run_id == first
        await handle.terminate()


async def test_an_outage_that_cannot_be_shown_is_no_failure(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, server: Any
) -> None:
    async def refuse(*args: Any, **options: Any) -> None:
        raise RPCError("unavailable", None, b"")  # type: ignore[arg-type]

    monkeypatch.setattr(server.client, "start_workflow", refuse)
    await TemporalOutages(server.client).begin(_outage(), "queue")
    assert "the outage of the database is not shown: unavailable" in caplog.text


async def test_operators_see_an_open_outage_and_how_many_runs_wait(
    outages: Outages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    client: Client = outages.server.client
    monkeypatch.setenv("TEMPORAL_ADDRESS", client.service_client.config.target_host)
    settings = {"DATABASE_URL": fresh_url()}

    async def docflow(*arguments: str) -> Any:
        context = CliContext(settings)
        done = await run_docflow_in_thread(*arguments, "--json", context=context)
        return json.loads(done.stdout)

    script = scripted(Dependencies, results={"wait": Recovery(was_down=True)})
    script.held.add("wait")
    waiting = TypedSearchAttributes(
        [
            SearchAttributePair(attributes.PIPELINE, "imports"),
            SearchAttributePair(attributes.STATE, WAITING),
            SearchAttributePair(attributes.WAITING_FOR, "outage/database"),
        ]
    )
    async with outages.running(script, _outage(settings=("DATABASE_URL",))) as handle:
        waits = await client.start_workflow(
            "Waits", id="import/P1/waits", task_queue="nowhere", search_attributes=waiting
        )

        async def is_counted() -> bool:
            [seen] = await open_outages(TemporalRuns(client, {}))
            return seen.waiting == 1

        await eventually(is_counted)
        status = await docflow("status")
        [seen] = status["outages"]
        assert (seen["title"], seen["problem"], seen["settings"], seen["waiting"]) == (
            "The database cannot be used",
            "connection refused",
            ["DATABASE_URL"],
            1,
        )
        [check] = [each for each in status["checks"] if each["part"] == "outage/database"]
        assert check["up"] is False
        assert check["says"].endswith(
            "UTC: connection refused; check DATABASE_URL; 1 run waiting for it"
        )

        assert (await _shown(client, settings))["problem"] == "connection refused"
        everything, nothing = await _inbox_of(client, "operator"), await _inbox_of(client)
        assert ([each.problem for each in everything], nothing) == (["connection refused"], ())
        await waits.terminate()
        script.held.discard("wait")
        await handle.result()

        async def is_over() -> bool:
            return not await open_outages(TemporalRuns(client, {}))

        await eventually(is_over)
        assert (await _shown(client, settings))["ended"] is not None


async def test_an_open_outage_is_shown_without_a_worker(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client: Client = server.client
    monkeypatch.setenv("TEMPORAL_ADDRESS", client.service_client.config.target_host)
    order = OutageInput(
        dependency=Dependency.CLOUD, since=datetime.now(UTC), problem="throttled for hours"
    )
    await TemporalOutages(client).begin(order, "nowhere")
    monkeypatch.setitem(TemporalRuns.__init__.__kwdefaults__, "seconds_to_answer", 0.1)

    async def is_open() -> bool:
        return bool(await open_outages(TemporalRuns(client, {})))

    await eventually(is_open)
    done = await run_docflow_in_thread("status", context=CliContext({}))
    assert "throttled for hours" in done.stdout
    await client.get_workflow_handle("outage/cloud").terminate()


async def _shown(client: Client, settings: Mapping[str, str]) -> Mapping[str, Any]:
    """What an operator sees of the outage of the database."""
    async with open_database(settings["DATABASE_URL"]) as database:
        service = RunService(SqlRuns(database), client, {}, {})
        who = Identity("olga", (1,), frozenset({"operator"}))
        listed = await service.list(who, RunFilter(10, pipelines=["outages"]))
        assert "outage/database" in [each.id for each in listed]
        return (await service.get(who, "outage/database")).details


async def _inbox_of(client: Client, *roles: str) -> Sequence[OutageView]:
    who = Identity(subject="olga", organisations=(1,), roles=frozenset({*roles, "viewer"}))
    return await Inbox(client, cast(Any, None)).outages(who)
