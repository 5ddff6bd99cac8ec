"""What the gateway serves of one pipeline, and how the parts of all pipelines are opened."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter

from workers import catalogue
from workers.gateway.http.problems import MakeProblem
from workers.gateway.pages.contribution import PipelinePages
from workers.pipelines.base import Context, load
from workers.services.errors import ServiceError
from workers.services.identity import Identity
from workers.services.inbox import StartedBy
from workers.settings.base import Settings


async def _none_of_them(who: Identity) -> Collection[str]:
    return ()


@dataclass(frozen=True)
class GatewayPart:
    """What the gateway serves of one pipeline."""

    service: Any
    """What its endpoints ask; they find it by the pipeline's name in `app.state.services`."""
    description: str = ""
    """Of its API, for the OpenAPI document."""
    routers: Sequence[APIRouter] = ()
    """Of its API."""
    uploads: Sequence[str] = ()
    """Paths of API and pages that take files."""
    problems: Mapping[type[ServiceError], MakeProblem] = field(
        default_factory=dict[type[ServiceError], MakeProblem]
    )
    """Refusals of its own that say more than every problem does."""
    started_by: StartedBy = _none_of_them
    """Workflow ids of the runs that wait for a person and that this one has started."""
    pages: PipelinePages | None = None


def part_settings() -> Mapping[str, type[Settings]]:
    """The settings that parts have of their own, by name of the pipeline."""
    return {
        pipeline.name: load(pipeline.gateway_settings)
        for pipeline in catalogue.PIPELINES
        if pipeline.gateway_settings is not None
    }


def open_parts(context: Context, settings: Mapping[str, Settings]) -> Mapping[str, GatewayPart]:
    """The parts of all pipelines that have one, by name of the pipeline.

    Args:
        context: What the process has opened.
        settings: Of the parts that have some, by name of the pipeline.
    """
    return {
        pipeline.name: load(pipeline.gateway)(context, settings.get(pipeline.name))
        for pipeline in catalogue.PIPELINES
        if pipeline.gateway is not None
    }
