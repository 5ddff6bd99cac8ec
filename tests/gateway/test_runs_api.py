"""Runs of all pipelines over `/api/v1/runs`."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import httpx
import pytest

from tests.support.gateway import HEADER, OURS, Stack, import_in, served, sheet, token
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")
RUNS = "/api/v1/runs"


async def test_people_see_the_runs_of_their_organisations(stack: Stack) -> None:
    async with stack.browser(token("rose of three")) as rose:
        mine = [await import_in(rose, "COLUMN_MAPPING", filename=f"{n}.csv") for n in range(3)]
        page = (await rose.get(RUNS, params={"owner": "rose of three", "limit": 2})).json()
        assert [each["key"] for each in page["items"]] == mine[:0:-1]
        rest = {"owner": "rose of three", "limit": 2, "cursor": page["next"]}
        last = (await rose.get(RUNS, params=rest)).json()
        assert ([each["key"] for each in last["items"]], last["next"]) == (mine[:1], None)
        oldest = {"owner": "rose of three", "limit": 2, "sort": "changed_at"}
        page = (await rose.get(RUNS, params=oldest)).json()
        assert [each["key"] for each in page["items"]] == mine[:2]
        rest = (await rose.get(RUNS, params={**oldest, "cursor": page["next"]})).json()["items"]
        assert [each["key"] for each in rest] == mine[2:]
        earlier = {"owner": "rose of three", "until": rest[0]["changed_at"]}
        assert len((await rose.get(RUNS, params=earlier)).json()["items"]) == 2
        texts = {**oldest, "text": "csv", "limit": 1}
        assert [each["key"] for each in (await rose.get(RUNS, params=texts)).json()["items"]] == (
            mine[:1]
        )
        found = (await rose.get(RUNS, params={"text": "1.CSV", "owner": "rose of three"})).json()
        [run] = found["items"]
        assert (run["title"], run["pipeline"]) == ("1.csv", "spreadsheets")
        one = (await rose.get(f"{RUNS}/{run['id']}")).json()
        assert (one["answers"], one["has_report"]) == (["cancel"], False)
        awaits = one["awaits"]
        assert (awaits["what"], awaits["whom"]) == ("column mapping", "rose of three")
        assert awaits["since"] <= one["changed_at"]
        waiting = await rose.get(RUNS, params={"owner": "rose of three", "needs_attention": True})
        assert len(waiting.json()["items"]) == 3
        for each in mine:
            await rose.delete(f"/api/imports/{each}")
    async with stack.browser(token("eve", 99)) as eve:
        assert (await eve.get(RUNS)).json()["items"] == []
        for suffix in ("", "/timeline", "/events", "/report"):
            assert (await eve.get(f"{RUNS}/{run['id']}{suffix}")).status_code == 404
        assert (await eve.post(f"{RUNS}/{run['id']}/cancel")).status_code == 404


async def test_an_answer_is_applied_and_told_by_the_timeline(stack: Stack) -> None:
    async with (
        stack.browser(token("rosalie of one")) as rosalie,
        stack.browser(token("vic", OURS, "viewer")) as vic,
    ):
        uuid = await import_in(rosalie, "COLUMN_MAPPING", filename="wrong.csv")
        [run] = (await rosalie.get(RUNS, params={"owner": "rosalie of one"})).json()["items"]
        address = f"{RUNS}/{run['id']}"
        refused = {
            "retry": await rosalie.post(f"{address}/retry"),
            "skip": await rosalie.post(f"{address}/skip"),
            "input": await rosalie.post(f"{address}/cancel", json={"input": {}}),
            "field": await rosalie.post(f"{address}/cancel", json={"why": "no"}),
            "verb": await rosalie.post(f"{address}/explode"),
            "viewer": await vic.post(f"{address}/cancel"),
        }
        statuses = {name: answer.status_code for name, answer in refused.items()}
        assert statuses == {
            **dict.fromkeys(("skip", "input", "field", "verb"), 422),
            "retry": 409,
            "viewer": 403,
        }
        assert "offered: retry, cancel, report" in refused["skip"].json()["detail"]
        done = await rosalie.post(f"{address}/cancel", json={"reason": "the wrong list"})
        assert done.status_code == 200, done.text

        async def is_cancelled() -> bool:
            return (await rosalie.get(address)).json()["state"] == "cancelled"

        await eventually(is_cancelled)
        told = (await rosalie.get(f"{address}/timeline")).json()["items"]
        assert [each["event"] for each in (told[0], told[-1])] == ["started", "ended"]
        [answer] = [each for each in told if each["event"] == "answer"]
        assert (answer["text"], answer["by"], answer["reason"]) == (
            "cancel",
            "rosalie of one",
            "the wrong list",
        )
        async with stack.browser(token("alma", 1, "admin")) as admin:
            wanted = {"object": run["id"], "who": "rosalie of one"}
            audit = await admin.get("/api/v1/audit", params=wanted)
        noted = audit.json()["items"][0]
        assert (noted["action"], noted["reason"], noted["after"]["answer"]) == (
            *("answerRun", "the wrong list", "cancel"),
        )
        ended = await rosalie.post(f"{address}/cancel")
        assert ended.status_code == 409, ended.text
        assert (await rosalie.get(f"/api/imports/{uuid}")).json()["status"] == "CANCELLED"


async def test_many_runs_are_counted_before_they_are_answered(stack: Stack) -> None:
    async with stack.browser(token("ruth of many")) as ruth:
        for number in range(3):
            await import_in(ruth, "COLUMN_MAPPING", filename=f"many-{number}.csv")
        order: dict[str, Any] = {
            "answer": "cancel",
            "runs": {"owner": "ruth of many"},
            "reason": "sent again",
        }
        counted = (await ruth.post(f"{RUNS}/answers", json=order)).json()
        assert (counted["dry_run"], len(counted["found"]), counted["failed"]) == (True, 3, {})
        retried = {**order, "answer": "retry", "dry_run": False}
        none = (await ruth.post(f"{RUNS}/answers", json=retried)).json()
        assert (none["found"], len(none["left_out"])) == ([], 3)
        done = (await ruth.post(f"{RUNS}/answers", json={**order, "dry_run": False})).json()
        assert (sorted(done["found"]), done["failed"]) == (sorted(counted["found"]), {})

        async def all_ended() -> bool:
            found = await ruth.get(RUNS, params={"owner": "ruth of many", "state": "cancelled"})
            return len(found.json()["items"]) == 3

        await eventually(all_ended)


async def test_changes_are_streamed_and_none_is_lost_after_a_break(stack: Stack) -> None:
    async with (
        served(stack.app) as address,
        stack.browser(token("rita of events"), address=address) as rita,
    ):
        watched = {"owner": "rita of events"}
        async with rita.stream("GET", "/api/v1/events", params=watched) as stream:
            events = _events(stream)
            uuid = await import_in(rita, "COLUMN_MAPPING", filename="live.csv")
            first = await anext(events)
            assert first[1]["title"] == "live.csv"
        await rita.delete(f"/api/imports/{uuid}")
        again = {"last-event-id": first[0]}
        async with rita.stream("GET", "/api/v1/events", params=watched, headers=again) as stream:
            assert stream.status_code == 200, await stream.aread()
            states = set[str]()
            async with asyncio.timeout(20):
                async for _, run in _events(stream):
                    states.add(run["own_state"])
                    if run["ended_at"] is not None:
                        break
            assert "CANCELLED" in states
        address_of_run = f"{RUNS}/{run['id']}/events"
        async with asyncio.timeout(20), rita.stream("GET", address_of_run) as stream:
            *_, last = [event async for event in _events(stream)]
        assert (last[1]["id"], last[1]["own_state"]) == (run["id"], "CANCELLED")
        done = await rita.get(address_of_run, headers={"last-event-id": last[0]})
        assert (done.status_code, done.content) == (204, b"")


async def test_the_report_of_a_run_is_fetched_and_leaves_no_file(stack: Stack) -> None:
    async with stack.browser(token("rolf of reports")) as rolf:
        rows = sheet(HEADER, ("Anna", "", "anna-at-example", "Junior (U18)"))
        await import_in(rolf, "COMPLETED", rows, autoStart="true")
        [run] = (await rolf.get(RUNS, params={"owner": "rolf of reports"})).json()["items"]
        report = await rolf.get(f"{RUNS}/{run['id']}/report")
        assert (report.status_code, report.content[:2]) == (200, b"PK")
        assert ".xlsx" in report.headers["content-disposition"]
    assert not list(stack.app.state.runs.scratch.glob("report-*"))


LATE, NUL = "0001-01-01T00:00:00+14:00", "a\0b"
REFUSED: Sequence[tuple[str, str, Mapping[str, Any]]] = (
    *(("GET", RUNS, {"params": {name: NUL}}) for name in ("text", "owner", "kind", "project")),
    ("GET", RUNS, {"params": {"since": LATE}}),
    ("GET", RUNS, {"params": {"state": "nonsense"}}),
    ("GET", RUNS, {"params": {"pipeline": "nonsense"}}),
    ("GET", RUNS, {"params": {"cursor": f"2026-01-01_{NUL}"}}),
    ("GET", f"{RUNS}/a%00b", {}),
    ("GET", "/api/v1/events", {"params": {"text": NUL}}),
    ("GET", "/api/v1/events", {"params": {"since": LATE}}),
    ("GET", "/api/v1/events", {"headers": {"last-event-id": "9" * 19}}),
    ("GET", "/api/v1/audit", {"params": {"object": NUL}}),
    ("POST", f"{RUNS}/a%00b/retry", {}),
    ("POST", f"{RUNS}/job/1/cancel", {"json": {"reason": NUL}}),
    ("POST", f"{RUNS}/answers", {"json": {"answer": "retry", "runs": {"text": NUL}}}),
)


async def test_what_can_find_nothing_is_refused(stack: Stack) -> None:
    async with stack.browser(token("olga", OURS, "admin")) as olga:
        for method, address, given in REFUSED:
            refused = await olga.request(method, address, **given)
            assert refused.status_code == 422, (address, given, refused.text)


async def _events(stream: httpx.Response) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    event: dict[str, str] = {}
    async for line in stream.aiter_lines():
        name, _, value = line.partition(": ")
        if name:
            event[name] = value
        elif "data" in event:
            yield event.pop("id"), json.loads(event.pop("data"))
