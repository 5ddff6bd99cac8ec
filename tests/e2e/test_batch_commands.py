"""`docflow batch` at a gateway, with a real server, worker and database and a cloud in memory."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment
from typer.testing import Result

from activities.batches.document_store import SqlLoadStore
from activities.batches.store import SqlBatchStore
from adapters.database.engine import open_database
from adapters.database.records import SqlLeases
from adapters.files.texts.pool import FileTexts
from adapters.ports.batches import Claim
from adapters.temporal import TemporalOpenRuns
from stack.temporal import TUNING, temporal_binary
from tests.gateway.batches.conftest import gateway_of
from tests.support.batches.installation import ROOMY
from tests.support.batches.tables import document
from tests.support.cli import Terminal, run_docflow_in_thread
from tests.support.fresh_database import fresh_url
from tests.support.gateway import served, token
from tests.support.memory.cloud import MemoryCloud
from tests.support.waiting import eventually
from workers import catalogue
from workers.batches.register import BATCHES
from workers.batches.resources import BatchResources
from workers.shared.cli.context import CliContext
from workers.shared.plugin import docflow_plugin
from workers.shared.register import Context, recognise
from workers.shared.resources import Resources, open_resources
from workers.shared.worker_factory import build_worker
from workflows.batches.names import BatchKey, BatchPlan, LoaderStatus, names_of
from workflows.batches.runs import Closing
from workflows.shared import attributes

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLAN = BatchPlan(
    prefix="commands",
    topic_arn="arn:aws:sns:eu-central-1:123456789012:documents",
    source_function="docflow_document_loader",
)
QUICK = {
    "DOCFLOW_BATCH_SETTLE_SECONDS": "0",
    "DOCFLOW_BATCH_POLL_SECONDS": "1",
    "DOCFLOW_BATCH_HOLD_SECONDS": "0",
}


@dataclass(frozen=True)
class Person(Terminal):
    """A person at a terminal, and what they work on."""

    pipeline = "batch"

    cloud: MemoryCloud
    store: SqlBatchStore
    loads: SqlLoadStore
    client: Client
    resources: Resources

    async def until(self, key: BatchKey, status: LoaderStatus, phase: str) -> dict[str, Any]:
        """Wait until `show` says so; what it says."""
        seen: dict[str, Any] = {}

        async def reached() -> bool:
            nonlocal seen
            done = await self.try_docflow("show", f"{key.case_id}/{key.batch_id}", "-o", "json")
            if done.exit_code != 0:
                return False
            seen = json.loads(done.stdout)
            return (seen["status"], seen["phase"]) == (status, phase)

        await eventually(reached, seconds=30, pause=0.1)
        return seen

    async def json(self, *arguments: str) -> Any:
        return json.loads(await self.docflow(*arguments, "-o", "json"))

    async def of_runs(self, *arguments: str) -> Result:
        """A command about runs of every pipeline."""
        return await run_docflow_in_thread(*arguments, context=CliContext(self.environment))


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
        "TEMPORAL_UI_ADDRESS": "http://ui:8233",
        "USER": "ada",
        **QUICK,
    }
    cloud = MemoryCloud()
    with pytest.MonkeyPatch.context() as patch:
        async with environment, open_resources(settings) as resources, FileTexts() as texts:
            client = environment.client
            patch.setenv("TEMPORAL_ADDRESS", client.service_client.config.target_host)
            store, loads = SqlBatchStore(resources.database), SqlLoadStore(resources.database)
            batches = BatchResources(
                plan=PLAN,
                queues=cloud.queues,
                topic=cloud.topic,
                functions=cloud.functions,
                grants=cloud.grants,
                store=store,
                loads=loads,
                texts=texts,
                runs=TemporalOpenRuns(client),
                leases=SqlLeases(resources.database),
                limits=ROOMY,
            )
            gateway = gateway_of(Context(settings, client, resources))
            async with (
                build_worker(client, BATCHES, resources, batches),
                served(gateway.app) as address,
            ):
                at = {"DOCFLOW_ADDRESS": address, "DOCFLOW_TOKEN": token("ada", 1, "operator")}
                yield Person(settings | at, cloud, store, loads, client, resources)


async def test_a_batch_from_its_start_to_its_end(terminal: Person) -> None:
    key = BatchKey(case_id=1, batch_id=4)
    said = await terminal.docflow("start", "1/4")
    assert "JOB_STARTED of batch 1/4 accepted" in said
    await terminal.until(key, LoaderStatus.PROCESSING, "loading")
    shown = await terminal.docflow("show", "1/4")
    assert "http://ui:8233/namespaces/default/workflows/batch%2F1%2F4" in shown
    assert "event source mapping" in shown and "visible" in shown

    by_id = await terminal.of_runs("show", "batch/1/4")
    assert by_id.exit_code == 0 and "event source mapping" in by_id.stdout
    case = await terminal.of_runs("show", "case/1", "-o", "json")
    assert json.loads(case.stdout)["details"]["running"] == 4
    listed = await terminal.of_runs("list", "--pipeline", "batches", "-o", "name")
    assert "batch/1/4" in listed.stdout.split()
    refused = await terminal.of_runs("retry", "batch/1/4")
    assert refused.exit_code != 0 and "retry was refused" in refused.stderr

    await terminal.docflow("finish", "1/4")
    await terminal.until(key, LoaderStatus.PROCESSING, "ending")
    ended = await terminal.json("finish", "1/4", "--end")
    assert (ended["event"], ended["id"]) == ("BATCH_END_FINISHED", "batch/1/4")
    seen = await terminal.until(key, LoaderStatus.COMPLETE, "done")
    assert {row["state"] for row in seen["resources"]} == {"gone"}
    assert names_of(PLAN.prefix, key).queue not in terminal.cloud.queues_by_name

    (listed,) = await terminal.json("list", "--case", "1")
    assert (listed["batch_id"], listed["status"]) == (4, "complete")
    assert "complete" in await terminal.docflow("list", "--case", "1")


@pytest.mark.parametrize(("options", "case"), [([], 2), (["--partial"], 3)])
async def test_a_batch_is_cancelled(terminal: Person, options: list[str], case: int) -> None:
    key = BatchKey(case_id=case, batch_id=1)
    await terminal.docflow("start", f"{case}/1")
    await terminal.until(key, LoaderStatus.PROCESSING, "loading")
    await terminal.docflow("cancel", f"{case}/1", *options, "--reason", "wrong case")
    seen = await terminal.until(key, LoaderStatus.CANCELLED, "done")
    assert seen["reason"] == "cancelled by ada: wrong case"


async def test_the_reason_of_a_cancel_by_id_is_kept(terminal: Person) -> None:
    key = BatchKey(case_id=12, batch_id=1)
    await terminal.docflow("expect", "12", "1")
    done = await terminal.of_runs("cancel", "batch/12/1", "--reason", "the case was closed")
    assert done.exit_code == 0, done.output

    async def reached() -> bool:
        view = await terminal.store.get(key)
        return view is not None and view.status is LoaderStatus.CANCELLED

    await eventually(reached, seconds=30, pause=0.1)
    said = "cancelled by ada: the case was closed; it was not built yet"
    assert (await terminal.json("show", "12/1"))["reason"] == said


async def test_a_batch_that_has_ended_is_not_cancelled(terminal: Person) -> None:
    await terminal.docflow("start", "14/1")
    # Whether its row is written by now or not.
    await terminal.docflow("cancel", "14/1")
    await terminal.until(BatchKey(case_id=14, batch_id=1), LoaderStatus.CANCELLED, "done")
    refused = await terminal.refused("cancel", "14/1")
    assert "batch 1 of case 14 was cancelled: there is nothing to cancel" in refused
    for command in ("start", "finish"):
        refused = await terminal.refused(command, "14/1")
        assert "was cancelled, and not loaded again: send its documents in" in refused


async def test_no_run_of_any_pipeline_that_never_was_takes_an_answer(terminal: Person) -> None:
    uuid = "0b9bd0f0-6a34-4b69-9d0e-3a86e4d5c5c1"
    spreadsheets = (f"spreadsheet/{uuid}", f"spreadsheet-undo/{uuid}")
    digest = "9" * 64
    gap = "expected/invoices/2026-02-03/missing"
    transfers = (f"transfer/{digest}", f"transfer/{digest}/job", gap)
    ids = ("import/P9/T9", "batch/99/99", *spreadsheets, f"job/{digest}", *transfers)
    found = [run for id in ids if (run := recognise(catalogue.PIPELINES, id)) is not None]
    answered = {kind.workflow for each in catalogue.PIPELINES for kind in each.runs if kind.verbs}
    assert {run.kind.workflow for run in found} == answered
    for run in found:
        for verb in {*run.kind.answers, *run.kind.events}:
            done = await terminal.of_runs(verb, run.workflow_id)
            assert done.exit_code == 1, (verb, run.workflow_id, done.output)
            assert "there is no" in done.stderr, (verb, run.workflow_id, done.stderr)
    assert "there is no batch 99 of case 99" in await terminal.refused("cancel", "99/99")
    with pytest.raises(RPCError):
        await terminal.client.get_workflow_handle("case/99").describe()


async def test_a_batch_that_waits_for_room_in_the_account_shows_its_position(
    terminal: Person,
) -> None:
    key = BatchKey(case_id=8, batch_id=1)
    await terminal.store.expect([key])
    room = [Claim("filter policies of a topic", 1, 1)]
    async with open_database(terminal.environment["DATABASE_URL"]) as database:
        leases = SqlLeases(database)
        for owner in ("batch/9/1", "batch/9/2", key.workflow_id):
            await leases.take(owner, room, timedelta(minutes=1))
    shown = await terminal.json("show", "8/1")
    assert shown["room"] == {"resource": "filter policies of a topic", "position": 2}
    assert "filter policies of a topic (position 2)" in await terminal.docflow("show", "8/1")


async def test_an_expected_batch_goes_first(terminal: Person) -> None:
    said = await terminal.docflow("expect", "4", "2", "1", "2")
    assert said == "case 4 expects batch 1, 2\n"
    await terminal.docflow("start", "4/2")
    waiting = await terminal.json("list", "--case", "4")
    assert [row["status"] for row in waiting] == ["waiting", "waiting"]
    shown = await terminal.json("show", "4/2")
    assert [each["batch_id"] for each in shown["waits_for"]] == [1]
    assert shown["waited_for_by"] == []
    assert "batch 1 (not started, since" in await terminal.docflow("show", "4/2")
    assert "waited for by" in await terminal.docflow("show", "4/1")
    await terminal.docflow("cancel", "4/1")
    await terminal.until(BatchKey(case_id=4, batch_id=2), LoaderStatus.PROCESSING, "loading")
    assert (await terminal.json("show", "4/1"))["phase"] is None
    await terminal.docflow("cancel", "4/2")


async def test_a_stray_event_delays_no_batch(terminal: Person) -> None:
    await terminal.docflow("finish", "13/1")
    await terminal.docflow("start", "13/2")
    await terminal.until(BatchKey(case_id=13, batch_id=2), LoaderStatus.PROCESSING, "loading")
    assert "no batch waits for it" in " ".join((await terminal.docflow("show", "13/1")).split())
    await terminal.docflow("cancel", "13/2")


async def test_a_parked_batch_is_answered(terminal: Person) -> None:
    key = BatchKey(case_id=5, batch_id=1)
    await terminal.docflow("start", "5/1", "--end", "0")
    await terminal.docflow("finish", "5/1")
    seen = await terminal.until(key, LoaderStatus.PROCESSING, "parked")
    assert seen["is_parked"]
    assert "docflow retry | skip | fail batch/5/1" in await terminal.docflow("show", "5/1")
    retried = await terminal.of_runs("retry", "batch/5/1", "--reason", "the topic has room again")
    assert "retry accepted" in retried.stdout, retried.output
    await terminal.until(key, LoaderStatus.PROCESSING, "parked")
    skipped = await terminal.of_runs("skip", "batch/5/1", "--reason", "nothing follows")
    assert skipped.exit_code == 0, skipped.output
    seen = await terminal.until(key, LoaderStatus.COMPLETE, "done")
    assert seen["reason"] == "nothing follows (ada)"


async def test_a_parked_batch_is_given_up(terminal: Person) -> None:
    key = BatchKey(case_id=6, batch_id=1)
    await terminal.docflow("start", "6/1", "--end", "0")
    await terminal.docflow("finish", "6/1", "--documents", "3")
    await terminal.until(key, LoaderStatus.PROCESSING, "parked")
    await terminal.of_runs("fail", "batch/6/1", "--reason", "the case was closed")
    seen = await terminal.until(key, LoaderStatus.FAILED, "done")
    assert "JOB_FINISHED said 3 documents, and 0 are known" in seen["reason"]
    assert seen["reason"].endswith("; the case was closed (ada)")


async def test_an_event_sent_twice_is_accepted_twice(terminal: Person) -> None:
    await terminal.docflow("start", "7/1")
    handle = terminal.client.get_workflow_handle("case/7")
    before = (await handle.query("status"))["events"]
    for _ in range(2):
        await terminal.docflow("finish", "7/1")
    assert (await handle.query("status"))["events"] == before + 2
    await terminal.docflow("cancel", "7/1")


async def test_dead_letters_are_redriven_after_the_end(terminal: Person) -> None:
    key = BatchKey(case_id=8, batch_id=1)
    await terminal.store.expect([key])
    assert "there is no batch 2 of case 8" in await terminal.refused("redrive", "8/2")
    await terminal.store.close(Closing(key=key, status=LoaderStatus.COMPLETE))
    assert "kept no dead letters" in await terminal.refused("redrive", "8/1")
    await terminal.store.close(Closing(key=key, status=LoaderStatus.COMPLETE, dead_letters=2))
    taken = await terminal.json("redrive", "8/1")
    assert taken["event"] == "REDRIVE_REQUESTED"
    await terminal.until(key, LoaderStatus.PROCESSING, "ending")
    await terminal.docflow("finish", "8/1", "--end")
    await terminal.until(key, LoaderStatus.COMPLETE, "done")


async def test_documents_that_failed_are_shown_and_tried_again(terminal: Person) -> None:
    key = BatchKey(case_id=10, batch_id=1)
    assert "there is no batch 1 of case 10" in await terminal.refused("show", "10/1", "documents")
    await terminal.store.expect([key])
    assert "no documents of batch 10/1" in await terminal.docflow("show", "10/1", "documents")
    for document_id in ("D-1", "D-2"):
        await terminal.loads.fail(document(document_id, key), f"{document_id} is cut off")
    await terminal.store.close(Closing(key=key, status=LoaderStatus.COMPLETE))
    assert (await terminal.json("show", "10/1"))["outcome"] == "PARTIAL"
    shown = await terminal.docflow("show", "10/1", "documents", "--state", "failed")
    assert "DOCUMENT_PROCESSED: D-2 is cut off" in " ".join(shown.split())
    (first,) = await terminal.json("show", "10/1", "documents", "--limit", "1")
    assert (first["document_id"], first["reason"]) == ("D-1", "D-1 is cut off")
    every = await terminal.docflow("show", "10/1", "documents", "--limit", "2", "-o", "name")
    assert every.split() == ["D-1", "D-2"]
    left = await terminal.docflow("show", "10/1", "dead-letters")
    assert "D-2 is cut off" in left and "redrive 10/1 --with-failed" in left

    taken = await terminal.json("redrive", "10/1", "--with-failed")
    assert (taken["event"], taken["without_message"]) == ("REDRIVE_REQUESTED", 0)
    queue = names_of(PLAN.prefix, key).queue

    async def tried() -> bool:
        here = terminal.cloud.queues_by_name.get(queue)
        return here is not None and len(here.messages) == 2

    await eventually(tried, seconds=30)
    terminal.cloud.queues_by_name[queue].messages.clear()
    await terminal.until(key, LoaderStatus.PROCESSING, "ending")
    await terminal.docflow("finish", "10/1", "--end")
    await terminal.until(key, LoaderStatus.COMPLETE, "done")


async def test_a_batch_is_run_and_looked_at_over_http(terminal: Person) -> None:
    key = BatchKey(case_id=112, batch_id=1)
    context = Context(terminal.environment, terminal.client, terminal.resources)
    async with gateway_of(context).program() as olga:
        at = "/api/v1/batches/112/1"
        started = await olga.post(f"{at}/start", json={"timings": {"poll": 2}})
        assert started.status_code == 202, started.text
        assert started.json()["id"] == key.workflow_id
        await terminal.until(key, LoaderStatus.PROCESSING, "loading")
        shown = (await olga.get(at)).json()
        assert (shown["status"], shown["phase"], shown["is_parked"]) == (
            *("processing", "loading"),
            False,
        )
        there = (await olga.get(f"{at}/resources")).json()
        assert there["state"] == "in use"
        assert {"queue", "function"} <= {each["resource"] for each in there["resources"]}
        for document_id in ("D-1", "D-2"):
            await terminal.loads.fail(document(document_id, key), f"{document_id} is cut off")
        assert (await olga.post(f"{at}/finish", json={"documents": 2})).status_code == 202
        await terminal.until(key, LoaderStatus.PROCESSING, "ending")
        assert (await olga.post(f"{at}/end")).status_code == 202
        await terminal.until(key, LoaderStatus.COMPLETE, "done")
        for limit, ids in ((1, ["D-1"]), (2, ["D-1", "D-2"])):
            found = (await olga.get(f"{at}/failed-messages", params={"limit": limit})).json()
            assert [each["document_id"] for each in found["items"]] == ids
            assert found["more"] is (limit == 1)
        assert found["items"][0]["reason"] == "D-1 is cut off"
        again = (await olga.post(f"{at}/redrive", json={"with_failed": True})).json()
        assert (again["event"], again["without_message"]) == ("REDRIVE_REQUESTED", 0)
        cancelled = await olga.post(f"{at}/cancel", json={"reason": "seen enough"})
        assert cancelled.status_code == 202, cancelled.text

    async def is_cancelled() -> bool:
        view = await terminal.store.get(key)
        return view is not None and view.status is LoaderStatus.CANCELLED

    await eventually(is_cancelled, seconds=30)


async def test_a_batch_of_which_nothing_failed_is_not_tried_again(terminal: Person) -> None:
    key = BatchKey(case_id=11, batch_id=1)
    await terminal.store.expect([key])
    await terminal.store.close(Closing(key=key, status=LoaderStatus.COMPLETE))
    refused = await terminal.refused("redrive", "11/1", "--with-failed")
    assert "batch 1 of case 11 is complete, and no message of it waits to be tried" in refused


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("show", "99/1"), "there is no batch 1 of case 99"),
        (("expect", "99", "1", "0"), "greater than or equal to 1"),
        (("redrive", "99/1", "--with-failed"), "there is no batch 1 of case 99"),
        (("concurrency", "7", "20", "--default"), "N and --default contradict each other"),
    ],
)
async def test_a_refusal_is_one_line(
    terminal: Person, arguments: tuple[str, ...], says: str
) -> None:
    assert says in await terminal.refused(*arguments)


async def test_an_empty_list_explains_how_to_begin(terminal: Person) -> None:
    assert "docflow batch start CASE/BATCH" in await terminal.docflow("list", "--case", "99")


async def test_a_truncated_table_is_marked(terminal: Person) -> None:
    done = await terminal.try_docflow("list", "--limit", "1")
    assert (done.exit_code, done.stderr) == (0, "the newest 1; --limit shows more\n")


async def test_what_exists_of_a_batch_and_the_concurrency_of_its_case(terminal: Person) -> None:
    await terminal.docflow("start", "15/1")
    await terminal.until(BatchKey(case_id=15, batch_id=1), LoaderStatus.PROCESSING, "loading")
    shown = await terminal.docflow("show", "15/1", "resources")
    assert "event source mapping" in shown and "in use" in shown
    assert (await terminal.json("show", "15/1", "resources"))["state"] == "in use"
    await terminal.docflow("cancel", "15/1")
    none = "case 15 has none of its own: DOCFLOW_BATCH_CONCURRENCY counts\n"
    assert await terminal.docflow("concurrency", "15") == none
    assert "of case 15 is 20" in await terminal.docflow("concurrency", "15", "20")
    assert await terminal.store.concurrency(15) == 20
    assert await terminal.docflow("concurrency", "15", "--default") == none
    assert (await terminal.json("concurrency", "15"))["most"] is None
