"""Event source mappings: what takes messages out of a queue and into a function."""

from collections.abc import AsyncIterator
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from adapters.aws.backoff import SHORTEST, backoff_proportional_to_elapsed
from adapters.aws.errors import Missing, aws, has_code
from adapters.ports import Denied, NotYet
from contracts.batches import BatchPlan, Names, Resource, key_of
from domain.batches.resources import FoundResource

if TYPE_CHECKING:
    from types_aiobotocore_lambda import LambdaClient
    from types_aiobotocore_lambda.type_defs import (
        EventSourceMappingConfigurationResponseTypeDef,
        EventSourceMappingConfigurationTypeDef,
    )

    EventSourceMapping = (
        EventSourceMappingConfigurationTypeDef | EventSourceMappingConfigurationResponseTypeDef
    )

RIGHTS_PAUSE: Final = 5.0
"""IAM takes some seconds to let a role do what its policy allows."""
_AT_REST: Final = frozenset({"Enabled", "Disabled"})
"""In any other state a mapping takes no change."""

_IDLE: Final = frozenset({"Disabling", "Disabled", "Deleting"})


class Mappings:
    """The mappings between a queue and a function; one of them is right."""

    def __init__(self, client: "LambdaClient") -> None:
        self._client = client

    async def attach(self, names: Names, plan: BatchPlan, queue_arn: str) -> None:
        """Make the mapping, or bring the one that is there to what it should be.

        Raises:
            NotYet: It is not `Enabled` yet.
        """
        wanted = _wanted(plan)
        there = [one for one in await self._between(names) if one.get("State") != "Deleting"]
        # Every attempt keeps the same one.
        there.sort(key=_id)
        for surplus in there[1:]:
            await self._delete(_id(surplus))
        if not there:
            mapping = await self._create(names, queue_arn, wanted)
        elif there[0].get("State") in _AT_REST and not _is_as(there[0], wanted):
            with aws(f"change the mapping of {names.function}"):
                mapping = await self._client.update_event_source_mapping(
                    UUID=_id(there[0]), **wanted
                )
        else:
            mapping = there[0]
        if mapping.get("State") != "Enabled":
            raise NotYet(
                f"the mapping of {names.function} is {mapping.get('State', 'without a state')}",
                backoff_proportional_to_elapsed(mapping.get("LastModified")),
            )

    async def is_feeding(self, names: Names) -> bool:
        """Whether a mapping invokes the function, or is about to."""
        return any(one.get("State") not in _IDLE for one in await self._between(names))

    async def detach(self, names: Names) -> bool:
        """Delete every mapping between the queue and the function.

        Raises:
            NotYet: One is in use, or not gone yet.
        """
        mappings = await self._between(names)
        for one in mappings:
            if one.get("State") != "Deleting":
                await self._delete(_id(one))
        if mappings and (left := await self._between(names)):
            raise NotYet(
                f"the mapping of {names.function} is {left[0].get('State', 'without a state')}",
                backoff_proportional_to_elapsed(left[0].get("LastModified")),
            )
        return bool(mappings)

    async def found(self, prefix: str) -> AsyncIterator[FoundResource]:
        """Mappings of every batch of an installation."""
        async for one in self._listed():
            key = key_of(prefix, _function_of(one))
            if key is not None:
                changed = one.get("LastModified")
                most = one.get("ScalingConfig", {}).get("MaximumConcurrency", "unlimited")
                yield FoundResource(
                    key=key,
                    resource=Resource.MAPPING,
                    name=_id(one),
                    made_at=None if changed is None else changed.astimezone(UTC),
                    details={
                        "state": one.get("State", "unknown"),
                        "batch size": str(one.get("BatchSize", "unknown")),
                        "concurrency": str(most),
                    },
                )

    async def _between(self, names: Names) -> list["EventSourceMapping"]:
        """Mappings between the queue and the function, also when one of the two is gone."""
        try:
            listed = [one async for one in self._listed(names.function)]
        except Missing:
            # A mapping outlives its function, and is not listed by that name then.
            listed = [one async for one in self._listed() if _function_of(one) == names.function]
        return [one for one in listed if _queue_of(one) == names.queue]

    async def _listed(self, function: str | None = None) -> AsyncIterator["EventSourceMapping"]:
        paginator = self._client.get_paginator("list_event_source_mappings")
        pages = (
            paginator.paginate() if function is None else paginator.paginate(FunctionName=function)
        )
        with aws("list event source mappings"):
            async for page in pages:
                for one in page["EventSourceMappings"]:
                    yield one

    async def _create(
        self, names: Names, queue_arn: str, wanted: dict[str, Any]
    ) -> "EventSourceMapping":
        try:
            with aws(f"map {names.queue} to {names.function}"):
                return await self._client.create_event_source_mapping(
                    EventSourceArn=queue_arn, FunctionName=names.function, **wanted
                )
        except Denied as error:
            if has_code(error, "ResourceConflictException"):
                # Another attempt was quicker, or an earlier mapping is not gone yet.
                raise NotYet(str(error), SHORTEST) from error
            if has_code(error, "InvalidParameterValueException") and "permission" in str(error):
                # Lambda has no code of its own for a role whose new policy has not arrived yet.
                missing = "; the role of the function needs deploy/lambda/role-policy.json"
                raise NotYet(f"{error}{missing}", RIGHTS_PAUSE) from error
            raise

    async def _delete(self, mapping: str) -> None:
        try:
            with aws(f"delete the mapping {mapping}"):
                await self._client.delete_event_source_mapping(UUID=mapping)
        except Missing:
            return


def _wanted(plan: BatchPlan) -> dict[str, Any]:
    return {
        "BatchSize": plan.batch_size,
        "ScalingConfig": {"MaximumConcurrency": plan.concurrency},
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "Enabled": True,
    }


def _is_as(mapping: "EventSourceMapping", wanted: dict[str, Any]) -> bool:
    has: dict[str, Any] = {**mapping, "Enabled": mapping.get("State") == "Enabled"}
    return all(has.get(name) == value for name, value in wanted.items())


def _id(mapping: "EventSourceMapping") -> str:
    return mapping.get("UUID", "")


def _queue_of(mapping: "EventSourceMapping") -> str:
    return mapping.get("EventSourceArn", "").rsplit(":", 1)[-1]


def _function_of(mapping: "EventSourceMapping") -> str:
    # arn:aws:lambda:REGION:ACCOUNT:function:NAME, and perhaps :QUALIFIER
    parts = mapping.get("FunctionArn", "").split(":")
    return parts[6] if len(parts) > 6 else ""
