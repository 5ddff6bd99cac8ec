"""Status and outages, as far as a gateway can know them, and types of tables."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from adapters.database.engine import Database
from adapters.database.runs import SqlRuns
from adapters.ports.errors import PortError
from adapters.types.files import own_types, type_text
from adapters.types.store import SqlDeclaredTypes
from workers import catalogue
from workers.shared.register import Check, Pipeline, PipelineView
from workers.shared.services.errors import NotFound, TemporalUnavailable, no_role
from workers.shared.services.identity import Identity, require_operator
from workers.shared.services.outages import OutageView, open_outages
from workers.shared.services.runs import TemporalRuns
from workers.shared.services.status import check_of
from workflows.shared.contracts import PlainRecord, served
from workflows.shared.declared_types import DeclaredType
from workflows.shared.runs import RunFilter, RunRecord

SHOWN = 10
"""Runs that wait for a person, of each pipeline."""


class OutageRecord(PlainRecord):
    """Something that docflow needs and cannot use."""

    workflow_id: Annotated[str, served("Workflow id", "outage/database")]
    title: Annotated[str, served("What cannot be used", "The database cannot be used")]
    since: Annotated[datetime, served("When it began", "2026-01-03T10:00:00Z")]
    problem: Annotated[str | None, served("What it answered", "connection refused")]
    settings: Annotated[Sequence[str], served("Settings that are wrong", ["DATABASE_URL"])]
    waiting: Annotated[int, served("Open runs that wait for its end", 3)]


class CheckRecord(PlainRecord):
    """One part of the installation."""

    part: Annotated[str, served("What it is", "Temporal")]
    up: Annotated[bool, served("It can be used", True)]
    says: Annotated[str, served("Why not, or what to know", "2 workers polled")]


class PipelineRecord(PlainRecord):
    """What Temporal knows of a pipeline."""

    workers: Annotated[int, served("How many poll its task queue", 2)]
    open: Annotated[int, served("Runs that have not ended", 5)]
    waiting: Annotated[int, served("Those that wait for a person", 1)]
    counts: Annotated[dict[str, int], served("Runs by state", {"parked": 1})]
    lanes: Annotated[dict[str, int], served("How many poll each further task queue", {})]
    backlog: Annotated[int, served("Tasks that no worker has taken yet", 0)]


class StatusRecord(PlainRecord):
    """The installation, as far as a gateway can know it."""

    checks: Annotated[Sequence[CheckRecord], served("What is up", [])]
    counts: Annotated[dict[str, int], served("Runs of all pipelines by state", {"parked": 1})]
    outages: Annotated[Sequence[OutageRecord], served("What cannot be used", [])]
    needs_attention: Annotated[
        Sequence[RunRecord], served("Runs that wait for a person, ten of each pipeline", [])
    ]
    pipelines: Annotated[
        dict[str, PipelineRecord | None], served("By name; null: Temporal did not say", {})
    ]


class StatusService:
    """What is up, and what cannot be used; a refusal is a `ServiceError`.

    Args:
        runs: Of Temporal.
        database: With the table of runs.
    """

    def __init__(self, runs: TemporalRuns, database: Database) -> None:
        self._runs, self._rows, self._database = runs, SqlRuns(database), database

    async def outages(self, who: Identity) -> Sequence[OutageRecord]:
        """Outages that have not ended, the longest first."""
        require_operator(who, "outages")
        found = await open_outages(self._runs)
        return [OutageRecord.model_validate(each) for each in found]

    async def status(self, who: Identity) -> StatusRecord:
        """The whole installation; what is down is part of the answer."""
        require_operator(who, "the status and its checks")
        checks = [await self._temporal(), await self._tables()]
        outages: Sequence[OutageView] = ()
        views: dict[str, PipelineView | None] = dict.fromkeys(
            each.name for each in catalogue.PIPELINES
        )
        if checks[0].up:
            outages = await open_outages(self._runs)
            seen = await asyncio.gather(*map(self._view, catalogue.PIPELINES))
            views = dict(zip(views, seen, strict=True))
        checks += [Check(each.workflow_id, False, each.sentence) for each in outages]
        for pipeline in catalogue.PIPELINES:
            if (view := views[pipeline.name]) is not None:
                checks.append(check_of(pipeline, view))
        counts = Counter[str]()
        for view in filter(None, views.values()):
            counts.update(view.counts)
        return StatusRecord(
            checks=[CheckRecord.model_validate(each) for each in checks],
            counts=dict(counts),
            outages=[OutageRecord.model_validate(each) for each in outages],
            needs_attention=await self._awaiting() if checks[1].up else (),
            pipelines={
                name: None if view is None else PipelineRecord.model_validate(view)
                for name, view in views.items()
            },
        )

    async def _temporal(self) -> Check:
        try:
            await self._runs.count_runs("ExecutionStatus = 'Running'")
        except TemporalUnavailable as error:
            return Check("Temporal", False, str(error))
        return Check("Temporal", True, self._runs.place)

    async def _tables(self) -> Check:
        try:
            await self._database.probe_by_writing()
        except PortError as error:
            return Check("database", False, str(error))
        return Check("database", True, "it answers")

    async def _view(self, pipeline: Pipeline) -> PipelineView | None:
        try:
            return await self._runs.pipeline(pipeline)
        except TemporalUnavailable:
            return None

    async def _awaiting(self) -> Sequence[RunRecord]:
        wanted = (
            RunFilter(limit=SHOWN, pipelines=[each.name], needs_attention=True)
            for each in catalogue.PIPELINES
        )
        found = await asyncio.gather(*map(self._rows.list, wanted))
        return [run for each in found for run in each]


class TypeHead(PlainRecord):
    """A type of table in a list."""

    name: Annotated[str, served("Its name", "equipment")]
    title: Annotated[str, served("What people call it", "Equipment")]
    scope: Annotated[Sequence[str], served("What is given for all rows", ["project_id"])]
    key: Annotated[Sequence[str], served("Fields that make a row the same row", ["code"])]
    fields: Annotated[Sequence[str], served("Names of its fields", ["code", "rate"])]
    table: Annotated[str, served("The table of its rows", "equipment")]
    digest: Annotated[str, served("Its version", "5f" * 32)]
    own: Annotated[bool, served("docflow brings it", True)]


class TypeDetail(TypeHead):
    """A type of table."""

    yaml: Annotated[str, served("Its declaration, as a file", "name: equipment")]
    declaration: Annotated[DeclaredType, served("The same as JSON", {"name": "equipment"})]


class TypeService:
    """The types that documents may have; a refusal is a `ServiceError`.

    Args:
        declared: Those that are in force beside docflow's own.
    """

    def __init__(self, declared: SqlDeclaredTypes) -> None:
        self._declared = declared

    async def list(self, who: Identity) -> Sequence[TypeHead]:
        """docflow's own types, and the declared ones that are in force.

        Raises:
            Forbidden: The person has no role.
        """
        if not who.may_read:
            raise no_role()
        own, declared = own_types(), await self._declared.in_force()
        return [TypeHead(**_facts(each)) for each in (*own.values(), *declared.values())]

    async def get(self, who: Identity, name: str) -> TypeDetail:
        """One type.

        Raises:
            NotFound: There is none of this name.
        """
        if not who.may_read:
            raise no_role()
        found = own_types().get(name) or (await self._declared.in_force()).get(name)
        if found is None:
            raise NotFound(f"there is no type {name!r}")
        return TypeDetail(**_facts(found), yaml=type_text(found), declaration=found)


def _facts(declared: DeclaredType) -> dict[str, Any]:
    return {
        **declared.model_dump(include={"name", "title", "scope", "key"}),
        "fields": list(declared.fields),
        "table": declared.table_name,
        "digest": declared.digest,
        "own": declared.name in own_types(),
    }
