"""What the gateway serves of one pipeline, and how the parts of all pipelines are opened."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter

from workers import catalogue
from workers.gateway.http.problems import MakeProblem
from workers.pipelines.base import Context, load
from workers.services.errors import ServiceError
from workers.services.identity import Identity
from workers.settings.base import Settings

if TYPE_CHECKING:
    from workers.gateway.pages.site import Site

PageRoute = tuple[str, str, Callable[..., Any]]
"""Method, path, endpoint."""


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """A link at the top of every page."""

    address: str
    title: str
    writes: bool = False
    """Only for people who may write."""
    operators: bool = False
    """Only for operators."""

    def is_for(self, who: Identity) -> bool:
        """Whether a person sees it."""
        return (who.may_write or not self.writes) and (who.is_operator or not self.operators)


def _none() -> Mapping[str, str]:
    return {}


async def _no_questions(who: Identity) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class PipelinePages:
    """The pages of one pipeline."""

    routes: Callable[["Site"], Sequence[PageRoute]]
    templates: Path
    """Folder of its templates; they are named as no other pipeline's are."""
    names: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What its templates use beside the values that are given to them."""
    menu: Sequence[MenuEntry] = ()
    type_titles: Callable[[], Mapping[str, str]] = _none
    """`DocumentType` of its runs to what the inbox calls it."""
    state_titles: Mapping[str, str] = field(default_factory=dict[str, str])
    """`State` of its runs to what the inbox calls it."""
    questions: Callable[[Identity], Awaitable[Mapping[str, str]]] = _no_questions
    """Workflow id of a run that waits for a person to what it asks, for the inbox."""
    answer_at: str = ""
    """Part of a run's page where it is answered, as `#answer`."""


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
