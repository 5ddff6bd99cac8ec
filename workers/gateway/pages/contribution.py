"""The pages that a pipeline contributes to the site."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workers.gateway.pages.menu import MenuEntry
from workers.gateway.pages.site import Site
from workers.services.identity import Identity

PageRoute = tuple[str, str, Callable[..., Any]]
"""Method, path, endpoint."""


@dataclass(frozen=True, slots=True)
class Alike:
    """What runs have in common that are answered together."""

    address: str
    """Page of all that wait for it."""
    question: str
    """What all of them ask."""


def _none() -> Mapping[str, str]:
    return {}


async def _no_questions(who: Identity) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class PipelinePages:
    """The pages of one pipeline."""

    routes: Callable[[Site], Sequence[PageRoute]]
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
    command: Callable[[str], str] | None = None
    """Workflow id of a run without a page to the command that shows it, for the inbox."""
    alike: Callable[[str, str], Alike] | None = None
    """`DocumentType` of a run and what it asks to what it shares with others; None: none does."""
    answer_at: str = ""
    """Part of a run's page where it is answered, as `#answer`."""
