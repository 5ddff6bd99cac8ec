"""Tokens of programs over HTTP."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, cast

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from adapters.ports.access import ApiToken
from workers.shared.gateway.access import TheAct
from workers.shared.gateway.http.problems import problem_responses
from workers.shared.gateway.http.requests import Who
from workers.shared.services.access import ApiTokenService
from workflows.shared.contracts import PlainRecord, served

_LARGEST_ID: Final = 2**53
_ONE: Final = problem_responses(404)
_MADE: Final[dict[int | str, dict[str, Any]]] = {
    **problem_responses(400),
    201: {
        "headers": {
            "Location": {"schema": {"type": "string"}, "description": "Address of the token"}
        }
    },
}


class NewToken(BaseModel):
    """A token to make."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(
        min_length=1,
        max_length=100,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        description="What will use it",
        examples=["planning system"],
    )
    organisation_id: int | None = Field(
        default=None,
        ge=1,
        le=_LARGEST_ID,
        description="Where its roles count; null: for what belongs to no organisation",
        examples=[3],
    )
    roles: tuple[Literal["viewer", "mapper", "operator", "admin"], ...] = Field(
        min_length=1, max_length=4, description="Its roles", examples=[["mapper"]]
    )
    expires_at: AwareDatetime | None = Field(
        default=None,
        description="When it ends to be valid; null: never",
        examples=["2027-05-04T10:00:00Z"],
    )


class MadeToken(ApiToken):
    """A new token, with its text."""

    token: Annotated[
        str, served("What the program sends as bearer token; it is shown once", "docflow_7_mZ3f...")
    ]


class TokenPage(PlainRecord):
    """Tokens of programs, the newest first."""

    items: Annotated[Sequence[ApiToken], served("The tokens", [])]
    next: Annotated[str | None, served("null: there are no more", None)] = None


def _service_of(request: Request) -> ApiTokenService:
    return cast("ApiTokenService", request.app.state.api_tokens)


TheService = Annotated[ApiTokenService, Depends(_service_of)]
Id = Annotated[int, Path(ge=1, le=_LARGEST_ID, description="Number of the token", examples=[7])]

router = APIRouter(
    prefix="/api/v1", tags=["tokens"], responses=problem_responses(401, 403, 422, 503)
)


@router.post("/tokens", status_code=201, responses=_MADE)
async def make_token(
    service: TheService, who: Who, act: TheAct, body: NewToken, response: Response
) -> MadeToken:
    """Make a token for a program; its text is in this answer alone."""
    made, text = await service.make(
        who, body.name, body.organisation_id, body.roles, body.expires_at
    )
    act.organisation_id, act.after = made.organisation_id, made.model_dump(mode="json")
    response.headers["location"] = f"{router.prefix}/tokens/{made.id}"
    return MadeToken(**dict(made), token=text)


@router.get("/tokens")
async def list_tokens(service: TheService, who: Who) -> TokenPage:
    """List the tokens of programs, also those that are no longer valid."""
    return TokenPage(items=await service.list(who))


@router.get("/tokens/{id}", responses=_ONE)
async def get_token(service: TheService, who: Who, id: Id) -> ApiToken:
    """Show a token of a program, without its secret."""
    return await service.get(who, id)


@router.delete("/tokens/{id}", status_code=204, responses=_ONE)
async def revoke_token(service: TheService, who: Who, act: TheAct, id: Id) -> None:
    """Revoke a token: within seconds no gateway accepts it."""
    before = await service.revoke(who, id)
    act.organisation_id, act.before = before.organisation_id, before.model_dump(mode="json")
