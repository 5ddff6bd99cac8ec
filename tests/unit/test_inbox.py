"""Which runs the inbox of a person asks for."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from temporalio.client import Client

from workers.shared.services.identity import MAPPER, OPERATOR, Identity
from workers.shared.services.inbox import Inbox


class Asked:
    """A client that keeps what it is asked for, and finds nothing."""

    queries: list[str]

    def __init__(self) -> None:
        self.queries = []

    async def list_workflows(self, query: str, **more: Any) -> AsyncIterator[Any]:
        self.queries.append(query)
        for each in ():
            yield each


@pytest.mark.parametrize(("role", "sees_others"), [(MAPPER, False), (OPERATOR, True)])
async def test_only_runs_of_their_own_organisations_are_asked_for(
    role: str, sees_others: bool
) -> None:
    client = Asked()
    who = Identity("ann", (3, 4), frozenset({role}))
    assert await Inbox(cast(Client, client), cast(Any, None)).read(who) == []
    more = " OR OrganisationId IS NULL" if sees_others else ""
    own = f"AND (Pipeline IS NOT NULL AND (OrganisationId IN ('3', '4'){more}))"
    assert client.queries[0].endswith(own)
