"""What the function of a batch may do: an inline policy of its role, on IAM."""

import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from adapters.aws.errors import Missing, aws
from adapters.ports import Denied, FoundResource
from contracts.batches import BatchPlan, Names, Resource, key_of

if TYPE_CHECKING:
    from types_aiobotocore_iam import IAMClient

QUEUE_ACTIONS = (
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ChangeMessageVisibility",
)
DEAD_LETTER_ACTIONS = ("sqs:GetQueueUrl", "sqs:SendMessage")
ACTIONS_BY_SERVICE = {
    "secretsmanager": ("secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"),
    "rds-db": ("rds-db:connect",),
}


def policy_of(names: Names, plan: BatchPlan) -> dict[str, Any]:
    """What the function needs for one batch, and nothing else.

    Raises:
        Denied: The plan names something that is neither a secret nor a database user.
    """
    partition, region, account = (plan.topic_arn.split(":")[at] for at in (1, 3, 4))
    queue = f"arn:{partition}:sqs:{region}:{account}:{names.queue}"
    dead = f"arn:{partition}:sqs:{region}:{account}:{names.dead_letters}"
    statements = [_allow(QUEUE_ACTIONS, queue), _allow(DEAD_LETTER_ACTIONS, dead)]
    for arn in plan.grants:
        service = arn.split(":")[2] if arn.count(":") >= 5 else ""
        if service not in ACTIONS_BY_SERVICE:
            raise Denied(f"{arn} cannot be granted: only {', '.join(ACTIONS_BY_SERVICE)} are known")
        statements.append(_allow(ACTIONS_BY_SERVICE[service], arn))
    return {"Version": "2012-10-17", "Statement": statements}


def _allow(actions: tuple[str, ...], resource: str) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": resource}


class AwsGrants:
    """Inline policies, one for each batch."""

    def __init__(self, client: "IAMClient") -> None:
        self._client = client

    async def grant(self, names: Names, plan: BatchPlan, role: str) -> None:
        """Allow the batch's queues, and the secrets and database users of the plan."""
        with aws(f"allow {names.function} its queue"):
            await self._client.put_role_policy(
                RoleName=role,
                PolicyName=names.policy,
                PolicyDocument=json.dumps(policy_of(names, plan)),
            )

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
        with aws(f"list policies of {role}"):
            async for page in pages:
                for name in page.get("PolicyNames", []):
                    key = key_of(prefix, name)
                    if key is not None:
                        yield FoundResource(key, Resource.PERMISSIONS, name)
