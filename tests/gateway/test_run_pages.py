"""Runs of all pipelines on pages: overview, list, one answer for many, and a page for each."""

import json
import re
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from html import unescape

import httpx
import pytest

from tests.gateway.test_documents import ROWS, ended, parked
from tests.gateway.test_documents import worker as worker
from tests.gateway.test_import_pages import visitor
from tests.support.gateway import Stack, import_in

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("worker")]


@asynccontextmanager
async def operator(stack: Stack) -> AsyncGenerator[httpx.AsyncClient]:
    async with visitor(stack, "olga", "operator") as olga:
        yield olga


def field(page: str, name: str) -> str:
    """Value of a hidden field, the same in all forms."""
    [value] = {*re.findall(rf'name="{name}" value="([^"]*)"', page)}
    return unescape(value)


async def test_runs_are_found_and_lead_to_their_pages(stack: Stack) -> None:
    project = f"P{uuid.uuid4().hex[:8]}"
    ids = [await parked(stack, project_id=project) for _ in range(2)]
    async with operator(stack) as olga, visitor(stack, "eve") as eve:
        listed = (await olga.get("/runs", params={"project": project})).text
        for id in ids:
            assert listed.count(f'href="/runs/{id}"') == 1
        assert listed.count('<span class="badge warn">Needs attention</span>') == 2
        [one] = re.findall(r'<th role="rowheader".*', (await olga.get(f"/runs?text={ids[0]}")).text)
        assert ids[0] in one
        for query in ("state=completed", "pipeline=batches", "text=nothing", "mine=true"):
            page = (await olga.get(f"/runs?project={project}&{query}")).text
            assert "No run was found" in page and ids[0] not in page
        assert (await olga.get("/runs?state=odd")).status_code == 422
        today = f"{datetime.now(UTC):%Y-%m-%d}"
        for query, number in (
            (f"since={today}&until={today}&kind=equipment", 2),
            ("kind=crew", 0),
            ("since=2000-01-01&until=2000-01-02", 0),
            ("since=&until=&kind=", 2),
        ):
            page = (await olga.get(f"/runs?project={project}&{query}")).text
            assert page.count('role="rowheader"') == number, query
        assert (await olga.get("/runs?since=soon")).status_code == 422
        # Those of no organisation are for operators.
        assert "No run was found" in (await eve.get("/runs", params={"project": project})).text
        assert (await eve.get(f"/runs/{ids[0]}")).status_code == 404


async def test_a_list_continues_behind_its_last_run(stack: Stack) -> None:
    async with visitor(stack, "page of runs") as paul:
        for number in range(51):
            await import_in(paul, "COLUMN_MAPPING", filename=f"{number}.csv")
        first = (await paul.get("/runs?mine=true")).text
        [older] = re.findall(r'rel="next" href="([^"]+)"', first)
        last = (await paul.get(unescape(older))).text
        oldest = (await paul.get("/runs?mine=true&sort=changed_at")).text
    assert first.count('role="rowheader"') == 50 and ">50.csv<" in first
    assert last.count('role="rowheader"') == 1 and ">0.csv<" in last
    assert 'href="/runs?mine=true">Newest' in last
    assert ">0.csv<" in oldest and ">50.csv<" not in oldest and 'rel="next"' in oldest


async def test_one_answer_is_for_the_runs_of_its_preview(stack: Stack) -> None:
    project = f"P{uuid.uuid4().hex[:8]}"
    ids = [await parked(stack, project_id=project) for _ in range(2)]
    async with operator(stack) as olga, visitor(stack, "vera") as vera:
        asked = {"project": project, "verb": "skip", "reason": "MISSING.csv"}
        preview = (await olga.get("/runs/answers", params=asked)).text
        assert "Leave out: 2 runs" in preview and "Nothing has been answered yet" in preview
        assert sorted(field(preview, "ids").split("\n")) == sorted(ids)
        other = await olga.get("/runs/answers", params={**asked, "reason": "some other reason"})
        assert "No run takes this answer" in other.text
        listed = {"project": project, "state": "needs_attention"}
        found = await olga.get("/runs", params={**listed, "reason": "missing.csv"})
        assert found.text.count('role="rowheader"') == 2
        found = await olga.get("/runs", params={**listed, "reason": "some other reason"})
        assert "No run was found" in found.text
        found = await olga.get("/api/v1/runs", params={"project": project, "reason": "missing.csv"})
        assert sorted(each["id"] for each in found.json()["items"]) == sorted(ids)
        later = await parked(stack, project_id=project)
        form = {name: field(preview, name) for name in ("csrf", "verb", "ids")}
        for wrong in ({**form, "verb": "report"}, {**form, "csrf": "x"}):
            assert (await olga.post("/runs/answers", data=wrong)).status_code in (403, 422)
        stolen = {**form, "csrf": field((await vera.get("/runs")).text, "csrf")}
        assert "0 runs have the answer" in (await vera.post("/runs/answers", data=stolen)).text
        done = await olga.post("/runs/answers", data={**form, "reason": "sent twice"})
        assert "2 runs have the answer" in done.text
        async with visitor(stack, "alma", "admin") as alma:
            [noted] = (await alma.get("/api/v1/audit", params={"object": ids[0]})).json()["items"]
        assert (noted["who"], noted["reason"], noted["after"]["answer"]) == (
            *("olga", "sent twice", "skip"),
        )
        states = [(await ended(olga, each))["state"] for each in ids]
        waits = (await olga.get(f"/api/v1/runs/{later}")).json()
    assert (states, waits["state"]) == (["skipped", "skipped"], "needs_attention")


async def test_a_run_shows_what_has_happened_and_takes_an_answer(stack: Stack) -> None:
    id = await parked(stack)
    async with operator(stack) as olga:
        page = (await olga.get(f"/runs/{id}")).text
        assert "missing.csv" in page and '<ol class="history">' in page
        given = {"verb": "fail", "reason": "<b>never</b> sent"}
        form = {**given, "csrf": field(page, "csrf"), "version": field(page, "version")}
        assert (await olga.post(f"/runs/{id}", data={**form, "version": "old"})).status_code == 412
        answered = await olga.post(f"/runs/{id}", data=form)
        assert (answered.status_code, answered.headers["location"]) == (303, f"/runs/{id}")
        await ended(olga, id)
        after = (await olga.get(f"/runs/{id}")).text
        assert "Failed" in after and 'id="answer"' not in after
        assert "&lt;b&gt;never&lt;/b&gt; sent" in after and "<bdi>olga</bdi>" in after
        assert (await olga.post(f"/runs/{id}", data=form)).status_code == 409
    async with visitor(stack, "alma", "admin") as alma:
        noted = (await alma.get("/api/v1/audit", params={"object": id})).json()["items"]
    [entry] = [each for each in noted if each["status"] == 303]
    assert (entry["who"], entry["reason"]) == ("olga", given["reason"])
    assert (entry["before"]["state"], entry["after"]["answer"]) == ("needs_attention", "fail")


@pytest.mark.parametrize("span", ["hour", "day", "month"])
async def test_the_overview_says_what_ended_and_why_runs_wait(stack: Stack, span: str) -> None:
    id, done = await parked(stack), await parked(stack)
    async with operator(stack) as olga, visitor(stack, "nora", "viewer") as nora:
        await olga.post(f"/api/v1/runs/{done}/skip")
        await ended(olga, done)
        counted = (await olga.get("/api/v1/overview", params={"span": span})).json()
        page = (await olga.get(f"/overview?span={span}")).text
        hers = (await nora.get(f"/overview?span={span}")).text
        await olga.post(f"/api/v1/runs/{id}/skip")
    assert sum(each["number"] for each in counted["ended"] if each["state"] == "skipped") >= 1
    waiting = [each["number"] for each in counted["open"] if each["state"] == "needs_attention"]
    assert sum(each["number"] for each in counted["waiting"]) >= 1 and sum(waiting) >= 1
    assert page.count('<rect class="bar') == len(counted["ended"])
    assert "missing.csv" in page and "What docflow needs" in page
    assert "missing.csv" not in hers and "What docflow needs" not in hers


async def test_the_report_of_a_run_is_fetched_from_its_page(stack: Stack) -> None:
    message = {"document_type": "equipment", "project_id": "P1", "map": {"Tagessatz": "rate"}}
    given = {"message": json.dumps({**message, "task_id": uuid.uuid4().hex})}
    files = {"file": ("list.csv", ROWS + b"E-3,Lift,many\n")}
    async with operator(stack) as olga, visitor(stack, "eve") as eve:
        sent = await olga.post("/api/v1/documents", data=given, files=files)
        id = sent.json()["id"]
        await ended(olga, id)
        page = (await olga.get(f"/runs/{id}")).text
        assert "is not a number" in page and "Completed with problems" in page
        [link] = re.findall(r'href="(/runs/report[^"]+)"', page)
        report = await olga.get(unescape(link))
        assert report.content[:2] == b"PK" and "attachment" in report.headers["content-disposition"]
        assert (await eve.get(unescape(link))).status_code == 404


async def test_a_view_is_kept_for_the_person_who_saved_it(stack: Stack) -> None:
    project = f"P{uuid.uuid4().hex[:8]}"
    asked = {"project": project, "state": "needs_attention"}
    async with operator(stack) as olga, visitor(stack, "vera", "viewer") as vera:
        listed = (await olga.get("/runs", params=asked)).text
        form = {name: field(listed, name) for name in ("csrf", "query")}
        for name, says in (("", "Give the view a name"), ("x" * 61, "at most 60 characters")):
            refused = await olga.post("/runs/views", data={**form, "name": name})
            assert refused.status_code == 422 and says in refused.text, refused.text
            assert f'value="{project}"' in refused.text and f'value="{name}"' in refused.text
        whole = await olga.post("/runs/views", data={**form, "query": "", "name": "all"})
        assert whole.status_code == 422 and "Narrow the list first" in whole.text
        saved = await olga.post("/runs/views", data={**form, "name": "<b>Odd</b>"})
        assert saved.status_code == 303, saved.text
        hers = (await olga.get("/runs")).text
        [address] = re.findall(r'<a href="([^"]+)"><bdi>&lt;b&gt;Odd&lt;/b&gt;</bdi>', hers)
        assert unescape(address) == f"/runs?state=needs_attention&project={project}"
        used = (await olga.get(unescape(address))).text
        assert 'aria-current="page"><bdi>&lt;b&gt;Odd' in used
        others = (await vera.get("/runs", params=asked)).text
        assert "Odd" not in others
        id = re.findall(r'name="id" value="(\d+)"', hers)[-1]
        theirs = {"csrf": field(others, "csrf"), "query": "", "id": id}
        await vera.post("/runs/views/remove", data=theirs)
        assert "Odd" in (await olga.get("/runs")).text
        removed = await olga.post("/runs/views/remove", data={**form, "id": id})
        assert removed.headers["location"] == f"/runs?{form['query']}"
        assert "Odd" not in (await olga.get("/runs")).text
        made = [
            await olga.post("/runs/views", data={**form, "name": f"View {number}"})
            for number in range(21)
        ]
        assert [each.status_code for each in made] == [303] * 20 + [422]
        assert "remove one first" in made[-1].text
        again = await olga.post("/runs/views", data={**form, "name": "View 3"})
        assert again.status_code == 303


async def test_an_event_is_sent_by_a_form(stack: Stack) -> None:
    address = "/runs/new/event"
    async with operator(stack) as olga, visitor(stack, "vera", "viewer") as vera:
        assert address in (await olga.get("/runs")).text
        assert address not in (await vera.get("/runs")).text
        assert (await vera.get(address)).status_code == 403
        page = (await olga.get(address)).text
        id = re.findall(r'name="id"[^>]* value="([^"]+)"', page)[-1]
        given = {"csrf": field(page, "csrf"), "id": id, "source": "Web", "type": "Succeeded"}
        given |= {"subject": "<Upload>", "accountId": "", "path": "/out/a.csv", "data": "5"}
        refused = await olga.post(address, data=given)
        assert refused.status_code == 422, refused.text
        for name, kept, says in (
            ("accountId", "", "Fill this in"),
            ("data", ">5</textarea>", "Write a JSON object"),
        ):
            beside = refused.text.split(f'id="{name}"')[1].split("</div>")[0]
            assert says in beside and kept in beside
        assert 'value="&lt;Upload&gt;"' in refused.text
        good = {**given, "accountId": "TMS001", "data": '{"size": 5}'}
        late = await olga.post(address, data={**good, "time": "yesterday"})
        assert late.status_code == 422 and "no date and time as" in late.text
        sent = await olga.post(address, data=good)
        assert sent.status_code == 303, sent.text
        assert sent.headers["location"].startswith("/runs/transfer/")
        again = await olga.post(address, data=good)
        assert again.headers["location"] == sent.headers["location"]
        shown = (await olga.get(sent.headers["location"])).text
        assert '<ol class="history">' in shown
        assert (await vera.post(address, data=good)).status_code == 403
