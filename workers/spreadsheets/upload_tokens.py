"""Upload tokens over HTTP: what the server of another site gives to its importer."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Final, Literal, Self, cast

from fastapi import APIRouter, Depends, Request
from pydantic import AfterValidator, Field, StringConstraints, model_validator

from adapters.ports.access import UploadGrant
from workers.shared.gateway.access import TheAct
from workers.shared.gateway.http.problems import problem_responses
from workers.shared.gateway.http.requests import Who
from workers.shared.services.access import ApiTokenService
from workers.shared.services.identity import MAPPER, Identity
from workers.spreadsheets.http import TheService
from workers.spreadsheets.upload_form import StrictBody, UploadFields
from workflows.shared.contracts import PlainRecord, served
from workflows.spreadsheets.mappings import EntityId, TypeName
from workflows.spreadsheets.runs import ScopeName, ScopeValue

_LONGEST: Final = 3_600
"""Seconds that a token may last: a page that is open for longer gets another one."""
_USUAL: Final = 900
_ORIGIN: Final = (
    r"^https?://(?:[a-z0-9](?:[a-z0-9-]{0,62}\.)*[a-z0-9-]{0,62}|\[[0-9a-f:.]{2,45}\])"
    r"(?::[1-9][0-9]{0,4})?$"
)


def _as_browsers_send_it(origin: str) -> str:
    scheme, _, place = origin.partition("://")
    if place.endswith({"http": ":80", "https": ":443"}[scheme]):
        raise ValueError("leave out the port that the scheme has anyway")
    return origin


Origin = Annotated[
    str,
    StringConstraints(max_length=200, pattern=_ORIGIN),
    AfterValidator(_as_browsers_send_it),
]
Colour = Annotated[str, StringConstraints(pattern=r"^#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$")]


class ImporterTheme(StrictBody):
    """What the importer looks like; what is absent is as in docflow's own pages."""

    scheme: Literal["light", "auto"] | None = Field(
        None, description="`auto`: dark if the browser prefers it; else light", examples=["auto"]
    )
    page: Colour | None = Field(None, description="Background", examples=["#ffffff"])
    surface: Colour | None = Field(None, description="Background of cards", examples=["#ffffff"])
    line: Colour | None = Field(None, description="Borders", examples=["#d5dae2"])
    text: Colour | None = Field(None, description="Text", examples=["#1a2230"])
    accent: Colour | None = Field(None, description="Links and main buttons", examples=["#0a6b5c"])
    on_accent: Colour | None = Field(None, description="Text of main buttons", examples=["#ffffff"])
    radius: Annotated[str, StringConstraints(pattern=r"^(?:[0-9]|[1-3][0-9])px$")] | None = Field(
        None, description="Of corners, up to 39px", examples=["4px"]
    )
    font: (
        Annotated[
            str,
            StringConstraints(
                max_length=200, pattern=r"^[A-Za-z][A-Za-z0-9 -]*(?:, ?[A-Za-z][A-Za-z0-9 -]*)*$"
            ),
        ]
        | None
    ) = Field(
        None,
        description="Font families that the visitor's system has",
        examples=["Georgia, serif"],
    )

    def given(self) -> Mapping[str, str]:
        """What is not absent."""
        return cast("Mapping[str, str]", self.model_dump(exclude_none=True))


class NewUploadToken(StrictBody):
    """An upload token to make, or to renew: then `session` and `lasts_seconds` say it all."""

    session: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{16}$")] | None = Field(
        None,
        description="Of the token that is renewed: the new one is for what that one was",
        examples=[None],
    )
    name: (
        Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")] | None
    ) = Field(None, description="Your user, as docflow calls who uploads", examples=["Ada of Acme"])
    import_type: TypeName | None = Field(
        None, description="What the rows are", examples=["EVENT_PARTICIPANT"]
    )
    context_id: EntityId | None = Field(
        None, description="Event, membership period or race, if the type has one", examples=[7]
    )
    scope: dict[ScopeName, ScopeValue] = Field(
        default_factory=dict,
        max_length=8,
        description="What all rows of a declared type share",
        examples=[{}],
    )
    organisation_id: EntityId | None = Field(
        None, description="The first one of your token if it is absent", examples=[1]
    )
    origins: tuple[Origin, ...] = Field(
        (),
        max_length=10,
        description="Sites that may show the importer, as browsers send them in `Origin`",
        examples=[["https://shop.example"]],
    )
    theme: ImporterTheme = Field(
        default_factory=lambda: ImporterTheme.model_validate({}),
        description="What the importer looks like",
        examples=[{"accent": "#0a6b5c", "radius": "4px"}],
    )
    language: Literal["en", "de"] | None = Field(
        None, description="Of the importer; that of the browser if it is absent", examples=["de"]
    )
    lasts_seconds: int = Field(
        _USUAL, ge=1, le=_LONGEST, description="How long the token is valid", examples=[_USUAL]
    )

    @model_validator(mode="after")
    def _says_what_it_is_for(self) -> Self:
        given = self.model_fields_set - {"session", "lasts_seconds"}
        if self.session is not None:
            given = {each for each in given if getattr(self, each) is not None}
            if given:
                raise ValueError(f"leave out {min(given)}: the token is for what the first one was")
        elif self.name is None or self.import_type is None or not self.origins:
            raise ValueError("send name, import_type and origins; or session, to renew a token")
        return self


class MadeUploadToken(PlainRecord):
    """A new upload token, with its text."""

    id: Annotated[int, served("Number of the token", 8)]
    session: Annotated[
        str, served("Stays when the token is renewed: /embed/{session}", "mZ3fR9sQ0aXyT1Lk")
    ]
    token: Annotated[
        str, served("What the importer sends as bearer token; it is shown once", "docflow_8_kX...")
    ]
    expires_at: Annotated[datetime, served("When it ends to be valid", "2026-05-04T10:15:00Z")]


def _tokens_of(request: Request) -> ApiTokenService:
    return cast("ApiTokenService", request.app.state.api_tokens)


router = APIRouter(
    prefix="/api/v1", tags=["tokens"], responses=problem_responses(401, 403, 422, 503)
)


@router.post("/upload-tokens", status_code=201, responses=problem_responses(400))
async def make_upload_token(
    service: TheService,
    tokens: Annotated[ApiTokenService, Depends(_tokens_of)],
    who: Who,
    act: TheAct,
    body: NewUploadToken,
) -> MadeUploadToken:
    """Make a short-lived token for one kind of upload, for an importer inside your own pages.

    Call this from your server, for a user who is signed in there. The token can make uploads of
    this type, and map, review and confirm those that its session has made.
    """
    lasts = timedelta(seconds=body.lasts_seconds)
    if body.session is not None:
        made, text = await tokens.renew_upload_token(who, body.session, lasts)
    else:
        assert body.name is not None and body.import_type is not None
        fields = UploadFields.model_validate(
            body.model_dump(include={"import_type", "context_id", "organisation_id", "scope"})
        )
        organisation = await service.check_upload(who, fields)
        # The token has this role, whichever its maker has.
        await service.check_upload(_mapper(who, organisation), fields)
        grant = UploadGrant(
            session="",
            import_type=body.import_type,
            context_id=body.context_id,
            scope=body.scope,
            origins=body.origins,
            theme=body.theme.given(),
            language=body.language,
        )
        made, text = await tokens.make_upload_token(who, body.name, organisation, grant, lasts)
    assert made.upload is not None and made.expires_at is not None
    act.organisation_id, act.after = made.organisation_id, made.model_dump(mode="json")
    return MadeUploadToken(
        id=made.id, session=made.upload.session, token=text, expires_at=made.expires_at
    )


def _mapper(who: Identity, organisation: int) -> Identity:
    return Identity(
        who.subject,
        (organisation,),
        frozenset(),
        roles_in={organisation: frozenset({MAPPER})},
    )
