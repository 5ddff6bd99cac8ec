"""Jobs over HTTP."""

import json
from base64 import urlsafe_b64encode as b64encode
from typing import Any

import pytest

from tests.gateway.test_events import events_of
from tests.support.gateway import served
from tests.support.jobs.gateway import JobStack, ended, submit
from tests.support.jobs.receivers import receiver, with_status
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECRET = "planted-secret-of-a-client"


async def test_a_job_is_started_once_and_answered_from_its_result(jobs: JobStack) -> None:
    request = {"job_type": "hello_world", "parameters": {"n": 2, "message": "once"}}
    async with jobs.browser() as olga:
        first = await olga.post("/api/jobs", json=request)
        again = await olga.post("/api/jobs", json=request)
        job = first.json()["job_id"]
        document = await ended(olga, job)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.headers["location"] == again.headers["location"] == f"/api/jobs/{job}"
    assert first.json()["created"] and not again.json()["created"]
    assert document["status"] == "COMPLETED"
    assert document["result_data"] == {"greetings": 2, "replies": 2}
    assert [each["name"] for each in document["stages"]] == ["greeting", "reply", "summary"]
    assert [each["counts"]["completed"] for each in document["stages"]] == [2, 2, 1]


async def test_every_wrong_field_is_named(jobs: JobStack) -> None:
    given = {"n": -1, "mesage": "typo", "webhook_url": "ftp://a", "webhook_secret": SECRET}
    async with jobs.browser() as olga:
        webhook = await olga.post(
            "/api/jobs", json={"job_type": "hello_world", "parameters": given}
        )
        del given["webhook_url"], given["webhook_secret"]
        fields = await olga.post("/api/jobs", json={"job_type": "hello_world", "parameters": given})
        kind = await olga.post("/api/jobs", json={"job_type": "Hello!"})
    assert {each.status_code for each in (webhook, fields, kind)} == {422}
    assert webhook.json()["errors"] == [
        {"location": "parameters.webhook_url", "message": "must begin with https://"}
    ]
    assert {each["location"] for each in fields.json()["errors"]} == {
        "parameters.n",
        "parameters.mesage",
    }
    assert fields.headers["content-type"] == "application/problem+json"
    assert kind.json()["errors"][0]["location"] == "body.job_type"
    assert SECRET not in webhook.text


async def test_names_that_no_text_can_hold_are_wrong_fields(jobs: JobStack) -> None:
    half = b'"\\ud800": 1'
    async with jobs.browser() as olga:
        for body in (
            b'{"job_type": "hello_world", "parameters": {' + half + b"}}",
            b'{"job_type": "hello_world", ' + half + b"}",
        ):
            headers = {"content-type": "application/json"}
            answer = await olga.post("/api/jobs", content=body, headers=headers)
            assert answer.status_code == 422, answer.text
            assert answer.json()["errors"]


async def test_texts_that_no_database_keeps_are_wrong_fields(jobs: JobStack) -> None:
    nul = "a\0b"
    async with jobs.browser() as olga:
        for field, body in (
            ("parameters.message", {"parameters": {"message": nul}}),
            ("body.project", {"project": nul}),
            ("body.alias", {"alias": "a\nb"}),
        ):
            answer = await olga.post("/api/jobs", json={"job_type": "hello_world", **body})
            assert answer.status_code == 422, answer.text
            assert answer.json()["errors"][0]["location"] == field
        job = await submit(olga, "survey", ask=True, bad=4)
        for body in (b'{"parameters": {"taken": "\\ud800"}}', b'{"reason": "\\u0000"}'):
            answered = await olga.post(
                f"/api/jobs/{job}/answer",
                content=body,
                headers={"content-type": "application/json"},
            )
            assert answered.status_code == 422, answered.text
        await olga.delete(f"/api/jobs/{job}")


async def test_what_a_request_for_a_known_job_names_anew_is_noted(jobs: JobStack) -> None:
    request = {"job_type": "hello_world", "parameters": {"message": "named twice"}}
    async with jobs.browser() as olga:
        first = await olga.post("/api/jobs", json={**request, "alias": "first"})
        await ended(olga, first.json()["job_id"])
        same = await olga.post("/api/jobs", json={**request, "alias": "first"})
        other = await olga.post("/api/jobs", json={**request, "alias": "second", "project": "x"})
    assert (same.status_code, same.json()["notes"]) == (200, [])
    assert other.json()["notes"] == [
        "alias is not used: the job was asked for before, with alias 'first'",
        "project is not used: the job was asked for before, without project",
    ]


async def test_parameters_that_an_endpoint_has_not_are_refused(jobs: JobStack) -> None:
    async with jobs.browser() as olga:
        unknown = await olga.get("/api/jobs?state=FAILED")
        twice = await olga.get("/api/jobs?status=FAILED&status=PARKED")
    async with jobs.browser("viewer") as vera:
        assert (await vera.delete("/api/jobs/abcdef12?reson=x")).status_code == 403
    for answer, name, says in (
        (unknown, "state", "not known"),
        (twice, "status", "more than once"),
    ):
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["location"] == f"query.{name}"
        assert says in answer.json()["errors"][0]["message"]


async def test_a_job_that_has_ended_is_not_cancelled_or_answered(jobs: JobStack) -> None:
    async with jobs.browser() as olga:
        job = await submit(olga, "hello_world", message="over")
        await ended(olga, job)
        answers = [
            await olga.delete(f"/api/jobs/{job}"),
            await olga.post(f"/api/jobs/{job}/answer"),
        ]
    assert [each.status_code for each in answers] == [409, 409]
    assert all("has ended" in each.json()["detail"] for each in answers)


@pytest.mark.parametrize(
    "query",
    [
        f"stage={10**30}",
        f"attempt={10**30}",
        f"token={b64encode(b'[1000000000000, 1]').decode()}",
        f"token={b64encode(b'[Infinity, 1]').decode()}",
    ],
)
async def test_numbers_that_no_column_holds_are_refused(jobs: JobStack, query: str) -> None:
    async with jobs.browser() as olga:
        job = await submit(olga, "hello_world", message=query)
        await ended(olga, job)
        answer = await olga.get(f"/api/jobs/{job}/tasks?{query}")
    assert answer.status_code == 422, answer.text


async def test_unknown_fields_of_requests_are_refused(jobs: JobStack) -> None:
    async with jobs.browser() as olga:
        asked = await olga.post("/api/jobs", json={"job_type": "hello_world", "paramters": {}})
        job = await submit(olga, "hello_world", message="unknown fields")
        restarted = await olga.post(f"/api/jobs/{job}/restart", json={"stage": 2})
        answered = await olga.post(f"/api/jobs/{job}/answer", json={"descision": "fail"})
    assert {each.status_code for each in (asked, restarted, answered)} == {422}
    assert [each.json()["errors"][0]["location"] for each in (asked, restarted, answered)] == [
        "body.paramters",
        "body.stage",
        "body.descision",
    ]


async def test_a_field_that_is_given_twice_is_refused(jobs: JobStack) -> None:
    body = '{"job_type": "hello_world", "parameters": {"message": "a", "message": "b"}}'
    headers = {"content-type": "application/json"}
    async with jobs.browser() as olga:
        twice = await olga.post("/api/jobs", content=body, headers=headers)
        broken = await olga.post("/api/jobs", content=body[:-1], headers=headers)
    assert twice.status_code == 422, twice.text
    assert twice.json()["errors"] == [
        {"location": "body.message", "message": "is given more than once"}
    ]
    assert broken.status_code == 422 and "more than once" not in broken.text


async def test_tasks_are_paged_and_filtered(jobs: JobStack) -> None:
    async with jobs.browser() as olga:
        job = await submit(olga, "survey", bad=2)
        document = await ended(olga, job)
        first = (await olga.get(f"/api/jobs/{job}/tasks", params={"limit": 3})).json()
        second = (
            await olga.get(f"/api/jobs/{job}/tasks", params={"limit": 3, "token": first["next"]})
        ).json()
        failed = (await olga.get(f"/api/jobs/{job}/tasks", params={"status": "FAILED"})).json()
        invalid = await olga.get(f"/api/jobs/{job}/tasks", params={"token": "x"})
    assert document["failed_count"] == 2
    indexes = [each["task_index"] for each in (*first["tasks"], *second["tasks"])]
    assert indexes == ["tile-x0", "tile-x1", "tile-x2", "tile-x3", "tile-x0"]
    assert second["next"] is None
    assert [each["error_details"] for each in failed["tasks"]] == [
        "tile <tile-x0> holds no data",
        "tile <tile-x1> holds no data",
    ]
    assert invalid.status_code == 422


async def test_jobs_are_listed_by_state_and_page(jobs: JobStack) -> None:
    async with jobs.browser() as olga:
        ids = [
            (await submit(olga, "hello_world", n=1, message=f"list {number}"))
            for number in range(3)
        ]
        for each in ids:
            await ended(olga, each)
        query = {"status": "COMPLETED", "job_type": "hello_world", "limit": "2"}
        page = (await olga.get("/api/jobs", params=query)).json()
        rest = (await olga.get("/api/jobs", params={**query, "before": page["next"]})).json()
        none = (await olga.get("/api/jobs", params={"job_type": "other"})).json()
    listed = [each["job_id"] for each in (*page["jobs"], *rest["jobs"])]
    assert len(page["jobs"]) == 2 and set(ids) <= {*listed} | {*ids}
    assert len(set(listed)) == len(listed)
    assert none == {"jobs": [], "next": None}


async def test_the_life_of_a_job_comes_as_events(jobs: JobStack) -> None:
    async with served(jobs.app) as address, jobs.browser(address=address) as olga:
        job = await submit(olga, "hello_world", n=20, message="events")
        events: list[dict[str, Any]] = []
        async with olga.stream("GET", f"/api/jobs/{job}/events") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            assert stream.headers["cache-control"] == "no-store"
            async for event in events_of(stream):
                events.append(event)
        assert {each["event"] for each in events} == {"job"}
        assert events[-1]["data"]["status"] == "COMPLETED"
        last = events[-1]["id"]
        done = await olga.get(f"/api/jobs/{job}/events", headers={"last-event-id": last})
        older = await olga.get(f"/api/jobs/{job}/events", headers={"last-event-id": "other"})
    assert done.status_code == 204
    assert older.status_code == 200 and f"id: {last}" in older.text


async def test_a_client_that_follows_a_job_continues_at_the_next_gateway(jobs: JobStack) -> None:
    async with served(jobs.app) as address, jobs.browser(address=address) as olga:
        # A job of its own: none of its tasks fails.
        job = await submit(olga, "survey", ask=True, bad=-1)
        seen = ""
        async with olga.stream("GET", f"/api/jobs/{job}/events") as stream:
            async for event in events_of(stream):
                seen = event["id"]
                if event["data"]["status"] == "PARKED":
                    break
    statuses: list[str] = []
    async with served(jobs.app) as address, jobs.browser(address=address) as olga:
        headers = {"last-event-id": seen}
        async with olga.stream("GET", f"/api/jobs/{job}/events", headers=headers) as stream:
            answer = {"parameters": {"taken": "2024"}}
            assert (await olga.post(f"/api/jobs/{job}/answer", json=answer)).status_code == 202
            async for event in events_of(stream):
                assert event["id"] != seen
                statuses.append(event["data"]["status"])
    assert statuses[-1] == "COMPLETED"


async def test_a_webhook_is_delivered_logged_and_sent_again_without_its_secret(
    jobs: JobStack, caplog: pytest.LogCaptureFixture
) -> None:
    async with receiver(with_status("200 OK")) as site, jobs.browser() as olga:
        job = await submit(
            olga,
            "hello_world",
            n=1,
            message="webhook",
            webhook_url=f"http://127.0.0.1:{site.port}/hook?token=hidden",
            webhook_secret=SECRET,
        )
        await ended(olga, job)

        async def reported(times: int) -> bool:
            return len((await olga.get(f"/api/jobs/{job}/webhooks")).json()) == times

        await eventually(lambda: reported(1))
        again = await olga.post(f"/api/jobs/{job}/webhooks/0/send")
        await eventually(lambda: reported(2))
        log = await olga.get(f"/api/jobs/{job}/webhooks")
        missing = await olga.post(f"/api/jobs/{job}/webhooks/1/send")
        shown = [
            (await olga.get(path)).text
            for path in (f"/api/jobs/{job}", f"/api/jobs/{job}/tasks", "/api/jobs")
        ]
        history = await jobs.client.get_workflow_handle(f"job/{job}").fetch_history()
    assert again.status_code == 202 and missing.status_code == 404
    newest, oldest = log.json()
    assert (newest["redelivery"], oldest["redelivery"]) == (1, 0)
    assert newest["delivered"] and newest["status_code"] == 200
    assert newest["url"] == f"http://127.0.0.1:{site.port}/hook?..."
    (head, body), (again_head, again_body) = site.requests
    assert body == again_body and json.loads(body)["job_id"] == job
    assert _header(head, "webhook-id") == _header(again_head, "webhook-id")
    assert _header(head, "webhook-signature")
    for text in (*shown, log.text, history.to_json(), caplog.text):
        assert SECRET not in text


def _header(head: str, name: str) -> str:
    return next(line for line in head.lower().split("\r\n") if line.startswith(name))


async def test_a_job_is_found_by_the_beginning_of_its_id(jobs: JobStack) -> None:
    async with jobs.browser() as olga:
        job = await submit(olga, "hello_world", n=1, message="prefix")
        await ended(olga, job)
        assert (await olga.get(f"/api/jobs/{job[:10]}")).json()["job_id"] == job
        for unknown in ("0" * 64, "nothing", job[:4]):
            assert (await olga.get(f"/api/jobs/{unknown}")).status_code == 404


async def test_a_job_that_runs_is_cancelled(jobs: JobStack) -> None:
    async with jobs.browser() as olga:
        job = await submit(olga, "hello_world", n=5_000, message="cancelled")
        answer = await olga.delete(f"/api/jobs/{job}", params={"reason": "wrong area"})
        document = await ended(olga, job)
    assert answer.status_code == 202, answer.text
    assert document["status"] == "CANCELLED" and "wrong area" in document["error_details"]


@pytest.mark.parametrize("role", ["viewer", "mapper"])
async def test_jobs_of_no_organisation_are_for_operators(jobs: JobStack, role: str) -> None:
    async with jobs.browser() as olga:
        job = await submit(olga, "hello_world", n=1, message=f"not for a {role}")
    async with jobs.browser(role) as ida:
        listed = await ida.get("/api/jobs?limit=500")
        hidden = [await ida.get(f"/api/jobs/{job}{each}") for each in ("", "/events", "/tasks")]
        refused = [
            await ida.delete(f"/api/jobs/{job}"),
            await ida.post("/api/jobs", json={"job_type": "hello_world"}),
            await ida.post(f"/api/jobs/{job}/webhooks/0/send"),
        ]
    assert listed.status_code == 200 and job not in listed.text
    assert {each.status_code for each in hidden} == {404}
    assert {each.status_code for each in refused} == {403}
