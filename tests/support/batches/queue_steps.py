"""Every call of queues and topic as a step: what it needs, and what it leaves."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tests.support.batches.queues import KEY, OTHER, VISIBILITY, QueueSetup, document
from workflows.batches.events import Announcement, Publication
from workflows.batches.loads import CANARY

Call = Callable[[QueueSetup], Awaitable[Any]]

LETTERS = [json.dumps(document("DOCUMENT_PROCESSED", documentId=name)) for name in "abc"]
ENDED = Publication(
    event_type=Announcement.BATCH_END_START, case_id=7, batch_id=3, message_id="batch/7/3/end"
)


async def nothing(_: QueueSetup) -> None:
    """There is nothing yet."""


async def dead_letters(setup: QueueSetup) -> None:
    await setup.queues.ensure_dead_letters(setup.names(), setup.plan, KEY.workflow_id)


async def queue(setup: QueueSetup) -> None:
    await setup.queues.ensure_queue(setup.names(), setup.plan, KEY.workflow_id, VISIBILITY)


async def both(setup: QueueSetup) -> None:
    await dead_letters(setup)
    await queue(setup)


async def with_other_settings(setup: QueueSetup) -> None:
    await setup.build(retention=3600)
    await setup.untag(setup.names().queue)


async def redrive_policy(setup: QueueSetup) -> None:
    await setup.queues.set_redrive_policy(setup.names(), setup.plan)


async def topic_policy(setup: QueueSetup) -> None:
    await setup.queues.allow_topic(setup.names(), setup.plan)


async def early(setup: QueueSetup) -> None:
    names = await setup.build()
    await setup.send(names.queue, LETTERS[0])
    await setup.send(names.queue, json.dumps(document(CANARY, messageId="1")))


async def proof(setup: QueueSetup) -> bool:
    return await setup.queues.has_proof(setup.names().queue, "1")


async def depth(setup: QueueSetup) -> Any:
    return await setup.queues.depth(setup.names().queue)


async def letters(setup: QueueSetup) -> None:
    names = await setup.build()
    for body in (*LETTERS, LETTERS[0]):
        await setup.queues.dead_letter(names, body, "broken", body)


async def redrive(setup: QueueSetup) -> Any:
    return await setup.queues.redrive(setup.names())


async def dead_letter(setup: QueueSetup) -> None:
    await setup.queues.dead_letter(setup.names(), LETTERS[0], "broken", "load/7/3/a")


async def look(setup: QueueSetup) -> Any:
    return sorted(one.body for one in await setup.queues.dead_letters(setup.names(), 10))


async def delete(setup: QueueSetup) -> bool:
    return await setup.queues.delete_queue(setup.names().queue, KEY.workflow_id)


async def subscribe(setup: QueueSetup) -> None:
    await setup.topic.subscribe(setup.names(), setup.plan, KEY)


async def subscribed_to_another(setup: QueueSetup) -> None:
    names = await setup.build()
    await setup.topic.subscribe(names, setup.plan, OTHER)


async def unsubscribe(setup: QueueSetup) -> bool:
    return await setup.topic.unsubscribe(setup.names(), setup.plan)


async def publish(setup: QueueSetup) -> None:
    await setup.topic.publish(setup.plan, ENDED)


async def canary(setup: QueueSetup) -> None:
    await setup.topic.send_canary(setup.plan, KEY, "1")


async def subscriptions(setup: QueueSetup) -> Any:
    return await setup.subscriptions()


async def names_of_queues(setup: QueueSetup) -> list[str]:
    names = setup.names()
    kinds = {names.queue: "queue", names.dead_letters: "dead"}
    return [kinds[one.name] for one in await setup.found_queues()]


async def set_to(setup: QueueSetup) -> list[Any]:
    has = await setup.settings(setup.names().queue)
    return [
        has.retention == setup.plan.retention,
        has.dead_letters is not None,
        has.topic_arn is not None,
    ]


async def in_queue(setup: QueueSetup) -> list[str]:
    """What has come back; a message whose answer was lost may have done so twice."""
    return sorted(set(await setup.drain(setup.names().queue)))


async def in_dead_letters(setup: QueueSetup) -> list[str]:
    return sorted(set(await setup.drain(setup.names().dead_letters)))


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
    "dead_letters": Step(look, letters),
    "delete_queue": Step(delete, both, names_of_queues, ["dead"]),
    "found": Step(names_of_queues, both),
    "subscribe": Step(subscribe, queue, subscriptions, [KEY]),
    "repair": Step(subscribe, subscribed_to_another, subscriptions, [KEY]),
    "unsubscribe": Step(unsubscribe, QueueSetup.subscribe, subscriptions, []),
    "publish": Step(publish),
    "send_canary": Step(canary),
    "found_subscriptions": Step(subscriptions, QueueSetup.subscribe),
}
