"""A receiver is told how a job has ended."""

import asyncio
import json
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from temporalio.api.sdk.v1 import WorkflowMetadata

from tests.support.jobs.installation import job_installation, order_of
from tests.support.jobs.receivers import Answer, receiver, with_status
from tests.support.waiting import eventually
from workflows.jobs.records import WebhookEnd, WebhookInput, WebhookReceiver, webhook_delivery_id
from workflows.jobs.retention_and_webhooks import FIRST_PAUSE
from workflows.jobs.runs import JobResult


def failing_first(times: int) -> Answer:
    """Fails at first, then takes what it is sent."""
    left = [with_status("503 Busy")] * times

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await (left.pop() if left else with_status("200 OK"))(reader, writer)

    return answer


async def test_a_receiver_that_fails_is_tried_again_and_shown_how_often(
    server: Any, run_worker: Any, tmp_path: Path
) -> None:
    async with (
        receiver(failing_first(2)) as site,
        job_installation(server.client, tmp_path, run_worker) as jobs,
    ):
        hook = WebhookReceiver(url=f"http://127.0.0.1:{site.port}/hook", retry_count=3)
        order = order_of(parameters={"n": 1, "message": "busy"}, webhooks=(hook,))
        await jobs.run(order)
        delivery = server.client.get_workflow_handle(
            f"job-webhook/{order.job_id}/1/0", result_type=WebhookEnd
        )

        async def shows(text: str) -> bool:
            found = await delivery.query(
                "__temporal_workflow_metadata", result_type=WorkflowMetadata
            )
            return text in found.current_details

        for number in (1, 2):
            await eventually(partial(shows, f"{number} of 4 attempts were made: answered 503"))
            await server.skip(delivery, timedelta(seconds=FIRST_PAUSE * number))
        end = await delivery.result()
        log = await jobs.opened.webhooks.log.deliveries(order.job_id)
    assert end == WebhookEnd(delivered=True, attempts=3)
    assert [each.order.delivery_attempt for each in log] == [3, 2, 1]
    assert len({head.split("webhook-id: ")[1].split()[0] for head, _ in site.requests}) == 1


async def test_the_end_of_a_job_is_delivered_once_to_each_receiver(
    server: Any, run_worker: Any, tmp_path: Path
) -> None:
    async with (
        receiver(with_status("200 OK")) as first,
        receiver(with_status("410 Gone")) as second,
        job_installation(server.client, tmp_path, run_worker) as jobs,
    ):
        receivers = tuple(
            WebhookReceiver(url=f"http://127.0.0.1:{site.port}/hook") for site in (first, second)
        )
        order = order_of(parameters={"n": 2, "message": "webhooks"}, webhooks=receivers)
        result: JobResult = await jobs.run(order)
        ends = [
            await server.client.get_workflow_handle(
                webhook_delivery_id(
                    WebhookInput(
                        job_id=order.job_id,
                        attempt=1,
                        status=result.status,
                        ended_at=(await jobs.record(order)).updated_at,
                        receiver=each,
                        number=number,
                    )
                ),
                result_type=WebhookEnd,
            ).result()
            for number, each in enumerate(receivers)
        ]
        log = await jobs.opened.webhooks.log.deliveries(order.job_id)
    assert [(end.delivered, end.attempts) for end in ends] == [(True, 1), (False, 1)]
    sent = json.loads(first.requests[0][1])
    assert sent["status"] == "completed" and sent["final_results"] == {"greetings": 2, "replies": 2}
    assert len(first.requests) == len(second.requests) == 1
    assert sorted(entry.order.number for entry in log) == [0, 1]
