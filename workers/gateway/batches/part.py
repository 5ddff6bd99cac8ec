"""What the gateway serves of batches."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from adapters.database.batches.store import SqlBatchStore
from adapters.database.leases import SqlLeases
from workers.gateway.batches.pages import labels
from workers.gateway.batches.pages.batch_page import BatchPages
from workers.gateway.batches.pages.lists import BatchLists
from workers.gateway.pages.contribution import PageRoute, PipelinePages
from workers.gateway.pages.language import N_
from workers.gateway.pages.menu import MenuEntry
from workers.gateway.pages.site import Site
from workers.gateway.parts import GatewayPart
from workers.pipelines.base import Context
from workers.services.batches.overview import BatchOverview
from workers.services.batches.remarks import remark
from workers.services.batches.runs import BatchRuns
from workers.settings.batches import read_timings

TEMPLATES: Final = Path(__file__).parent / "pages" / "templates"
_SECONDS_TO_ANSWER: Final = 2.0
"""A worker answers at once; without one the table says how far a batch is."""


def open_part(context: Context, settings: None) -> GatewayPart:
    """The part over the resources of a gateway.

    Args:
        context: What the process has opened.
        settings: None.
    """
    runs = BatchRuns(context.client, context.environment, seconds_to_answer=_SECONDS_TO_ANSWER)
    database, timings = context.resources.database, read_timings(context.environment)
    return part_of(BatchOverview(SqlBatchStore(database), runs, SqlLeases(database), timings))


def part_of(service: BatchOverview) -> GatewayPart:
    """The part over a service.

    Args:
        service: Of cases and batches.
    """

    def routes(site: Site) -> Sequence[PageRoute]:
        lists, one, batch = BatchLists(site, service), BatchPages(site, service), "{case}/{batch}"
        return (
            ("GET", "/batches", lists.all),
            ("GET", "/batches/{case}", lists.case),
            ("GET", f"/batches/{batch}", one.show),
            ("POST", f"/batches/{batch}/answer", one.answer),
            ("POST", f"/batches/{batch}/cancel", one.cancel),
        )

    return GatewayPart(
        service=service,
        pages=PipelinePages(
            routes=routes,
            templates=TEMPLATES,
            names={"batch_words": labels, "document_remark": remark},
            menu=(MenuEntry("/batches", N_("Batches"), operators=True),),
        ),
    )
