"""The function of a batch, on Lambda."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from adapters.aws.arns import queue_arn
from adapters.aws.backoff import SHORTEST, backoff_proportional_to_elapsed
from adapters.aws.errors import Missing, aws, has_code
from adapters.aws.mappings import Mappings
from adapters.aws.packages import code_of
from adapters.ports import Denied, NoRoom, NotYet, SourceFunction
from contracts.batches import API_KEY, API_KEY_SECRET, BatchKey, BatchPlan, Names, Resource, key_of
from domain.batches.resources import WORKFLOW_TAG, FoundResource

if TYPE_CHECKING:
    from types_aiobotocore_lambda import LambdaClient
    from types_aiobotocore_lambda.type_defs import (
        FunctionConfigurationResponseTypeDef,
        FunctionConfigurationTypeDef,
    )

    Configuration = FunctionConfigurationTypeDef | FunctionConfigurationResponseTypeDef

PACKAGES_AT_ONCE: Final = 2
"""Packages in memory at the same time; each may have 50 MB, and more on its way to AWS."""
UNRESERVED: Final = 100
"""Concurrency that an account must leave unreserved."""
_ALIKE: Final = (
    "Architectures",
    "DeadLetterConfig",
    "Description",
    "EphemeralStorage",
    "FileSystemConfigs",
    "Handler",
    "KMSKeyArn",
    # With it goes the log group: the source's, so that no batch leaves one behind.
    "LoggingConfig",
    "MemorySize",
    "PackageType",
    "Role",
    "Runtime",
    "Timeout",
    "TracingConfig",
)
"""Settings that a function and its clone have in common."""
_NETWORK: Final = ("SubnetIds", "SecurityGroupIds", "Ipv6AllowedForDualStack")


class AwsFunctions:
    """Functions cloned from a source, and the mappings that feed them."""

    def __init__(self, client: "LambdaClient") -> None:
        self._client = client
        self._mappings = Mappings(client)
        self._room = asyncio.Semaphore(PACKAGES_AT_ONCE)

    async def source(self, plan: BatchPlan) -> SourceFunction:
        """Facts of the function to clone.

        Raises:
            Denied: There is none of that name.
        """
        with aws(f"read the source function {plan.source_function}"):
            config = await self._client.get_function_configuration(
                FunctionName=plan.source_function
            )
        return SourceFunction(config["Timeout"], role=config["Role"].rsplit("/", 1)[-1])

    async def exists(self, function: str) -> bool:
        """Whether there is such a function."""
        try:
            with aws(f"look for the function {function}"):
                await self._client.get_function_configuration(FunctionName=function)
        except Missing:
            return False
        return True

    async def clone(self, names: Names, plan: BatchPlan, key: BatchKey, owner: str) -> None:
        """Make the batch's function from the source.

        Raises:
            NotYet: It is not `Active` yet.
            Denied: It failed to become active, or its name is another owner's, or AWS refuses.
        """
        function = await self._own(names.function, owner)
        if function is None:
            function = await self._make(names, plan, key, owner)
        match function.get("State", "Active"):
            case "Pending":
                raise NotYet(
                    f"the function {names.function} is pending",
                    backoff_proportional_to_elapsed(_moment(function.get("LastModified"))),
                )
            case "Failed":
                raise Denied(
                    f"AWS could not make the function {names.function}: "
                    f"{function.get('StateReason', 'no reason given')}"
                )
            case _:
                return

    async def attach(self, names: Names, plan: BatchPlan) -> None:
        """Let the queue invoke the function: one mapping, reporting partial failures.

        Raises:
            NotYet: The mapping is not `Enabled` yet.
        """
        await self._mappings.attach(names, plan, queue_arn(plan.topic_arn, names.queue))

    async def is_fed(self, names: Names) -> bool:
        """Whether a mapping feeds the function; false: none does, or someone has disabled it."""
        return await self._mappings.is_feeding(names)

    async def detach(self, names: Names) -> bool:
        """Delete every mapping between the queue and the function.

        Raises:
            NotYet: A mapping is in use; or it is not gone yet.
        """
        return await self._mappings.detach(names)

    async def reserve(self, names: Names, plan: BatchPlan) -> None:
        """Reserve the function's concurrency.

        Raises:
            NoRoom: Less than 100 would stay unreserved.
        """
        try:
            with aws(f"reserve a concurrency of {plan.concurrency} for {names.function}"):
                await self._client.put_function_concurrency(
                    FunctionName=names.function, ReservedConcurrentExecutions=plan.concurrency
                )
        except Denied as error:
            if not has_code(error, "InvalidParameterValueException"):
                raise
            raise NoRoom(
                f"{error}: {UNRESERVED} of an account's concurrency must stay unreserved; lower "
                "max_processing_daemons of the case, let other batches end, or ask AWS for more"
            ) from error

    async def delete(self, function: str, owner: str) -> bool:
        """Delete a function, and its reservation with it.

        Raises:
            Denied: It belongs to another owner.
        """
        if await self._own(function, owner) is None:
            return False
        try:
            with aws(f"delete the function {function}"):
                await self._client.delete_function(FunctionName=function)
        except Missing:
            return False
        return True

    async def found(self, prefix: str) -> AsyncIterator[FoundResource]:
        """Functions, mappings and reservations of every batch of an installation."""
        pages = self._client.get_paginator("list_functions").paginate()
        with aws("list functions"):
            async for page in pages:
                for config in page["Functions"]:
                    name = config.get("FunctionName", "")
                    key = key_of(prefix, name)
                    if key is not None:
                        for resource in await self._describe(key, name):
                            yield resource
        async for resource in self._mappings.found(prefix):
            yield resource

    async def _describe(self, key: BatchKey, name: str) -> list[FoundResource]:
        """A function and its reservation; nothing when it was deleted since it was listed."""
        try:
            with aws(f"read the function {name}"):
                function = await self._client.get_function(FunctionName=name)
        except Missing:
            return []
        config: Mapping[str, Any] = function["Configuration"]
        made_at = _moment(config.get("LastModified"))
        found = [
            FoundResource(
                key=key,
                resource=Resource.FUNCTION,
                name=name,
                made_at=made_at,
                # A function without the tag is not ours, however it is called.
                owner=function.get("Tags", {}).get(WORKFLOW_TAG, ""),
                details={
                    "state": config.get("State", "Active"),
                    "memory": f"{config.get('MemorySize')} MB",
                    "timeout": f"{config.get('Timeout')} s",
                },
            )
        ]
        reserved = function.get("Concurrency", {}).get("ReservedConcurrentExecutions")
        if reserved is not None:
            details = {"reserved": str(reserved)}
            found.append(FoundResource(key, Resource.CONCURRENCY, name, made_at, details=details))
        return found

    async def _own(self, name: str, owner: str) -> "Configuration | None":
        """The function of that name, if there is one.

        Raises:
            Denied: It is not this batch's own.
        """
        try:
            with aws(f"look for the function {name}"):
                found = await self._client.get_function(FunctionName=name)
        except Missing:
            return None
        others = found.get("Tags", {}).get(WORKFLOW_TAG)
        if others != owner:
            raise Denied(
                f"a function {name} exists and is tagged with {others!r}, not {owner!r}: "
                "remove it, or choose another prefix"
            )
        return found["Configuration"]

    async def _make(
        self, names: Names, plan: BatchPlan, key: BatchKey, owner: str
    ) -> "Configuration":
        with aws(f"read the source function {plan.source_function}"):
            source = await self._client.get_function(FunctionName=plan.source_function)
        alike = _alike(source["Configuration"])
        if API_KEY in _variables(source["Configuration"]):
            raise Denied(
                f"the source function {plan.source_function} has {API_KEY} in its environment, "
                "where everyone who may read functions reads it: keep the key in Secrets Manager, "
                f"let the function's role read it there, put {API_KEY_SECRET} with the ARN of the "
                f"secret in the place of {API_KEY}, and try again"
            )
        variables = {
            **_variables(source["Configuration"]),
            **plan.environment,
            "DOCFLOW_BATCH_PREFIX": plan.prefix,
            "DOCFLOW_CASE_ID": str(key.case_id),
            "DOCFLOW_BATCH_ID": str(key.batch_id),
        }
        try:
            async with self._room:
                code = await code_of(source)
                with aws(f"make the function {names.function}"):
                    return await self._client.create_function(
                        FunctionName=names.function,
                        Code=code,
                        Environment={"Variables": variables},
                        Tags={**plan.tags, WORKFLOW_TAG: owner},
                        **alike,
                    )
        except Denied as error:
            if has_code(error, "ResourceConflictException"):
                raise NotYet(f"another attempt makes {names.function}", SHORTEST) from error
            raise


def _alike(config: Mapping[str, Any]) -> dict[str, Any]:
    """What the clone has in common with its source, beside its code and environment."""
    network: Mapping[str, Any] = config.get("VpcConfig") or {}
    alike: dict[str, Any] = {name: config.get(name) for name in _ALIKE} | {
        "Layers": [layer["Arn"] for layer in config.get("Layers") or ()],
        "ImageConfig": (config.get("ImageConfigResponse") or {}).get("ImageConfig"),
        "VpcConfig": {name: network[name] for name in _NETWORK if network.get(name)},
    }
    return {name: value for name, value in alike.items() if value}


def _variables(config: "FunctionConfigurationTypeDef") -> Mapping[str, str]:
    environment = config.get("Environment", {})
    if problem := environment.get("Error"):
        raise Denied(
            "the environment of the source function cannot be read: "
            f"{problem.get('Message', '')} ({problem.get('ErrorCode', '')})"
        )
    return environment.get("Variables", {})


def _moment(text: str | None) -> datetime | None:
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
