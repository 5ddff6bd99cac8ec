"""The pages that a pipeline contributes to the site."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workers.gateway.pages.menu import MenuEntry
from workers.gateway.pages.site import Site

PageRoute = tuple[str, str, Callable[..., Any]]
"""Method, path, endpoint."""


def _none() -> Mapping[str, str]:
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
