"""Gateways that a person has logged in to, in one file of theirs."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import httpx

from docflow.client.errors import NotConfigured
from docflow.client.protocol import new_key

ADDRESS: Final = "DOCFLOW_ADDRESS"
TOKEN: Final = "DOCFLOW_TOKEN"  # noqa: S105 - the name of a variable
CONTEXT: Final = "DOCFLOW_CONTEXT"
FILE: Final = "DOCFLOW_CONTEXTS"
"""Path of the file, if it is not below the person's configuration folder."""


@dataclass(frozen=True)
class Context:
    """One gateway, and who asks it."""

    address: str
    token: str = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse what no request could be sent with.

        Raises:
            NotConfigured: The message does not repeat the token.
        """
        try:
            place = httpx.URL(self.address)
        except httpx.InvalidURL as error:
            raise NotConfigured(f"{self.address!r} is no address: {error}") from error
        if place.scheme not in ("http", "https") or not place.host:
            raise NotConfigured(f"{self.address!r} is no address: write https://HOST")
        if not self.token or not all("!" <= each <= "~" for each in self.token):
            raise NotConfigured("the token is blank, or holds characters that no token has")


@dataclass
class _Kept:
    current: str | None = None
    contexts: dict[str, Context] = field(default_factory=dict[str, Context])


@dataclass(frozen=True)
class Contexts:
    """The file of contexts; only its owner may read it.

    Args:
        environment: Says where it is.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @property
    def path(self) -> Path:
        """The file."""
        if given := self.environment.get(FILE):
            return Path(given)
        home = self.environment.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        return Path(home) / "docflow" / "contexts.json"

    def all(self) -> Mapping[str, Context]:
        """Every context by its name."""
        return self._read().contexts

    @property
    def current(self) -> str | None:
        """Name of the context that counts."""
        return self.environment.get(CONTEXT) or self._read().current

    def keep(self, name: str, context: Context) -> None:
        """Keep a context and make it the current one."""
        kept = self._read()
        kept.contexts[name] = context
        kept.current = name
        self._write(kept)

    def use(self, name: str) -> None:
        """Make a context the current one.

        Raises:
            NotConfigured: There is none of this name.
        """
        kept = self._read()
        if name not in kept.contexts:
            raise _unknown(name, kept)
        kept.current = name
        self._write(kept)

    def remove(self, name: str) -> None:
        """Forget a context and its token.

        Raises:
            NotConfigured: There is none of this name.
        """
        kept = self._read()
        if kept.contexts.pop(name, None) is None:
            raise _unknown(name, kept)
        if kept.current == name:
            kept.current = None
        self._write(kept)

    def chosen(self, address: str | None = None, token: str | None = None) -> Context:
        """Where to ask and as whom: as given, by the environment, or by the current context.

        Raises:
            NotConfigured: Something is missing; the message says how to give it.
        """
        address = address or self.environment.get(ADDRESS)
        token = token or self.environment.get(TOKEN)
        if address and token:
            return Context(address=address, token=token)
        if address or token:
            raise NotConfigured(f"set {ADDRESS} and {TOKEN} together")
        kept, name = self._read(), self.current
        if name is None:
            raise NotConfigured(
                f"no gateway is known: `docflow login ADDRESS`, or set {ADDRESS} and {TOKEN}"
            )
        if name not in kept.contexts:
            raise _unknown(name, kept)
        return kept.contexts[name]

    def _read(self) -> _Kept:
        try:
            found = json.loads(self.path.read_bytes())
            contexts = {name: Context(**each) for name, each in found["contexts"].items()}
            return _Kept(found["current"], contexts)
        except (FileNotFoundError, NotADirectoryError):
            return _Kept()
        except OSError as error:
            raise NotConfigured(f"cannot read {self.path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise NotConfigured(f"{self.path} is damaged: remove it, and log in again") from error

    def _write(self, kept: _Kept) -> None:
        path = self.path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = path.with_name(f"{path.name}.{new_key()}")
        text = json.dumps(asdict(kept), indent=2) + "\n"
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        os.replace(partial, path)


def _unknown(name: str, kept: _Kept) -> NotConfigured:
    there = ", ".join(sorted(kept.contexts)) or "none"
    return NotConfigured(f"there is no context {name}; there are: {there}")
