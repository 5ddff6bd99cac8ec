"""The function of a batch, on Lambda: its code, its rights, and what brings it messages.

What functions of batches may do: inline policies of their role, on IAM.

What every function does with the queues of its batch is allowed by a policy that the owner of the
role makes once (deploy/lambda/role-policy.json). Batches that releases before began have one each.
"""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import httpx

from adapters.aws.session import (
    SHORTEST,
    Missing,
    aws,
    backoff_proportional_to_elapsed,
    has_code,
    queue_arn,
)
from adapters.ports.batches import SourceFunction
from adapters.ports.errors import Denied, NoRoom, NotYet, Unavailable
from workflows.batches.names import (
    API_KEY,
    API_KEY_SECRET,
    BatchKey,
    BatchPlan,
    Names,
    Resource,
    key_of,
)
from workflows.batches.validation import WORKFLOW_TAG, FoundResource

if TYPE_CHECKING:
    from types_aiobotocore_iam import IAMClient
    from types_aiobotocore_lambda.type_defs import FunctionCodeTypeDef, GetFunctionResponseTypeDef


LARGEST_PACKAGE: Final = 50 * 1024 * 1024
"""Bytes of a zipped package that can be passed with a call."""
DOWNLOAD_SECONDS: Final = 60


async def code_of(
    function: "GetFunctionResponseTypeDef", transport: httpx.AsyncBaseTransport | None = None
) -> "FunctionCodeTypeDef":
    """What `CreateFunction` is to be given.

    Args:
        function: The answer of `GetFunction`; the address in it works for ten minutes.
        transport: Takes the place of the network.

    Raises:
        Denied: The package is too large to be passed on.
        Unavailable: It cannot be fetched, or does not match its checksum.
    """
    code, config = function.get("Code", {}), function.get("Configuration", {})
    if image := code.get("ResolvedImageUri") or code.get("ImageUri"):
        return {"ImageUri": image}
    if config.get("CodeSize", 0) > LARGEST_PACKAGE:
        raise _too_large()
    package = await _fetch(code.get("Location", ""), transport)
    checksum = base64.b64encode(hashlib.sha256(package).digest()).decode()
    if checksum != config.get("CodeSha256"):
        raise Unavailable("the package of the source function does not match its checksum")
    return {"ZipFile": package}


async def _fetch(url: str, transport: httpx.AsyncBaseTransport | None) -> bytes:
    package = bytearray()
    try:
        async with (
            asyncio.timeout(DOWNLOAD_SECONDS),
            httpx.AsyncClient(transport=transport) as client,
            client.stream("GET", url) as answer,
        ):
            answer.raise_for_status()
            async for piece in answer.aiter_bytes():
                package += piece
                if len(package) > LARGEST_PACKAGE:
                    raise _too_large()
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
        # The address is signed: every reader of it may fetch the package.
        raise Unavailable(
            f"the package of the source function cannot be fetched: {_reason(error)}"
        ) from None
    return bytes(package)


def _reason(error: Exception) -> str:
    if isinstance(error, httpx.HTTPStatusError):
        return f"HTTP {error.response.status_code}"
    return type(error).__name__


def _too_large() -> Denied:
    return Denied(
        f"the package of the source function is larger than {LARGEST_PACKAGE >> 20} MB, the most "
        "that can be passed to another function: make it a container image"
    )


LARGEST_POLICIES: Final = 10_240
"""Characters that all inline policies of a role may have together."""
QUEUE: Final = (
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ChangeMessageVisibility",
)
"""What the mapping does in the function's name."""
DEAD_LETTERS: Final = ("sqs:GetQueueUrl", "sqs:SendMessage")
"""What the function does with an unreadable message."""
BY_SERVICE: Final = {
    "secretsmanager": ("secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"),
    "rds-db": ("rds-db:connect",),
}
"""What is granted on an ARN of the plan."""


class AwsGrants:
    """What functions may do: inline policies of their role."""

    def __init__(self, client: "IAMClient") -> None:
        self._client = client

    async def grant(self, names: Names, plan: BatchPlan, role: str) -> None:
        """Allow the batch's queues, and the secrets and database users of the plan.

        Raises:
            Denied: The role's policies would become too large, or the plan grants something of
                another kind, or AWS refuses.
        """
        await self._put(role, names.policy, policy_of(names, plan))

    async def grant_once(self, plan: BatchPlan, role: str) -> None:
        """Allow the secrets and database users of the plan to the role, for all batches together.

        One policy that stays; nothing is changed where it is there.

        Raises:
            Denied: The role's policies would become too large, or the cloud refuses.
        """
        name, wanted = f"{plan.prefix}_doc_loader_grants", _policy(_granted(plan))
        if await self._policy(role, name) != wanted:
            await self._put(role, name, wanted)

    async def _policy(self, role: str, name: str) -> Any:
        """A policy as IAM has it; None: there is none of that name."""
        try:
            with aws(f"read the policy {name} of {role}"):
                got: Any = await self._client.get_role_policy(RoleName=role, PolicyName=name)
        except Missing:
            return None
        document = got["PolicyDocument"]
        return json.loads(document) if isinstance(document, str) else document

    async def _put(self, role: str, name: str, policy: dict[str, Any]) -> None:
        document = json.dumps(policy, separators=(",", ":"))
        try:
            with aws(f"allow the role {role} what {name} needs"):
                await self._client.put_role_policy(
                    RoleName=role, PolicyName=name, PolicyDocument=document
                )
        except Denied as error:
            if not has_code(error, "LimitExceeded"):
                raise
            raise Denied(
                f"{error}: the inline policies of the role {role} may have {LARGEST_POLICIES} "
                f"characters together, and this one has {len(document)}; let other batches end, "
                "or grant less"
            ) from error

    async def revoke(self, names: Names, role: str) -> bool:
        """Take it back."""
        try:
            with aws(f"remove the policy {names.policy}"):
                await self._client.delete_role_policy(RoleName=role, PolicyName=names.policy)
        except Missing:
            return False
        return True

    async def found(self, prefix: str, role: str) -> AsyncIterator[FoundResource]:
        """Policies of every batch of an installation."""
        pages = self._client.get_paginator("list_role_policies").paginate(RoleName=role)
        with aws(f"list the policies of {role}"):
            async for page in pages:
                for name in page["PolicyNames"]:
                    key = key_of(prefix, name)
                    if key is not None:
                        yield FoundResource(key, Resource.PERMISSIONS, name)


def policy_of(names: Names, plan: BatchPlan) -> dict[str, Any]:
    """What the function needs for one batch, and nothing else.

    Raises:
        Denied: The plan grants something that is neither a secret nor a database user.
    """
    return _policy(
        [
            _allow(QUEUE, [queue_arn(plan.topic_arn, names.queue)]),
            _allow(DEAD_LETTERS, [queue_arn(plan.topic_arn, names.dead_letters)]),
            *_granted(plan),
        ]
    )


def _granted(plan: BatchPlan) -> Sequence[dict[str, Any]]:
    granted: dict[str, list[str]] = {}
    for arn in plan.grants:
        parts = arn.split(":", 5)
        service = parts[2] if len(parts) == 6 else ""
        if service not in BY_SERVICE:
            raise Denied(
                f"{arn!r} cannot be granted: it must be the ARN of a secret (secretsmanager) "
                "or of a database user (rds-db)"
            )
        granted.setdefault(service, []).append(arn)
    return [_allow(BY_SERVICE[service], arns) for service, arns in granted.items()]


def _policy(statements: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def _allow(actions: Sequence[str], resources: Sequence[str]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": list(resources)}


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
