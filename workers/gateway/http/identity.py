"""Who asks an endpoint of the API."""

from typing import Annotated, Final, cast

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from workers.gateway.http.auth import Tokens, Unauthorised
from workers.services.identity import Identity

BEARER: Final = HTTPBearer(
    auto_error=False,
    bearerFormat="JWT",
    scheme_name="token",
    description="A JSON Web Token with the claims sub, organisations and roles.",
)


async def identify(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)],
) -> Identity:
    """Read the token of a request.

    Raises:
        Unauthorised: There is none, or it is not valid.
        KeysUnavailable: It cannot be checked at the moment.
    """
    if credentials is None:
        raise Unauthorised("send a token in the header Authorization: Bearer ...", missing=True)
    tokens = cast("Tokens", request.app.state.tokens)
    return await tokens.identify(credentials.credentials)


Who = Annotated[Identity, Depends(identify)]
