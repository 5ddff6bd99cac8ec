"""A receiver is told how a job has ended."""

import json
from pathlib import Path
from typing import Any

from contracts.jobs import (
    JobResult,
    WebhookEnd,
    WebhookOrder,
    WebhookReceiver,
    webhook_delivery_id,
)
from tests.support.jobs.installation import job_installation, order_of
from tests.support.jobs.receivers import receiver, with_status


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
                    WebhookOrder(
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
