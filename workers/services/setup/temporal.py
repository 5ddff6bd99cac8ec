"""What docflow needs of Temporal: search attributes, and fairness between those who share it."""

import asyncio
import math
import shlex
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from temporalio.client import Client

from workers.services import search_attributes
from workers.services.setup.fairness import is_fair
from workers.services.setup.requirements import Finding, Requirement, State

QUERY_SECONDS: Final = 60.0
"""A query names the search attributes so often while a process works: Temporal allows a namespace
few queries in a second, for all of its processes together."""
_CLOUD_HOSTS: Final = (".tmprl.cloud", ".api.temporal.io")
_FAIRNESS_SETTINGS: Final = "matching.enableFairness and matching.useNewMatcher"


class Connection:
    """The client of a process: connected when it is first asked for, and until that succeeds.

    Args:
        connect: Connects.
    """

    def __init__(self, connect: Callable[[], Awaitable[Client]]) -> None:
        self._connect = connect
        self._connecting = asyncio.Lock()
        self._client: Client | None = None

    async def client(self) -> Client:
        """The client.

        Raises:
            SettingsError: A setting of Temporal cannot be used.
            TemporalUnreachable: There is no answer.
        """
        async with self._connecting:
            if self._client is None:
                self._client = await self._connect()
            return self._client


def is_cloud(client: Client) -> bool:
    """Whether a client speaks to Temporal Cloud, whose namespaces are changed by other tools."""
    config = client.service_client.config
    host = config.target_host.rsplit(":", 1)[0].lower()
    return host.endswith(_CLOUD_HOSTS) or config.api_key is not None


def search_attributes_of(connection: Connection) -> Requirement:
    """The search attributes of docflow in the namespace."""

    async def check() -> Finding:
        client = await connection.client()
        other = await search_attributes.of_another_type(client)
        if other:
            wanted = search_attributes.types()
            problem = ", ".join(
                f"{name} is {type}, not {wanted[name]}" for name, type in other.items()
            )
            cure = "remove those, or use another namespace (TEMPORAL_NAMESPACE)"
            return Finding(State.DIFFERS, f"{_place(client)}: {problem}", cure)
        names = await search_attributes.missing(client)
        if names:
            problem = f"{', '.join(names)} in {_place(client)}"
            return Finding(State.MISSING, problem, _command(client, names))
        return Finding(State.OK, _place(client))

    async def make() -> Finding:
        client = await connection.client()
        names = await search_attributes.missing(client)
        command, place = _command(client, names), _place(client)
        if is_cloud(client):
            return Finding(State.MISSING, f"{', '.join(names)} in {place}", command)
        try:
            await search_attributes.make(client, names)
        except search_attributes.NotMade as error:
            problem = f"{', '.join(names)} in {place} cannot be made: {error}"
            return Finding(State.MISSING, problem, command)
        return Finding(State.MADE, f"{', '.join(names)} in {place}")

    seen = -math.inf

    async def watch() -> Finding:
        nonlocal seen
        client = await connection.client()
        await search_attributes.require_answer(client)
        time = asyncio.get_running_loop().time
        if time() - seen > QUERY_SECONDS:
            if not await search_attributes.usable(client):
                seen = -math.inf
                return await check()
            seen = time()
        return Finding(State.OK, _place(client))

    return Requirement(
        "search attributes",
        check,
        consequence="no run can be started without them",
        cure="run `docflow setup`",
        make=make,
        watch=watch,
    )


def fairness_of(connection: Connection) -> Requirement:
    """Whether the server lets those who share a task queue take turns."""

    async def check() -> Finding:
        client = await connection.client()
        if await is_fair(client):
            return Finding(State.OK, "two keys took turns")
        if is_cloud(client):
            cure = "switch it on in the settings of the namespace"
        else:
            cure = f"set {_FAIRNESS_SETTINGS} in the dynamic configuration of the server"
        return Finding(State.MISSING, f"two keys do not take turns in {_place(client)}", cure)

    return Requirement(
        "fairness",
        check,
        consequence="a sender of thousands of documents at once delays all others",
        cure=f"see {_FAIRNESS_SETTINGS}",
        needed=False,
    )


def _command(client: Client, names: Sequence[str]) -> str:
    types = search_attributes.types()
    namespace = shlex.quote(client.namespace)
    if is_cloud(client):
        pairs = " ".join(f"--search-attribute {name}={types[name]}" for name in names)
        return f"run `tcld namespace search-attributes add --namespace {namespace} {pairs}`"
    pairs = " ".join(f"--name {name} --type {types[name]}" for name in names)
    command = f"temporal operator search-attribute create --namespace {namespace} {pairs}"
    return f"run `docflow setup`, or `{command}`"


def _place(client: Client) -> str:
    return f"namespace {client.namespace} at {client.service_client.config.target_host}"
