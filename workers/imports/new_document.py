"""The form that a person submits a document with."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from adapters.types.files import builtin_types
from adapters.types.store import SqlDeclaredTypes
from workers.imports.service import LARGEST_FILE
from workers.imports.submission import DocumentSubmission, SentDocument
from workers.shared.gateway.access import TheAct
from workers.shared.gateway.http.upload import Upload, any_file, whole_file
from workers.shared.gateway.pages.renderer import N_, gettext, localised
from workers.shared.gateway.pages.site import Alert, Site, Visitor, field_problem, sentence
from workers.shared.services.errors import Forbidden, ServiceError
from workers.shared.services.identity import require_operator
from workflows.imports.messages import DocumentType, Strategy
from workflows.imports.types import TABLES
from workflows.shared.declared_types import DeclaredType

ADDRESS: Final = "/runs/new/document"
_PROJECT: Final = "project_id"
_SERVICE: Final = "service_id"
_OF_SERVICES: Final = (DocumentType.MTO, DocumentType.ESTIMATION_MASTER)
_OTHERS: Final = (DocumentType.SCHEDULE_EXTRACTION, DocumentType.SCHEDULE_PROJECT_EXTRACTION)
"""Types of files that are no tables."""
_STRATEGIES: Final[Mapping[str, str]] = {
    "": N_("As the type says"),
    Strategy.MERGE: N_("Update them, and add new ones"),
    Strategy.REPLACE: N_("Replace all of them"),
    Strategy.APPEND: N_("Add all rows once more"),
    Strategy.UPDATE_ONLY: N_("Update them, add none"),
    Strategy.CREATE_ONLY: N_("Leave them, and add new ones"),
}


class NewDocument:
    """The form, and what becomes of it.

    Args:
        site: The context of the pages.
        submission: Starts imports.
        types: Those of teams.
    """

    def __init__(self, site: Site, submission: DocumentSubmission, types: SqlDeclaredTypes) -> None:
        self._site = site
        self._submission = submission
        self._types = types

    async def show(self, request: Request) -> Response:
        """An empty form."""
        visitor = await self._site.visitor(request)
        require_operator(visitor.who, "documents")
        asked = request.query_params
        given = {name: asked.get(name, "")[:128] for name in ("document_type", _PROJECT)}
        return await self._page(request, visitor, given)

    async def submit(self, request: Request, act: TheAct) -> Response:
        """Start the import, and go to the page of its run."""
        visitor = await self._site.visitor(request)
        require_operator(visitor.who, "documents")
        upload = Upload(request, LARGEST_FILE, any_file)
        try:
            await upload.open()
            given = dict(upload.fields)
            self._site.check_csrf(visitor, given.pop("csrf", None))
            # The file goes on from here, after the fields.
            del upload.fields["csrf"]
            message, key = await self._message(given), given.get("key") or secrets.token_hex(16)
            document = SentDocument(upload.filename, lambda: whole_file(upload))
            done = await self._submission.submit(visitor.who, message, document, key)
        except Forbidden:
            raise
        except ServiceError as error:
            return await self._page(request, visitor, upload.fields, error)
        act.object = done.workflow_id
        return RedirectResponse(f"/runs/{done.workflow_id}", 303)

    async def _message(self, given: Mapping[str, str]) -> Mapping[str, Any]:
        """The message that the form stands for, as on the queue."""
        kind = given.get("document_type", "")
        declared = (await self._types.in_force()).get(kind)
        names = (_PROJECT, "task_id", "strategy", "sheet")
        message: dict[str, Any] = {"document_type": kind}
        message |= {name: text for name in names if (text := given.get(name, "").strip())}
        if declared is not None:
            scope = {name: given.get(name, "").strip() for name in declared.stored_scope}
            message["scope"] = {
                name: text for name, text in scope.items() if text and name != _PROJECT
            }
        elif kind in _OF_SERVICES:
            message[_SERVICE] = given.get(_SERVICE, "").strip()
        if message.get("strategy") == Strategy.APPEND or (
            declared is not None and declared.strategy == "append" and "strategy" not in message
        ):
            # Sent twice, its rows are added once.
            message["idempotency_key"] = given.get("key", "")
        return message

    async def _page(
        self,
        request: Request,
        visitor: Visitor,
        given: Mapping[str, str],
        error: ServiceError | None = None,
    ) -> Response:
        declared = await self._types.in_force()
        scopes = _scopes(declared)
        known = {"document_type", _PROJECT, "task_id", "strategy", "sheet", "file", *scopes}
        problems = field_problem(error, known)
        alert = None
        if error is not None:
            text = gettext(
                "Nothing was imported. Correct what is marked, and choose the file again."
            )
            alert = Alert(error.title, text if problems else sentence(error))
        titles = {
            **{each.value: each.value.replace("_", " ").capitalize() for each in _OTHERS},
            **{each.value: builtin_types()[each.value].title for each in TABLES},
            **{name: each.title for name, each in declared.items()},
        }
        return self._site.page(
            request,
            visitor,
            "new_document.html",
            200 if error is None else error.status,
            problem=alert,
            problems=problems,
            given=given,
            again=error is not None,
            key=secrets.token_hex(16),
            types=sorted(titles.items(), key=lambda each: each[1].casefold()),
            strategies=[(value, localised(text)) for value, text in _STRATEGIES.items()],
            scopes={name: ", ".join(users) for name, users in scopes.items()},
        )


def _scopes(declared: Mapping[str, DeclaredType]) -> Mapping[str, Sequence[str]]:
    """What rows belong to beside a project, and the types that need it."""
    needed = {_SERVICE: [builtin_types()[each.value].title for each in _OF_SERVICES]}
    for each in declared.values():
        for name in each.stored_scope:
            if name != _PROJECT:
                needed.setdefault(name, []).append(each.title)
    return needed
