"""What functions of batches may do: inline policies of their role, on IAM.

What every function does with the queues of its batch is allowed by a policy that the owner of the
role makes once (deploy/lambda/role-policy.json). Batches that releases before began have one each.
"""

import json
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from adapters.aws.arns import queue_arn
from adapters.aws.errors import Missing, aws, has_code
from adapters.ports import Denied
from contracts.batches import BatchPlan, Names, Resource, key_of
from domain.batches.resources import FoundResource

if TYPE_CHECKING:
    from types_aiobotocore_iam import IAMClient

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
    """Inline policies of the functions' role."""

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
        """Allow the secrets and database users of the plan, for all batches together.

        Raises:
            Denied: As above.
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
