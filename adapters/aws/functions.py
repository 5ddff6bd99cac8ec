"""The function of a batch, on Lambda."""

import base64
import hashlib
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

import httpx
from botocore.exceptions import ClientError

from adapters.aws.errors import Missing, aws, code_of
from adapters.aws.mappings import Mappings
from adapters.ports import (
    WORKFLOW_TAG,
    Denied,
    FoundResource,
    NotYet,
    SourceFunction,
    Unavailable,
)
from contracts.batches import BatchKey, BatchPlan, Names, Resource, key_of

if TYPE_CHECKING:
    from types_aiobotocore_lambda import LambdaClient
    from types_aiobotocore_lambda.type_defs import (
        FunctionConfigurationTypeDef,
        GetFunctionResponseTypeDef,
    )

PENDING_SECONDS: Final = 2.0
LARGEST_PACKAGE: Final = 50 * 1024 * 1024
"""Bytes of a zipped package that can be handed over with the call."""
DOWNLOAD_SECONDS: Final = 60
UNRESERVED: Final = 100
"""Concurrency that an account must leave unreserved."""
_COPIED: Final = (
    "Runtime",
    "Role",
    "Handler",
    "Description",
    "Timeout",
    "MemorySize",
    "PackageType",
    "Architectures",
    "TracingConfig",
    "EphemeralStorage",
    "DeadLetterConfig",
    "FileSystemConfigs",
    "LoggingConfig",
    "KMSKeyArn",
)


class AwsFunctions:
    """Functions cloned from a source, and the mappings that feed them."""

    def __init__(self, client: "LambdaClient") -> None:
        self._client = client
        self._mappings = Mappings(client)

    async def source(self, plan: BatchPlan) -> SourceFunction:
        """Facts of the function to clone."""
        with aws(f"read the source function {plan.source_function}"):
            config = await self._client.get_function_configuration(
                FunctionName=plan.source_function
            )
        role = config.get("Role", "").rsplit("/", 1)[-1]
        return SourceFunction(timeout=config.get("Timeout", 3), role=role)

    async def exists(self, function: str) -> bool:
        """Whether there is such a function."""
        try:
            with aws(f"look for {function}"):
                await self._client.get_function_configuration(FunctionName=function)
        except Missing:
            return False
        return True

    async def clone(self, names: Names, plan: BatchPlan, key: BatchKey, owner: str) -> None:
        """Make the batch's function from the source; done when it is active."""
        try:
            with aws(f"look for {names.function}"):
                found = await self._client.get_function(FunctionName=names.function)
        except Missing:
            await self._create(names, plan, key, owner)
            raise NotYet(f"{names.function} is being made", PENDING_SECONDS) from None
        if found.get("Tags", {}).get(WORKFLOW_TAG) != owner:
            raise Denied(
                f"a function {names.function} exists and is not tagged as made by {owner}: "
                "remove it, or choose another prefix"
            )
        _check_active(found.get("Configuration", {}))

    async def attach(self, names: Names, plan: BatchPlan) -> None:
        """Let the queue invoke the function: one mapping, reporting partial failures."""
        await self._mappings.attach(names, plan, await self._queue_arn(names))

    async def detach(self, names: Names) -> bool:
        """Delete every mapping of the function."""
        return await self._mappings.detach(names)

    async def reserve(self, names: Names, plan: BatchPlan) -> None:
        """Reserve the function's concurrency."""
        try:
            with aws(f"reserve {plan.concurrency} of concurrency for {names.function}"):
                await self._client.put_function_concurrency(
                    FunctionName=names.function, ReservedConcurrentExecutions=plan.concurrency
                )
        except Denied as error:
            raise Denied(
                f"{error}; AWS keeps {UNRESERVED} of an account's concurrency unreserved: lower "
                "the case's max_processing_daemons, or ask AWS for a higher quota"
            ) from error

    async def delete(self, function: str) -> bool:
        """Delete a function, and its reservation with it."""
        try:
            with aws(f"delete {function}"):
                await self._client.delete_function(FunctionName=function)
        except Missing:
            return False
        return True

    async def found(self, prefix: str) -> AsyncIterator[FoundResource]:
        """Functions, mappings and reservations of every batch of an installation."""
        pages = self._client.get_paginator("list_functions").paginate()
        with aws("list functions"):
            async for page in pages:
                for config in page.get("Functions", []):
                    key = key_of(prefix, config.get("FunctionName", ""))
                    if key is not None:
                        async for resource in self._describe(key, config):
                            yield resource
        async for resource in self._mappings.found(prefix):
            yield resource

    async def _describe(
        self, key: BatchKey, config: "FunctionConfigurationTypeDef"
    ) -> AsyncIterator[FoundResource]:
        name = config.get("FunctionName", "")
        try:
            with aws(f"read {name}"):
                found = await self._client.get_function(FunctionName=name)
        except Missing:
            return
        made_at = _moment(config.get("LastModified"))
        details = {
            "state": str(found.get("Configuration", {}).get("State", "unknown")),
            "memory": f"{config.get('MemorySize', 0)} MB",
            "timeout": f"{config.get('Timeout', 0)} s",
        }
        owner = found.get("Tags", {}).get(WORKFLOW_TAG, "")
        yield FoundResource(key, Resource.FUNCTION, name, made_at, owner, details)
        reserved = found.get("Concurrency", {}).get("ReservedConcurrentExecutions")
        if reserved is not None:
            reservation = {"reserved": str(reserved)}
            yield FoundResource(key, Resource.CONCURRENCY, name, made_at, None, reservation)

    async def _create(self, names: Names, plan: BatchPlan, key: BatchKey, owner: str) -> None:
        with aws(f"read the source function {plan.source_function}"):
            source = await self._client.get_function(FunctionName=plan.source_function)
        config = source.get("Configuration", {})
        wanted: dict[str, Any] = {name: config.get(name) for name in _COPIED}
        wanted["Layers"] = [layer.get("Arn", "") for layer in config.get("Layers", [])]
        wanted["VpcConfig"] = {
            name: value
            for name, value in config.get("VpcConfig", {}).items()
            if name in ("SubnetIds", "SecurityGroupIds") and value
        }
        wanted = {name: value for name, value in wanted.items() if value}
        try:
            with aws(f"make {names.function}"):
                await self._client.create_function(
                    **wanted,
                    FunctionName=names.function,
                    Code=cast(Any, await _code_of(source)),
                    Environment={"Variables": _variables(config, names, plan, key)},
                    Tags={WORKFLOW_TAG: owner},
                )
        except Denied as error:
            # Another attempt of this step was quicker.
            cause = error.__cause__
            if isinstance(cause, ClientError) and code_of(cause) == "ResourceConflictException":
                return
            raise

    async def _queue_arn(self, names: Names) -> str:
        with aws(f"read {names.function}"):
            config = await self._client.get_function_configuration(FunctionName=names.function)
        partition, region, account = (config["FunctionArn"].split(":")[at] for at in (1, 3, 4))
        return f"arn:{partition}:sqs:{region}:{account}:{names.queue}"


def _check_active(config: "Mapping[str, Any] | FunctionConfigurationTypeDef") -> None:
    state, reason = config.get("State", "Active"), config.get("StateReason", "no reason given")
    if state == "Pending":
        raise NotYet(f"the function is pending: {reason}", PENDING_SECONDS)
    if state == "Failed":
        raise Denied(f"AWS could not make the function: {reason}")


def _variables(
    config: "FunctionConfigurationTypeDef", names: Names, plan: BatchPlan, key: BatchKey
) -> dict[str, str]:
    return {
        **config.get("Environment", {}).get("Variables", {}),
        **plan.environment,
        "DOCFLOW_BATCH_PREFIX": plan.prefix,
        "DOCFLOW_CASE_ID": str(key.case_id),
        "DOCFLOW_BATCH_ID": str(key.batch_id),
        "DOCFLOW_BATCH_QUEUE": names.queue,
    }


async def _code_of(source: "GetFunctionResponseTypeDef") -> Mapping[str, Any]:
    code, config = source.get("Code", {}), source.get("Configuration", {})
    if image := code.get("ResolvedImageUri") or code.get("ImageUri"):
        return {"ImageUri": image}
    package = await _download(code.get("Location", ""), config.get("CodeSize", 0))
    expected = config.get("CodeSha256")
    if expected and base64.b64encode(hashlib.sha256(package).digest()).decode() != expected:
        raise Unavailable("the source function's package was not what its checksum says")
    return {"ZipFile": package}


async def _download(url: str, size: int) -> bytes:
    too_large = Denied(
        f"the source function's package is larger than {LARGEST_PACKAGE} bytes: "
        "use a container image"
    )
    if size > LARGEST_PACKAGE:
        raise too_large
    package = bytearray()
    try:
        async with (
            httpx.AsyncClient(timeout=DOWNLOAD_SECONDS) as client,
            client.stream("GET", url) as answer,
        ):
            answer.raise_for_status()
            async for piece in answer.aiter_bytes():
                package += piece
                if len(package) > LARGEST_PACKAGE:
                    raise too_large
    except httpx.HTTPError as error:
        # The address is a signed one: whoever reads it may fetch the package.
        raise Unavailable(
            f"the source function's package cannot be fetched: {type(error).__name__}"
        ) from error
    return bytes(package)


def _moment(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
