"""Every call of queues and topic as a step: what it needs, and what it leaves."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from contracts.batches import CANARY, Announcement, Publication
from tests.support.batches.queues import KEY, OTHER, VISIBILITY, QueueSetup, document

Call = Callable[[QueueSetup], Awaitable[Any]]

LETTERS = [json.dumps(document("DOCUMENT_PROCESSED", documentId=name)) for name in "abc"]
ENDED = Publication(
    event_type=Announcement.BATCH_END_START, case_id=7, batch_id=3, message_id="batch/7/3/end"
)


async def nothing(_: QueueSetup) -> None:
    """There is nothing yet."""


async def dead_letters(bench: QueueSetup) -> None:
    await bench.queues.ensure_dead_letters(bench.names(), bench.plan, KEY.workflow_id)


async def queue(bench: QueueSetup) -> None:
    await bench.queues.ensure_queue(bench.names(), bench.plan, KEY.workflow_id, VISIBILITY)


async def both(bench: QueueSetup) -> None:
    await dead_letters(bench)
    await queue(bench)


async def with_other_settings(bench: QueueSetup) -> None:
    await bench.build(retention=3600)
    await bench.untag(bench.names().queue)


async def redrive_policy(bench: QueueSetup) -> None:
    await bench.queues.set_redrive_policy(bench.names(), bench.plan)


async def topic_policy(bench: QueueSetup) -> None:
    await bench.queues.allow_topic(bench.names(), bench.plan)


async def early(bench: QueueSetup) -> None:
    names = await bench.build()
    await bench.send(names.queue, LETTERS[0])
    await bench.send(names.queue, json.dumps(document(CANARY, messageId="1")))


async def proof(bench: QueueSetup) -> bool:
    return await bench.queues.has_proof(bench.names().queue, "1")


async def depth(bench: QueueSetup) -> Any:
    return await bench.queues.depth(bench.names().queue)


async def letters(bench: QueueSetup) -> None:
    names = await bench.build()
    for body in (*LETTERS, LETTERS[0]):
        await bench.queues.dead_letter(names, body, "broken", body)


async def redrive(bench: QueueSetup) -> Any:
    return await bench.queues.redrive(bench.names())


async def dead_letter(bench: QueueSetup) -> None:
    await bench.queues.dead_letter(bench.names(), LETTERS[0], "broken", "load/7/3/a")


async def delete(bench: QueueSetup) -> bool:
    return await bench.queues.delete_queue(bench.names().queue, KEY.workflow_id)


async def subscribe(bench: QueueSetup) -> None:
    await bench.topic.subscribe(bench.names(), bench.plan, KEY)


async def subscribed_to_another(bench: QueueSetup) -> None:
    names = await bench.build()
    await bench.topic.subscribe(names, bench.plan, OTHER)


async def unsubscribe(bench: QueueSetup) -> bool:
    return await bench.topic.unsubscribe(bench.names(), bench.plan)


async def publish(bench: QueueSetup) -> None:
    await bench.topic.publish(bench.plan, ENDED)


async def canary(bench: QueueSetup) -> None:
    await bench.topic.send_canary(bench.plan, KEY, "1")


async def subscriptions(bench: QueueSetup) -> Any:
    return await bench.subscriptions()


async def names_of_queues(bench: QueueSetup) -> list[str]:
    names = bench.names()
    kinds = {names.queue: "queue", names.dead_letters: "dead"}
    return [kinds[one.name] for one in await bench.found_queues()]


async def set_to(bench: QueueSetup) -> list[Any]:
    has = await bench.settings(bench.names().queue)
    return [
        has.retention == bench.plan.retention,
        has.dead_letters is not None,
        has.topic_arn is not None,
    ]


async def in_queue(bench: QueueSetup) -> list[str]:
    """What has come back; a message whose answer was lost may have done so twice."""
    return sorted(set(await bench.drain(bench.names().queue)))


async def in_dead_letters(bench: QueueSetup) -> list[str]:
    return sorted(set(await bench.drain(bench.names().dead_letters)))


@dataclass(frozen=True)
class Step:
    """A call of a port, what it needs, and what there is when it is done."""

    call: Call
    needs: Call = nothing
    left: Call = nothing
    leaves: Any = None


STEPS = {
    "ensure_dead_letters": Step(dead_letters, nothing, names_of_queues, ["dead"]),
    "ensure_queue": Step(queue, nothing, names_of_queues, ["queue"]),
    "adopt": Step(queue, with_other_settings, names_of_queues, ["queue", "dead"]),
    "set_redrive_policy": Step(redrive_policy, both, set_to, [True, True, False]),
    "allow_topic": Step(topic_policy, queue, set_to, [True, False, True]),
    "has_proof": Step(proof, early),
    "depth": Step(depth, both),
    "redrive": Step(redrive, letters, in_queue, sorted(LETTERS)),
    "dead_letter": Step(dead_letter, both, in_dead_letters, LETTERS[:1]),
    "delete_queue": Step(delete, both, names_of_queues, ["dead"]),
    "found": Step(names_of_queues, both),
    "subscribe": Step(subscribe, queue, subscriptions, [KEY]),
    "repair": Step(subscribe, subscribed_to_another, subscriptions, [KEY]),
    "unsubscribe": Step(unsubscribe, QueueSetup.subscribe, subscriptions, []),
    "publish": Step(publish),
    "send_canary": Step(canary),
    "found_subscriptions": Step(subscriptions, QueueSetup.subscribe),
}
