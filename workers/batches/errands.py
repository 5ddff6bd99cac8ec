"""What people ask of the workers of batches, because only these have the keys of the cloud."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from activities.batches.provisioning import BatchOrphans
from activities.batches.records import ExistingResource, ExistingResources
from workers.batches.messages import read_case_event
from workers.batches.resources import BatchResources
from workers.batches.service import BatchRuns, beginning_of, refuse_in_vain, unloaded
from workers.batches.settings import read_timings
from workers.shared.register import Context
from workers.shared.services.bodies import RefusedMessage
from workers.shared.services.errors import InvalidRequest, NotFound
from workflows.batches.names import BatchKey, names_of
from workflows.batches.runs import SweepInput
from workflows.batches.validation import FoundResource, is_strange, is_young, remaining_dlq


async def existing(cloud: BatchResources, key: BatchKey) -> ExistingResources:
    """Look for everything of a batch.

    Args:
        cloud: Tables, Temporal and AWS.
        key: The batch.

    Raises:
        PortError: The cloud does not answer.
    """
    orphans = BatchOrphans(
        cloud.queues, cloud.topic, cloud.functions, cloud.grants, cloud.runs, cloud.plan
    )
    found = [one async for one in orphans.everything() if one.key == key]
    # Asked after the listing: a run that is open now may have made what was listed.
    is_open = await cloud.runs.is_open(key.workflow_id)
    now = datetime.now(UTC)
    state, sentence = _claim(key, found, is_open=is_open, now=now)
    shown = [
        ExistingResource(
            resource=one.resource,
            name=one.name,
            made_at=one.made_at,
            owner=one.owner,
            details=dict(one.details),
        )
        for one in found
    ]
    return ExistingResources(state=state, sentence=sentence, resources=shown, at=now)


def _claim(
    key: BatchKey, found: Sequence[FoundResource], *, is_open: bool, now: datetime
) -> tuple[str, str]:
    """Its owner, by the rules of the sweeper: in a word, and for people."""
    if not found:
        return "gone", f"nothing of {key} exists"
    if is_open:
        return "in use", f"in use by {key.workflow_id}"
    if any(is_strange(one) for one in found):
        return "foreign", f"not all of it was made by {key.workflow_id}: nothing is removed"
    alone = remaining_dlq(found)
    if alone is not None and alone.details.get("messages") != "0":
        return (
            "kept",
            f"kept for its dead letters: `docflow batch redrive {key.case_id}/{key.batch_id}`",
        )
    grace = SweepInput().grace
    if is_young(found, now, timedelta(seconds=grace)):
        soon = f"the sweeper removes it when it is {grace // 60} min old"
        return "orphaned", f"orphaned: no run of {key} is open; {soon}"
    return "orphaned", f"orphaned: no run of {key} is open; the sweeper removes it"


async def start(context: Context, own: BatchResources, given: Mapping[str, Any], by: str) -> Any:
    """Deliver an event to its case, as the queue of case events does.

    Raises:
        InvalidRequest: It is no event.
        NotFound: There is no such batch.
        WrongState: It would change nothing.
        TemporalUnavailable: The case has not accepted it.
    """
    try:
        event = read_case_event(json.dumps(given).encode())
    except RefusedMessage as refused:
        raise InvalidRequest(refused.description) from refused
    runs = BatchRuns(context.client, context.environment)
    await refuse_in_vain(runs, own.store, event)
    case = await runs.send(event, read_timings(context.environment))
    return {"id": event.key.workflow_id, "case": case, "event": event.event_type}


async def resources(
    context: Context, own: BatchResources, given: Mapping[str, Any], by: str
) -> Any:
    """What exists of a batch in the cloud."""
    return (await existing(own, _known(given))).model_dump(mode="json")


async def failed_messages(
    context: Context, own: BatchResources, given: Mapping[str, Any], by: str
) -> Any:
    """Messages of a batch that are not loaded, with the beginnings of their bodies.

    Raises:
        NotFound: There is no such batch.
    """
    key = _known(given)
    if await own.store.get(key) is None:
        raise NotFound(f"there is no {key}")
    names = names_of(own.plan.prefix, key)
    found = await unloaded(own.queues, own.store, key, names, given["limit"])
    return [
        each.model_copy(update={"body": beginning_of(each.body)}).model_dump(mode="json")
        for each in found[: given["limit"]]
    ]


def _known(given: Mapping[str, Any]) -> BatchKey:
    return BatchKey(case_id=given["case_id"], batch_id=given["batch_id"])
