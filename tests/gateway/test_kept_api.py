"""What operators keep for all pipelines, over `/api/v1`."""

from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient
from temporalio.worker import Worker

from activities.shared.errands import Errands
from emulators.service_bus import QueueSettings, ServiceBusEmulator
from tests.support.gateway import Stack, token
from workers.imports.register import IMPORTS
from workers.shared.register import Context
from workers.shared.schedules import reconcile
from workers.shared.services.errands import ErrandService, errands_of
from workers.shared.services.errors import TemporalUnavailable
from workers.shared.services.identity import Identity
from workflows.shared.errand_workflow import Errand

pytestmark = pytest.mark.asyncio(loop_scope="session")
OPERATOR = token("olga", 1, "operator")
SCHEDULE = "/api/v1/schedules/imports-retention"
REJECTED = "/api/v1/rejected-messages"
LETTERS = "/api/v1/dead-letters"
QUEUE = "import-queue"


async def test_the_note_of_a_schedule_says_who_and_why(stack: Stack) -> None:
    await reconcile(stack.client, ["imports"])
    async with stack.browser(OPERATOR) as olga:
        paused = await olga.post(f"{SCHEDULE}/pause", json={"reason": "audit"})
        assert paused.status_code == 200, paused.text
        assert (paused.json()["state"], paused.json()["note"]) == (
            "paused",
            "olga paused it: audit",
        )
        assert (await olga.post(f"{SCHEDULE}/trigger")).json()["note"] == "olga triggered it"
        assert (await olga.get(SCHEDULE)).json()["state"] == "paused"
        assert (await olga.post(f"{SCHEDULE}/resume")).json()["state"] == "active"
        items = (await olga.get("/api/v1/schedules")).json()["items"]
        states = {each["id"]: each["state"] for each in items}
        assert (states["imports-retention"], states["job-retention"]) == ("active", "missing")
        assert (await olga.post("/api/v1/schedules/job-retention/pause")).status_code == 404
        assert (await olga.get("/api/v1/schedules/x")).status_code == 404


async def test_rejected_messages_are_listed_and_dismissed(stack: Stack) -> None:
    for number in range(3):
        await stack.resources.rejected.record("kept", f"m{number}", "InvalidMessage", "why", b"{")
    async with stack.browser(OPERATOR) as olga:
        first = (await olga.get(REJECTED, params={"queue": "kept", "limit": 2})).json()
        assert [each["message_id"] for each in first["items"]] == ["m2", "m1"]
        assert "body" not in first["items"][0]
        rest = (await olga.get(REJECTED, params={"queue": "kept", "cursor": first["next"]})).json()
        assert ([each["message_id"] for each in rest["items"]], rest["next"]) == (["m0"], None)
        at = f"{REJECTED}/{rest['items'][0]['id']}"
        assert (await olga.get(at)).json()["body"] == "{"
        done = (await olga.post(f"{at}/dismiss", json={"reason": "a test"})).json()
        assert (done["by"], done["note"], done["dismissed_at"] is None) == ("olga", "a test", False)
        left = (await olga.get(REJECTED, params={"queue": "kept", "open": True})).json()["items"]
        assert [each["message_id"] for each in left] == ["m2", "m1"]
        assert (await olga.get(f"{REJECTED}/999999")).status_code == 404


@pytest.mark.parametrize("path", ["/api/v1/schedules", REJECTED])
async def test_what_operators_keep_is_theirs(stack: Stack, path: str) -> None:
    async with stack.browser(token("ida")) as ida:
        assert (await ida.get(path)).status_code == 403


@pytest_asyncio.fixture(loop_scope="session")
async def errands(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """A worker of imports that does errands, with the keys of a queue with two dead letters."""
    quick = partial(ServiceBusClient.from_connection_string, socket_timeout=0.05)
    monkeypatch.setattr(ServiceBusClient, "from_connection_string", quick)
    async with ServiceBusEmulator([QueueSettings(QUEUE)]) as emulator:
        async with (
            quick(emulator.connection_string) as client,
            client.get_queue_sender(QUEUE) as sender,
            client.get_queue_receiver(QUEUE) as receiver,
        ):
            for number in range(2):
                await sender.send_messages(ServiceBusMessage("{", message_id=f"m{number}"))
                (received,) = await receiver.receive_messages(1, max_wait_time=5)
                await receiver.dead_letter_message(received, reason="GivenUp")
        settings = {
            "AZURE_SERVICE_BUS_CONNECTION_STRING": emulator.connection_string,
            "AZURE_SERVICE_BUS_QUEUE_NAME": QUEUE,
        }
        do = Errands(errands_of(Context(settings, stack.client, stack.resources), IMPORTS, None))
        async with Worker(
            stack.client,
            task_queue=IMPORTS.task_queue,
            workflows=[Errand],
            activities=[do.carry_out],
        ):
            yield


async def test_a_worker_keeps_dead_letters(stack: Stack, errands: None) -> None:
    async with stack.browser(OPERATOR) as olga:
        listed = await olga.get(LETTERS, params={"pipeline": "imports"})
        assert listed.status_code == 200, listed.text
        first, second = listed.json()["items"]
        assert (first["queue"], first["reason"], "body" in first) == (QUEUE, "GivenUp", False)
        at = f"{LETTERS}/imports/{QUEUE}"
        assert (await olga.get(f"{at}/{first['number']}")).json()["body"] == "{"
        done = await olga.post(f"{at}/redrive", json={"numbers": [first["number"]]})
        assert done.json() == {"numbers": [first["number"]]}, done.text
        assert (await olga.get(f"{at}/{first['number']}")).status_code == 404
        assert (await olga.post(f"{at}/remove", json={})).status_code == 422
        removed = (await olga.post(f"{at}/remove", json={"all": True})).json()
        assert removed == {"numbers": [second["number"]]}
        unknown = await olga.post(f"{LETTERS}/imports/x/remove", json={"all": True})
        assert unknown.status_code == 422 and "no setting names queue" in unknown.json()["detail"]
        assert (await olga.get(f"{LETTERS}/batches/x/1")).status_code == 422


async def test_a_worker_sends_a_rejected_message_again(stack: Stack, errands: None) -> None:
    await stack.resources.rejected.record(QUEUE, "again", "InvalidMessage", "no JSON", b"{")
    app = stack.gateway(environment={"AZURE_SERVICE_BUS_QUEUE_NAME": QUEUE})
    async with stack.browser(OPERATOR, app=app) as olga:
        listed = (await olga.get(REJECTED, params={"queue": QUEUE})).json()["items"]
        [message] = [each for each in listed if each["message_id"] == "again"]
        at = f"{REJECTED}/{message['id']}/retry"
        refused = await olga.post(at)
        assert refused.status_code == 422 and "set `force`" in refused.json()["detail"]
        sent = await olga.post(at, json={"force": True})
        assert sent.status_code == 200, sent.text
        assert sent.json()["message"]["resubmitted_at"] is not None
        assert "was sent again at" in (await olga.post(at)).json()["detail"]


async def test_an_errand_without_a_worker_names_its_run(stack: Stack) -> None:
    who = Identity("olga", (), frozenset({"operator"}))
    with pytest.raises(TemporalUnavailable, match=r"no worker of jobs .* errand/jobs/"):
        await ErrandService(stack.client, patience=0.2).ask(who, "jobs", "dead-letters", {})


async def test_the_status_names_what_is_up(stack: Stack) -> None:
    async with stack.browser(OPERATOR) as olga:
        answer = await olga.get("/api/v1/status")
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert [each["up"] for each in found["checks"][:2]] == [True, True]
        assert found["pipelines"]["spreadsheets"]["workers"] >= 1
        assert (await olga.get("/api/v1/outages")).json() == {"items": [], "next": None}


async def test_types_are_shown_as_files(stack: Stack) -> None:
    async with stack.browser(token("ida")) as ida:
        names = [each["name"] for each in (await ida.get("/api/v1/types")).json()["items"]]
        assert {"equipment", "RESULT"} <= set(names)
        shown = (await ida.get("/api/v1/types/equipment")).json()
        assert shown["yaml"].startswith("name: equipment") and "code" in shown["fields"]
        assert (shown["own"], shown["declaration"]["key"]) == (True, ["code"])
        assert (await ida.get("/api/v1/types/x")).status_code == 404
