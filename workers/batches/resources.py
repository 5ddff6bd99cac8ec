"""What the `batches` pipeline uses beyond the adapters that all pipelines share."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from temporalio.client import Client

from activities.batches.document_store import SqlLoadStore
from activities.batches.store import SqlBatchStore
from activities.batches.validation import AccountLimits
from adapters.aws.functions import AwsFunctions, AwsGrants
from adapters.aws.queues import AwsQueues
from adapters.aws.session import AwsClients, open_aws
from adapters.aws.topic import AwsTopic
from adapters.database.engine import Database
from adapters.database.records import SqlLeases
from adapters.files.texts.pool import FileTexts
from adapters.temporal import TemporalOpenRuns
from workers.batches.settings import BatchSettings
from workflows.batches.names import BatchPlan


@dataclass(frozen=True)
class BatchResources:
    """The cloud, the tables of batches, and the open runs in Temporal."""

    plan: BatchPlan
    """Of the installation."""
    queues: AwsQueues
    topic: AwsTopic
    functions: AwsFunctions
    grants: AwsGrants
    store: SqlBatchStore
    loads: SqlLoadStore
    texts: FileTexts
    runs: TemporalOpenRuns
    leases: SqlLeases
    limits: AccountLimits


def batch_resources(
    settings: BatchSettings,
    clients: AwsClients,
    database: Database,
    client: Client,
    texts: FileTexts,
) -> BatchResources:
    """Wire the adapters of batches."""
    return BatchResources(
        plan=settings.plan,
        queues=AwsQueues(clients.sqs),
        topic=AwsTopic(clients.sns, clients.sqs),
        functions=AwsFunctions(clients.lambda_),
        grants=AwsGrants(clients.iam),
        store=SqlBatchStore(database),
        loads=SqlLoadStore(database),
        texts=texts,
        runs=TemporalOpenRuns(client),
        leases=SqlLeases(database),
        limits=AccountLimits(settings.filter_policies, settings.reserved_concurrency),
    )


@asynccontextmanager
async def open_batches(
    settings: BatchSettings, database: Database, client: Client
) -> AsyncGenerator[BatchResources]:
    """Open the clients of AWS and what is built on them, once per process."""
    async with AsyncExitStack() as stack:
        clients = await stack.enter_async_context(open_aws(settings.aws))
        texts = await stack.enter_async_context(FileTexts())
        yield batch_resources(settings, clients, database, client, texts)
