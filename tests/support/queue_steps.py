"""Every call of queues and topic as a step: what it needs, and what it leaves."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from contracts.batches import CANARY, Announcement, Publication
from tests.support.queue_bench import KEY, OTHER, VISIBILITY, Bench, document

Call = Callable[[Bench], Awaitable[Any]]

LETTERS = [json.dumps(document("DOCUMENT_PROCESSED", documentId=name)) for name in "abc"]
ENDED = Publication(
    event_type=Announcement.BATCH_END_START, case_id=7, batch_id=3, message_id="batch/7/3/end"
)


async def nothing(_: Bench) -> None:
    """There is nothing yet."""


async def dead_letters(bench: Bench) -> None:
    await bench.queues.ensure_dead_letters(bench.names(), bench.plan, KEY.workflow_id)


async def queue(bench: Bench) -> None:
    await bench.queues.ensure_queue(bench.names(), bench.plan, KEY.workflow_id, VISIBILITY)


async def both(bench: Bench) -> None:
    await dead_letters(bench)
    await queue(bench)


async def with_other_settings(bench: Bench) -> None:
    await bench.build(retention=3600)
    await bench.untag(bench.names().queue)


async def redrive_policy(bench: Bench) -> None:
    await bench.queues.set_redrive_policy(bench.names(), bench.plan)


async def topic_policy(bench: Bench) -> None:
    await bench.queues.allow_topic(bench.names(), bench.plan)


async def early(bench: Bench) -> None:
    names = await bench.build()
    await bench.send(names.queue, LETTERS[0])
    await bench.send(names.queue, json.dumps(document(CANARY, messageId="1")))


async def proof(bench: Bench) -> bool:
    return await bench.queues.has_proof(bench.names().queue, "1")


async def depth(bench: Bench) -> Any:
    return await bench.queues.depth(bench.names().queue)


async def letters(bench: Bench) -> None:
    names = await bench.build()
    for body in (*LETTERS, LETTERS[0]):
        await bench.queues.dead_letter(names, body, "broken", body)


async def redrive(bench: Bench) -> Any:
    return await bench.queues.redrive(bench.names())


async def dead_letter(bench: Bench) -> None:
    await bench.queues.dead_letter(bench.names(), LETTERS[0], "broken", "load/7/3/a")


async def delete(bench: Bench) -> bool:
    return await bench.queues.delete_queue(bench.names().queue, KEY.workflow_id)


async def subscribe(bench: Bench) -> None:
    await bench.topic.subscribe(bench.names(), bench.plan, KEY)


async def subscribed_to_another(bench: Bench) -> None:
    names = await bench.build()
    await bench.topic.subscribe(names, bench.plan, OTHER)


async def unsubscribe(bench: Bench) -> bool:
    return await bench.topic.unsubscribe(bench.names(), bench.plan)


async def publish(bench: Bench) -> None:
    await bench.topic.publish(bench.plan, ENDED)


async def canary(bench: Bench) -> None:
    await bench.topic.send_canary(bench.plan, KEY, "1")


async def subscriptions(bench: Bench) -> Any:
    return await bench.subscriptions()


async def names_of_queues(bench: Bench) -> list[str]:
    names = bench.names()
    kinds = {names.queue: "queue", names.dead_letters: "dead"}
    return [kinds[one.name] for one in await bench.found_queues()]


async def set_to(bench: Bench) -> list[Any]:
    has = await bench.settings(bench.names().queue)
    return [
        has.retention == bench.plan.retention,
        has.dead_letters is not None,
        has.topic_arn is not None,
    ]


async def in_queue(bench: Bench) -> list[str]:
    """What has come back; a message whose answer was lost may have done so twice."""
    return sorted(set(await bench.drain(bench.names().queue)))


async def in_dead_letters(bench: Bench) -> list[str]:
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
    "unsubscribe": Step(unsubscribe, Bench.subscribe, subscriptions, []),
    "publish": Step(publish),
    "send_canary": Step(canary),
    "found_subscriptions": Step(subscriptions, Bench.subscribe),
}
