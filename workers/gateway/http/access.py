"""Access before content: a caller without access is not shown what is wrong with a body."""

from collections.abc import Collection

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials
from starlette.requests import Request

from adapters.ports import PortError
from workers.gateway.http.auth import KeysUnavailable, Unauthorised
from workers.gateway.http.identity import BEARER, identify
from workers.services.errors import Forbidden, ServiceError, no_role
from workers.services.identity import IMPORTER, OPERATOR

Refusal = Unauthorised | KeysUnavailable | ServiceError | PortError

_READING = frozenset({"GET", "HEAD", "OPTIONS"})


async def refusal_of(request: Request, importing: Collection[str]) -> Refusal | None:
    """Why the caller of an endpoint has no access to it; None: nothing speaks against it so far.

    The web framework reads a body before it asks who sent it, so this is asked when the body, or
    another part of the request, cannot be read.

    Args:
        request: To an endpoint.
        importing: Paths of endpoints where an importer may change something; of the others only
            an operator may.
    """
    route = request.scope.get("route")
    if not isinstance(route, APIRoute) or not _asks_who(route.dependant):
        return None
    try:
        credentials: HTTPAuthorizationCredentials | None = await BEARER(request)
        who = await identify(request, credentials)
    except (Unauthorised, KeysUnavailable, PortError) as refused:
        return refused
    if not who.may_read:
        return no_role()
    if request.method in _READING:
        return None
    role = IMPORTER if route.path in importing else OPERATOR
    may = who.may_write if role == IMPORTER else who.is_operator
    return None if may else Forbidden(f"your roles do not allow this; ask for the role {role}")


def _asks_who(dependant: Dependant) -> bool:
    return dependant.call is identify or any(map(_asks_who, dependant.dependencies))
