"""Where the story happens: a whole stack, and what each telling has of its own there."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client

from activities.transfers.partner_store import SqlPartnerStore
from activities.transfers.store import SqlRouteStore
from adapters.aws.queues import AwsQueues
from adapters.aws.session import AwsClients, open_aws
from adapters.database.engine import Database
from adapters.ports.blobs import Blobs
from stack.demo.batches import ExternalSystems, left_behind
from stack.embedded import EmbeddedStack, embedded_stack
from stack.sample_club import SampleClub, sample_club
from stack.sample_documents import SampleDocument, sample_documents
from tests.support.processes import ROOT
from workers.batches.bridges import run_batch_loader
from workers.batches.settings import BatchSettings
from workers.shared.connect import connect
from workers.shared.gateway.http.auth import mint_token
from workers.shared.resources import open_resources
from workers.shared.services.identity import ADMIN
from workers.shared.settings.gateway import TokenSettings
from workflows.batches.names import BatchKey, names_of
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.routes import RouteRule

SAMPLES = ROOT / "samples"
PERSON = "ann"
INBOX, STORE = "inbox", "store"
"""Partners of transfers: where files come from, and where they go."""
_JOB_SETTINGS = {
    "Version": 1,
    "Jobs": [
        {
            "Job": "story",
            "Queue": "jobs",
            "Actions": {
                "RetryFailureSource": 0,
                "List": [
                    {"Action": "ReadFile", "Partner": INBOX, "Path": "{accountId}/{data.path}"},
                    {"Action": "Compress", "Format": "gzip"},
                    {"Action": "WriteFile", "Partner": STORE, "Path": "{accountId}/{name}"},
                ],
            },
        }
    ],
}
_QUICK = {
    "DOCFLOW_BATCH_SETTLE_SECONDS": "0",
    "DOCFLOW_BATCH_POLL_SECONDS": "1",
    "DOCFLOW_BATCH_HOLD_SECONDS": "0",
    "DOCFLOW_BATCH_MAX_REDRIVES": "0",
    # A bridge loads documents: functions would each load their libraries first.
    "DOCFLOW_BATCH_WITH_FUNCTION": "false",
}


_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Site:
    """A stack, and what the world around it and its databases look like."""

    stack: EmbeddedStack
    client: Client
    database: Database
    blobs: Blobs
    outside: ExternalSystems
    samples: Sequence[SampleDocument]

    @property
    def partners(self) -> Path:
        """Folder of the partners of transfers."""
        return self.stack.folder / "partners"

    async def left_of(self, key: BatchKey) -> Sequence[str]:
        """What exists of a batch in the cloud."""
        settings = BatchSettings.read(self.stack.settings)
        stem = names_of(settings.plan.prefix, key).queue
        found = await left_behind(settings, self.outside.clients, self.database, self.client)
        return [each.partition(" ")[0] for each in found if stem in each]

    def token(self, club: SampleClub) -> str:
        """A token of a person of a club."""
        return mint_token(
            TokenSettings.read(self.stack.settings),
            subject=PERSON,
            organisations=[club.organisation_id],
            roles=[ADMIN],
        )


@dataclass(frozen=True)
class Cast:
    """What one telling is about: no other telling knows of it."""

    name: str
    case: int
    club: SampleClub
    folder: Path


@asynccontextmanager
async def story_site(folder: Path, package: Path) -> AsyncGenerator[Site]:
    """Start everything; it ends with the block.

    Args:
        folder: Of the stack.
        package: Where the package with the job type of the story is installed.
    """
    place = folder / "stack"
    place.mkdir()
    (place / "jobsettings.json").write_text(json.dumps(_JOB_SETTINGS))
    async with AsyncExitStack() as opened:
        stack = await opened.enter_async_context(
            embedded_stack(
                place,
                announce=print,
                with_partners=True,
                settings={**_QUICK, "PYTHONPATH": f"{ROOT}:{package}"},
            )
        )
        clients = await opened.enter_async_context(open_aws(stack.aws))
        resources = await opened.enter_async_context(open_resources(stack.environment))
        client = await connect(stack.settings["TEMPORAL_ADDRESS"])
        await opened.enter_async_context(_loading(client, clients, stack))
        partners = SqlPartnerStore(resources.database)
        for name in (INBOX, STORE):
            root = place / "partners" / name
            root.mkdir()
            await partners.put(Partner(name=name, kind=PlaceKind.FOLDER, container=str(root)))
        await SqlRouteStore(resources.database).put(RouteRule(queue="jobs", rule="1"))
        yield Site(
            stack,
            client,
            resources.database,
            resources.blobs,
            ExternalSystems(clients, stack.installed, resources.blobs),
            await asyncio.to_thread(sample_documents, folder / "documents"),
        )


@asynccontextmanager
async def _loading(
    client: Client, clients: AwsClients, stack: EmbeddedStack
) -> AsyncGenerator[None]:
    """The bridge that loads documents, which looks for queues more often than it does elsewhere."""
    prefix, stop = BatchSettings.read(stack.settings).plan.prefix, asyncio.Event()
    async with asyncio.TaskGroup() as group:
        queues = AwsQueues(clients.sqs)
        group.create_task(
            run_batch_loader(
                client, clients.sqs, queues, prefix=prefix, stop=stop, look_seconds=_LOOK_SECONDS
            )
        )
        try:
            yield
        finally:
            stop.set()


async def cast_of(site: Site, name: str, number: int, folder: Path) -> Cast:
    """What a telling is about.

    Args:
        site: Where it happens.
        name: Of the telling.
        number: No other one has it.
        folder: For its files.
    """
    folder.mkdir()
    for partner in (INBOX, STORE):
        (site.partners / partner / name).mkdir()
    return Cast(name, number, await sample_club(site.database, number), folder)
