"""Providers of OpenID Connect: a real one by a package of node, and one of answers made up."""

import json
import os
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx

from stack.children import child, wait_for_port
from stack.node import search_path

_PROGRAM = Path(__file__).with_name("oidc_provider.mjs")
ACCOUNTS: Mapping[str, Mapping[str, Any]] = {
    "ada": {"name": "Ada Lovelace", "email": "ada@example.org", "groups": ["mappers-1"]},
    "olga": {"name": "Olga", "groups": ["staff", "operators"]},
    "stray": {"name": "Stray", "email": "stray@example.org", "groups": ["gardeners"]},
}


@dataclass(frozen=True)
class RunningProvider:
    """A provider that listens."""

    issuer: str
    gateways: Sequence[str]
    """Addresses that it sends people back to."""

    def declared(self, title: str = "Club login", **changes: Any) -> Mapping[str, Any]:
        """As an installation declares it."""
        return {
            "title": title,
            "issuer": self.issuer,
            "client_id": "docflow",
            "client_secret": "CLUB_SECRET",
            "scopes": "openid profile email groups",
            "groups": {
                "mappers-1": {"roles": "mapper", "organisations": ["1"]},
                "operators": {"roles": ["operator"]},
            },
            **changes,
        }


@asynccontextmanager
async def oidc_provider(
    folder: Path, port: int, names: Sequence[str], gateways: Sequence[str]
) -> AsyncGenerator[RunningProvider]:
    """Run a provider.

    Args:
        folder: Takes its log.
        port: Where it listens.
        names: That gateways know it by.
        gateways: Addresses of those.
    """
    client = {
        "client_id": "docflow",
        "client_secret": "s3cret of tests",
        "redirect_uris": [f"{at}/sign-in/{name}/callback" for at in gateways for name in names],
        "post_logout_redirect_uris": [f"{at}/sign-in" for at in gateways],
    }
    command = ["node", str(_PROGRAM), str(port), json.dumps([client]), json.dumps(ACCOUNTS)]
    log = folder / f"oidc-{port}.log"
    async with child(command, log, {**os.environ, "PATH": search_path()}) as process:
        await wait_for_port(process, port, "oidc-provider", log)
        yield RunningProvider(f"http://localhost:{port}", gateways)


class Person:
    """A person with a browser: one jar of cookies for gateways and providers alike."""

    def __init__(self) -> None:
        self.client = httpx.AsyncClient(timeout=30)

    async def __aenter__(self) -> "Person":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.aclose()

    async def open(self, address: str, **sent: Any) -> httpx.Response:
        """Follow redirects, and pages that lead further by themselves."""
        method = "POST" if "data" in sent else "GET"
        answer = await self.client.request(method, address, follow_redirects=True, **sent)
        further = re.search(r'http-equiv="refresh" content="0; url=([^"]*)"', answer.text)
        if further is None:
            return answer
        return await self.open(urljoin(str(answer.url), further[1].replace("&amp;", "&")))

    async def log_in(self, answer: httpx.Response, account: str, *, to: str) -> httpx.Response:
        """Fill in the provider's form, and return what docflow answers first.

        Args:
            answer: The form.
            account: That they have at the provider.
            to: Address that the provider must lead to; it is not opened yet.
        """
        assert "Log in" in answer.text, answer.text
        answer = await self.client.post(str(answer.url), data={"account": account})
        while not answer.headers["location"].startswith(to):
            answer = await self.client.get(urljoin(str(answer.url), answer.headers["location"]))
            assert answer.is_redirect, answer.text
        return answer

    async def signs_in(self, gateway: str, name: str, account: str, next: str = "/") -> Any:
        """Sign in by a provider; the page that docflow shows then."""
        form = await self.open(f"{gateway}/sign-in/{name}", params={"next": next})
        back = await self.log_in(form, account, to=f"{gateway}/sign-in/{name}/callback")
        return await self.open(back.headers["location"])
