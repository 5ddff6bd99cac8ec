"""Event source mappings: what takes messages out of a queue and into a function."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from adapters.aws.errors import Missing, aws, code_of
from adapters.ports import Denied, FoundResource, NotYet
from contracts.batches import BatchPlan, Names, Resource, key_of

if TYPE_CHECKING:
    from types_aiobotocore_lambda import LambdaClient
    from types_aiobotocore_lambda.type_defs import EventSourceMappingConfigurationTypeDef

PAUSE: Final = 2.0
"""Seconds until a mapping is looked at again."""
RIGHTS_PAUSE: Final = 5.0
"""IAM takes some seconds to let a role do what its policy allows."""
MOST: Final = 1000


class Mappings:
    """The mappings between a queue and a function; one of them is right."""

    def __init__(self, client: "LambdaClient") -> None:
        self._client = client

    async def attach(self, names: Names, plan: BatchPlan, queue_arn: str) -> None:
        """Make the mapping, or wait for the one that is there; surplus ones are removed."""
        mappings = [one async for one in self._of(names) if one.get("State") != "Deleting"]
        if not mappings:
            await self._create(names, plan, queue_arn)
            raise NotYet(f"the mapping of {names.function} is being made", PAUSE)
        for surplus in mappings[1:]:
            await self._delete(surplus.get("UUID", ""))
        state = mappings[0].get("State", "")
        if state != "Enabled":
            raise NotYet(f"the mapping of {names.function} is {state or 'unknown'}", PAUSE)

    async def detach(self, names: Names) -> bool:
        """Delete every mapping of the function.

        Raises:
            NotYet: One is not gone yet.
        """
        mappings = [one async for one in self._of(names)]
        for one in mappings:
            if one.get("State") != "Deleting":
                await self._delete(one.get("UUID", ""))
        if mappings and [one async for one in self._of(names)]:
            raise NotYet(f"the mapping of {names.function} is being deleted", PAUSE)
        return bool(mappings)

    async def found(self, prefix: str) -> AsyncIterator[FoundResource]:
        """Mappings of every batch of an installation."""
        pages = self._client.get_paginator("list_event_source_mappings").paginate()
        with aws("list event source mappings"):
            async for page in pages:
                for one in page.get("EventSourceMappings", []):
                    key = key_of(prefix, one.get("FunctionArn", "").rsplit(":", 1)[-1])
                    if key is not None:
                        details = {"state": one.get("State", "unknown")}
                        name = one.get("UUID", "")
                        yield FoundResource(key, Resource.MAPPING, name, details=details)

    async def _of(self, names: Names) -> AsyncIterator["EventSourceMappingConfigurationTypeDef"]:
        pages = self._client.get_paginator("list_event_source_mappings").paginate(
            FunctionName=names.function
        )
        try:
            with aws(f"list mappings of {names.function}"):
                async for page in pages:
                    for one in page.get("EventSourceMappings", []):
                        yield one
        except Missing:
            return

    async def _create(self, names: Names, plan: BatchPlan, queue_arn: str) -> None:
        wanted: dict[str, Any] = {
            "BatchSize": plan.batch_size,
            "ScalingConfig": {"MaximumConcurrency": min(plan.concurrency, MOST)},
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "Enabled": True,
        }
        try:
            with aws(f"map {names.queue} to {names.function}"):
                await self._client.create_event_source_mapping(
                    EventSourceArn=queue_arn, FunctionName=names.function, **wanted
                )
        except Denied as error:
            cause = error.__cause__
            code = code_of(cause) if isinstance(cause, ClientError) else ""
            if code == "ResourceConflictException":
                return
            if code == "InvalidParameterValueException" and "permission" in str(error).lower():
                # Lambda gives no code of its own for a role whose new policy has not arrived yet.
                raise NotYet(str(error), RIGHTS_PAUSE) from error
            raise

    async def _delete(self, mapping: str) -> None:
        try:
            with aws(f"delete mapping {mapping}"):
                await self._client.delete_event_source_mapping(UUID=mapping)
        except Missing:
            return
