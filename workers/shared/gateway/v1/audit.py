"""The audit over HTTP."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, cast

from fastapi import APIRouter, Depends, Query, Request

from adapters.database.access import SqlAudit
from adapters.ports.access import AuditEntry, AuditFilter
from workers.shared.gateway.http.problems import problem_responses
from workers.shared.gateway.http.requests import Who
from workers.shared.services.access import read_audit
from workflows.shared.contracts import PlainRecord, served

MOST = 200
"""Entries of a page."""
_LARGEST_ID = 2**63 - 1


class AuditPage(PlainRecord):
    """Some entries of the audit, the newest first."""

    items: Annotated[Sequence[AuditEntry], served("The entries", [])]
    next: Annotated[str | None, served("`cursor` of the next page; null on the last page", None)]


def audit_of(request: Request) -> SqlAudit:
    """Return the audit of the gateway."""
    return cast("SqlAudit", request.app.state.audit)


router = APIRouter(
    prefix="/api/v1", tags=["audit"], responses=problem_responses(401, 403, 422, 503)
)


@router.get("/audit")
async def list_audit(
    audit: Annotated[SqlAudit, Depends(audit_of)],
    asks: Who,
    who: Annotated[str | None, Query(max_length=200, description="Who acted")] = None,
    action: Annotated[
        str | None, Query(max_length=200, description="Operation, page or command")
    ] = None,
    object: Annotated[str | None, Query(max_length=1000, description="What it was done to")] = None,
    organisation: Annotated[
        int | None, Query(ge=1, le=_LARGEST_ID, description="Of this organisation alone")
    ] = None,
    since: Annotated[datetime | None, Query(description="Begun then or later")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 50,
    cursor: Annotated[
        int | None, Query(ge=1, le=_LARGEST_ID, description="`next` of a page")
    ] = None,
) -> AuditPage:
    """Return what people, programs and commands have changed or tried to change."""
    wanted = AuditFilter(
        who=who, action=action, object=object, organisation=organisation, since=since, before=cursor
    )
    found = await read_audit(audit, asks, wanted, limit + 1)
    items = found[:limit]
    return AuditPage(items=items, next=str(items[-1].id) if len(found) > limit else None)
