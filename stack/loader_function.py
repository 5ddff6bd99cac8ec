"""What an installation has on AWS before its first batch: role, function, topic, case events."""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from botocore.exceptions import ClientError

from adapters.aws.session import AwsClients, code_of

FUNCTION: Final = "docflow_document_loader"
ROLE: Final = "docflow_document_loader"
TOPIC: Final = "docflow_documents"
CASE_EVENTS: Final = "docflow_case_events"
HANDLER: Final = "loader.handler"
TIMEOUT_SECONDS: Final = 30
MEMORY_MB: Final = 512

_SHIM: Final = '''"""Where Lambda looks for the handler."""

from workers.batches.loader_lambda import handler

__all__ = ["handler"]
'''
_TRUST: Final = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "lambda.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}


@dataclass(frozen=True)
class Installation:
    """The lasting parts of an installation on AWS."""

    topic_arn: str
    source_function: str
    case_events_queue_url: str


def loader_zip(module: str = _SHIM) -> bytes:
    """A package whose handler is docflow's own, which the interpreter has installed."""
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as archive:
        entry = zipfile.ZipInfo("loader.py", (2026, 1, 1, 0, 0, 0))
        entry.external_attr = 0o644 << 16
        archive.writestr(entry, module)
    return package.getvalue()


async def install(
    clients: AwsClients, environment: Mapping[str, str], package: bytes | None = None
) -> Installation:
    """Make what is missing; everything that is there stays.

    Args:
        clients: Of the account.
        environment: Of the source function, and so of every batch's own.
        package: Of the source function.
    """
    role = await _role(clients)
    try:
        await clients.lambda_.create_function(
            FunctionName=FUNCTION,
            Runtime="python3.11",
            Role=role,
            Handler=HANDLER,
            Code={"ZipFile": package or loader_zip()},
            Timeout=TIMEOUT_SECONDS,
            MemorySize=MEMORY_MB,
            Environment={"Variables": dict(environment)},
        )
    except ClientError as error:
        if code_of(error) != "ResourceConflictException":
            raise
    topic = await clients.sns.create_topic(Name=TOPIC)
    dead = (await clients.sqs.create_queue(QueueName=f"{CASE_EVENTS}_dlq"))["QueueUrl"]
    got = await clients.sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])
    policy = {"deadLetterTargetArn": got["Attributes"]["QueueArn"], "maxReceiveCount": 10}
    queue = await clients.sqs.create_queue(
        QueueName=CASE_EVENTS, Attributes={"RedrivePolicy": json.dumps(policy)}
    )
    return Installation(topic["TopicArn"], FUNCTION, queue["QueueUrl"])


async def _role(clients: AwsClients) -> str:
    try:
        made = await clients.iam.create_role(
            RoleName=ROLE, AssumeRolePolicyDocument=json.dumps(_TRUST)
        )
    except ClientError as error:
        if code_of(error) != "EntityAlreadyExists":
            raise
        return (await clients.iam.get_role(RoleName=ROLE))["Role"]["Arn"]
    return made["Role"]["Arn"]
