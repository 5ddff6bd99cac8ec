"""The page of the inbox."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from urllib.parse import quote

from fastapi import Request, Response

from workers.gateway.pages.contribution import Alike, PipelinePages
from workers.gateway.pages.language import N_, counted, gettext, localised
from workers.gateway.pages.renderer import is_fragment
from workers.gateway.pages.site import Site, Visitor
from workers.services.inbox import Inbox, InboxEntry, StartedBy

_FEW: Final = 3
"""So many runs that ask the same stand in one line."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A line of the inbox."""

    key: str
    title: str
    kind: str
    state: str
    waiting_since: datetime
    whom: str
    address: str | None
    apart: bool
    """The address is another site's."""
    file: str | None = None
    """The file that it is about, where the title does not say."""
    question: str | None = None
    """What it asks."""
    answer_at: str | None = None
    """Where it is answered."""
    command: str | None = None
    """What shows it and its answers, where no page does."""


class InboxPage:
    """What of all pipelines waits for a person.

    Args:
        site: The context of the pages.
        inbox: What it shows.
        started_by: Of each pipeline, what finds the runs that a person has started.
        namespace: Of Temporal, for addresses in its user interface.
        pages: Pages of each pipeline that has some, by name.
    """

    def __init__(
        self,
        site: Site,
        inbox: Inbox,
        started_by: Sequence[StartedBy],
        namespace: str,
        pages: Mapping[str, PipelinePages],
    ) -> None:
        self._site = site
        self._inbox = inbox
        self._started_by = started_by
        self._namespace = namespace
        self._pages = pages

    async def show(self, request: Request, mine: bool = False) -> Response:
        """Runs of every pipeline that wait for a person; a script gets the table alone.

        With `mine` only those that the visitor has started.
        """
        visitor = await self._site.visitor(request)
        found = await self._inbox.read(visitor.who, self._started_by if mine else None)
        questions = await self._questions(visitor, found)
        entries = self._lines(found, questions)
        outages = await self._inbox.outages(visitor.who)
        template = "inbox_entries.html" if is_fragment(request) else "inbox.html"
        return self._site.page(
            request, visitor, template, entries=entries, outages=outages, mine=mine
        )

    async def _questions(
        self, visitor: Visitor, entries: Sequence[InboxEntry]
    ) -> Mapping[str, str]:
        """What runs ask, by workflow id; of pipelines with a run in the inbox."""
        questions: dict[str, str] = {}
        for name in {entry.pipeline for entry in entries} & self._pages.keys():
            questions |= await self._pages[name].questions(visitor.who)
        return questions

    def _lines(
        self, entries: Sequence[InboxEntry], questions: Mapping[str, str]
    ) -> Sequence[Waiting]:
        """One for each run; one for all that are answered together, where the first of them is."""
        alike = {
            entry.workflow_id: found
            for entry in entries
            if (found := self._alike(entry, questions.get(entry.workflow_id))) is not None
        }
        counts = Counter(alike.values())
        lines: dict[str, Waiting] = {}
        for entry in entries:
            shared = alike.get(entry.workflow_id)
            if shared is None or counts[shared] < _FEW:
                lines[entry.run_id] = self._waiting(entry, questions.get(entry.workflow_id))
            elif shared.address not in lines:
                lines[shared.address] = self._together(entry, shared, counts[shared])
        return [*lines.values()]

    def _alike(self, entry: InboxEntry, question: str | None) -> Alike | None:
        pages = self._pages.get(entry.pipeline)
        if question is None or pages is None or pages.alike is None:
            return None
        return pages.alike(entry.document_type, question)

    def _together(self, first: InboxEntry, shared: Alike, count: int) -> Waiting:
        line = self._waiting(first, shared.question)
        title = counted("%(count)s run for one cause", "%(count)s runs for one cause", count)
        return replace(
            line,
            title=title,
            address=shared.address,
            apart=False,
            file=None,
            command=None,
            answer_at=shared.address,
        )

    def _waiting(self, entry: InboxEntry, question: str | None) -> Waiting:
        pages = self._pages.get(entry.pipeline)
        title = pages.type_titles().get(entry.document_type) if pages else None
        return Waiting(
            key=f"run-{entry.run_id}",
            title=entry.title,
            kind=" · ".join(map(localised, (entry.kind, title or _plain(entry.document_type)))),
            state=_state(entry, pages),
            waiting_since=entry.waiting_since,
            whom=entry.waiting_for or gettext("any operator"),
            address=entry.page or self._temporal(entry),
            apart=entry.page is None,
            file=entry.filename if entry.filename != entry.title else None,
            question=question,
            command=pages.command(entry.workflow_id)
            if pages and pages.command and entry.page is None
            else None,
            answer_at=entry.page + pages.answer_at if question and pages and entry.page else None,
        )

    def _temporal(self, entry: InboxEntry) -> str | None:
        """Page of a run in Temporal's own user interface."""
        base = self._site.settings.temporal_ui
        if base is None:
            return None
        namespace = quote(self._namespace, safe="")
        run = f"{quote(entry.workflow_id, safe='')}/{quote(entry.run_id, safe='')}"
        return f"{base}/namespaces/{namespace}/workflows/{run}"


def _state(entry: InboxEntry, pages: PipelinePages | None) -> str:
    """What a run waits for; one that has ended waits for nothing, and left something."""
    if pages is not None and (title := pages.state_titles.get(entry.state)):
        return localised(title)
    announcement = localised(_plain(entry.state) or N_("Attention"))
    if entry.ended:
        return gettext("%(state)s, not all removed", state=announcement)
    return announcement


def _plain(name: str) -> str:
    """A name in plain words."""
    return name.replace("_", " ").capitalize()
