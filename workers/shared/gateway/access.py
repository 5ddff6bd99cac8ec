"""The one door of the gateway: who comes in, and what is noted of what they change."""

import logging
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, cast

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapters.database.access import SqlAudit
from adapters.ports.access import Act, UploadGrant
from adapters.ports.errors import PortError
from workers.shared.gateway.http.auth import Unauthorised
from workers.shared.gateway.http.hosts import is_own_origin
from workers.shared.gateway.http.keys import KeysUnavailable
from workers.shared.gateway.http.requests import (
    BEARER,
    READING,
    RequestRates,
    asks_who,
    embedded_token,
    identify,
    refuse_unknown_parameters,
)
from workers.shared.gateway.http.sessions import Sessions
from workers.shared.services.errors import Forbidden, ServiceError, no_role
from workers.shared.services.identity import (
    ADMIN,
    MAPPER,
    OPERATOR,
    VIEWER,
    Identity,
    require_role,
)

logger = logging.getLogger(__name__)

_FORBIDDEN: Final = 403
_JSON: Final = re.compile(r"application/([\w.-]+\+)?json\b", re.IGNORECASE)
_REFUSED: Final = 400


@dataclass(frozen=True, slots=True)
class Least:
    """What an operation needs."""

    role: str
    """The least one."""
    of_all: bool = False
    """For what belongs to no organisation; else the role in one organisation opens the door, and
    the operation checks whose things it is about."""


ROLES_OF: Final[Mapping[Least, str]] = {
    Least(VIEWER): """
        readInbox listRuns getOverview getRun getRunTimeline getRunReport watchRun watchRuns
        listDocumentTypes getDocumentType
        listImports getImport getColumns getCells getCandidates getResults getSummary
        listUploads getUpload watchUpload previewUpload listUploadColumns listUploadValues
        listUploadCandidates exportUploadValues listUploadResults getUploadSummary
        listUploadDecisions getUndo
        getReview listReviewRows listReviewChanges listReviewSuggestions exportReview
        listUploadTypes downloadTemplate listContexts
        listLearntColumns listLearntValues listLearntChanges
        landingPage description conformance queryables collections collection collectionQueryables
        items item asset search searchByBody
        listTransfers getTransfer getReceipt
        listJobs getJob listTasks watchJob listDeliveries findJobs showJob listJobTasks
    """,
    Least(MAPPER): """
        answerRun answerRuns
        createImport startImport cancelImport putColumns confirmColumns putCells confirmCells
        createUpload changeUpload decideUploadColumns decideUploadValues importUploadValues
        confirmUpload undoUpload previewUndo makeUploadToken
        changeReview previewReviewChange importReview
        makeContext learnColumn forgetColumn learnValue forgetValue forgetChange
    """,
    Least(OPERATOR): """
        rerouteTransfer resendTransfer redriveTransfer
        submitJob cancelJob restartJob answerJob sendAgain
        listJobTypes storeJobFile startJob continueJob removeItem
    """,
    Least(OPERATOR, of_all=True): """
        submitDocument getDocument correctDocument
        sendEvent assignTransfer
        listBatches getBatch listBatchDocuments listFailedMessages listBatchResources
        startBatch finishBatch endBatch cancelBatch redriveBatch
        getConcurrency setConcurrency expectBatches
        listSchedules getSchedule pauseSchedule resumeSchedule triggerSchedule
        listRejectedMessages getRejectedMessage dismissRejectedMessage retryRejectedMessage
        listDeadLetters getDeadLetter redriveDeadLetters removeDeadLetters
        listOutages getStatus
        decodePayloads encodePayloads
        listRoutes addRoute getRoute changeRoute removeRoute testRoutes rerouteEvents
        enableRoute disableRoute listRouteChanges
        listPartners getPartner testPartner removePartner enablePartner disablePartner
        getHostKey listPartnerKeys removePartnerKey
        listWatches getWatch listExpectedFiles getExpectedFiles
    """,
    Least(ADMIN): """
        listAudit listTokens getToken makeToken revokeToken
        findPeople erasePerson
        listWebhooks addWebhook getWebhook changeWebhook removeWebhook rotateWebhookSecret
        testWebhook listWebhookMessages getWebhookMessage resendWebhookMessage
    """,
    # They say where the secrets of a partner are sent, and to whom.
    Least(ADMIN, of_all=True): """
        addPartner replacePartner addPartnerKey acceptHostKey
    """,
}
"""Every operation of the API by what it needs; docs/reference/access.md shows it.

Those that an extension brings stand in its `GatewayPart.roles`. One that stands nowhere is for
admins of the whole installation.
"""
LEAST: Final[Mapping[str, Least]] = {
    operation: least for least, operations in ROLES_OF.items() for operation in operations.split()
}
UNLISTED: Final = Least(ADMIN, of_all=True)
CHANGES_NOTHING: Final = frozenset(
    {"searchByBody", "previewReviewChange", "testRoutes", "findPeople"}
)
"""Operations that need a body to read by: the audit has no entry of them."""


def operation_id(route: APIRoute) -> str:
    """What clients made from the document call an endpoint, wherever it moves: `listImports`."""
    first, *words = route.name.split("_")
    return first + "".join(map(str.capitalize, words))


async def enter(request: Request) -> None:
    """Let a caller in who may do what they ask for, and note what they are about to change.

    It is a dependency of every route of the application: no endpoint can forget it. The entry of
    the audit is written first, without a status, and `Noted` adds the status before the answer is
    sent. If the entry cannot be written, the request fails with 503 and nothing is changed. If the
    gateway dies in between, an entry without a status stays.

    Raises:
        Unauthorised: The operation needs a token, and there is none or it is not valid.
        KeysUnavailable: The token cannot be checked at the moment.
        Forbidden: The caller lacks the role, or has an upload token for something else.
        Refused: The operation has no such query parameter.
        TooManyRequests: The caller asks too often.
        PortError: The database is not available.
    """
    act = await _checked(request)
    state = request.app.state
    if act is not None and request.method not in READING and act.action not in state.reading:
        act.reason = await _reason(request)
        await cast("SqlAudit", state.audit).begin(act)


async def refusal_of(request: Request) -> Exception | None:
    """Return why the sender of a request that cannot be read has no access; None: they have.

    The web framework reads a body before it asks who sent it.
    """
    if hasattr(request.state, "act"):
        return None
    try:
        await _checked(request)
    except (Unauthorised, KeysUnavailable, ServiceError, PortError) as refused:
        return refused
    return None


async def _checked(request: Request) -> Act | None:
    """What the caller does, if they may; None: nobody has to be known for it."""
    route = request.scope["route"]
    if not isinstance(route, APIRoute):
        return None
    if not asks_who(route.dependant):
        # Pages say themselves that a person has to sign in.
        page = f"{request.method} {route.path}"
        visitor = await _visitor(request)
        if visitor is None:
            return None
        act = _act(request, page, visitor)
        if visitor.upload is not None:
            request.state.act = act
            await cast("RequestRates", request.app.state.rates).count(visitor)
            _admit_upload(request, page, visitor.upload)
        if request.method in READING:
            return None
        request.state.act = act
        return act
    who = await identify(request, await BEARER(request))
    await cast("RequestRates", request.app.state.rates).count(who)
    operation = operation_id(route)
    act = request.state.act = _act(request, operation, who)
    least = cast("Mapping[str, Least]", request.app.state.least).get(operation, UNLISTED)
    if who.upload is not None:
        _admit_upload(request, operation, who.upload)
    if not who.may_read:
        raise no_role()
    if least.of_all or not who.may_anywhere(least.role):
        require_role(who, least.role, None)
    if route.path.startswith("/api/v1/"):
        refuse_unknown_parameters(request, route)
    return act


def _admit_upload(request: Request, what: str, grant: UploadGrant) -> None:
    """Let in who has an upload token, if what they ask for is part of an upload.

    Raises:
        Forbidden: It is not, or a page of another site asks.
    """
    state = request.app.state
    if what not in state.by_upload_token:
        raise Forbidden("an upload token is for uploads in an embedded importer, and nothing else")
    origin, host = request.headers.get("Origin"), request.headers.get("Host", "")
    if origin in (None, *grant.origins) or is_own_origin(origin, host, state.public_url):
        return
    raise Forbidden("the upload token is not for pages of this site")


async def _visitor(request: Request) -> Identity | None:
    """Who is signed in and changes something, or has an upload token; None: nobody."""
    if request.method in READING and embedded_token(request) is None:
        return None
    try:
        return (await cast("Sessions", request.app.state.sessions).find(request)).who
    except Unauthorised:
        return None


async def _reason(request: Request) -> str | None:
    """Return why the caller does it: `reason`, wherever an operation takes one."""
    given: object = request.query_params.get("reason")
    has_body = cast("APIRoute", request.scope["route"]).body_field is not None
    if given is None and has_body and _JSON.match(request.headers.get("Content-Type", "")):
        body: object = await request.json() if await request.body() else None
        given = cast("dict[str, object]", body).get("reason") if isinstance(body, dict) else None
    return given if isinstance(given, str) and given else None


def _act(request: Request, action: str, who: Identity) -> Act:
    # An answer says what is done, and not to what.
    named = [str(each) for name, each in request.path_params.items() if name != "answer"]
    return Act(
        who.subject,
        who.by,
        action,
        organisation_id=who.organisations[0] if len(who.organisations) == 1 else None,
        object="/".join(named) or None,
        from_where=None if request.client is None else request.client.host,
        request_id=request.headers.get("X-Request-Id"),
    )


def _act_of(request: Request) -> Act:
    # If no one is signed in, the audit gets no entry: the endpoint asks the caller to sign in.
    return getattr(request.state, "act", None) or Act("", "person", request.url.path)


TheAct = Annotated[Act, Depends(_act_of)]
"""What the entry of a request says: an endpoint may add what it changed, and why."""


class Noted:
    """Adds to an entry of the audit how the request was answered.

    A caller who is refused for lack of a role has an entry as well, whatever they asked for.

    Args:
        app: What answers.
        audit: Where the entries are.
    """

    def __init__(self, app: ASGIApp, *, audit: SqlAudit) -> None:
        self._app = app
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                made = Headers(raw=message.get("headers", [])).get("Location")
                name = made and made.removeprefix(f"{scope['path']}/")
                await self._note(state.pop("act", None), message["status"], name)
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except Exception:
            await self._note(state.pop("act", None), 500, None)
            raise

    async def _note(self, act: Act | None, status: int, made: str | None) -> None:
        if act is None or (act.id is None and status != _FORBIDDEN):
            return
        if act.object is None and status < _REFUSED:
            act.object = made
        try:
            if act.id is None:
                await self._audit.begin(act, status)
            else:
                await self._audit.end(act, status)
        except PortError as error:
            logger.warning(
                "the audit lacks that %s of %s was answered with %s: %s",
                *(act.action, act.who, status, error),
            )


_INTRO: Final = """\
# Access

Generated by `python -m workers.shared.gateway.access`; a test compares the two.

Each operation of the API needs a token with a role. Each role includes those before it: viewer,
mapper, operator, admin. The claim `roles` of a token is a list, which counts in all organisations
of the token, or an object with a list for each organisation.

If an operation belongs to an **organisation**, the role counts in the organisation of what is read
or changed. If it belongs to the **installation**, only a list of roles opens it. A caller who lacks
the role gets 403, and the audit has an entry of the attempt. What belongs to another organisation
is not found (404).

Jobs, transfers and items of the catalogue may belong to no organisation. Such a job or transfer is
for operators with a list of roles; for all others it is not found. Such an item is for every caller
with a role.

Each change has an entry in the audit, also one by a form of a page: `GET /api/v1/audit` lists them.

| operation | least role | belongs to |
|---|---|---|
"""


def page() -> str:
    """Return the reference page of all operations, as Markdown."""
    rows = (
        f"| `{name}` | {least.role} | {'the installation' if least.of_all else 'an organisation'} |"
        for name, least in sorted(LEAST.items())
    )
    return _INTRO + "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
