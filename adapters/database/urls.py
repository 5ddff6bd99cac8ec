"""Addresses of databases: what they may say, and what the drivers are given."""

from collections.abc import Mapping
from typing import Final

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from adapters.database import tls

_POSTGRES: Final = ("postgres", "postgresql", "postgresql+asyncpg")
_POSTGRES_OPTIONS: Final = frozenset(
    {
        *("gsslib", "host", "krbsrvname", "passfile", "port", "ssl", "sslmode"),
        *("target_session_attrs", *tls.FILES),
    }
)
_SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_SQLITE: Final = ("sqlite", "sqlite+aiosqlite")


def parsed(url: str) -> URL:
    """A URL as the drivers take it; the mode of TLS is its option `ssl`.

    Raises:
        ValueError: It is not an address of a database; the message says why, without its password.
    """
    found = _made(url)
    if found.port is not None and not 0 < found.port < 1 << 16:
        raise ValueError("the port is not a number up to 65535")
    if found.drivername in _SQLITE:
        return _sqlite_url(found)
    if found.drivername in _POSTGRES:
        return _postgres_url(found)
    raise ValueError(
        f"database {found.drivername!r} is not supported; use sqlite:/// or postgresql://"
    )


def check_url(url: str) -> None:
    """See whether `open_database` would take a URL.

    Raises:
        ValueError: It would not; the message says why.
    """
    tls.context_of(parsed(url).query)


def with_options(url: str, options: Mapping[str, str]) -> str:
    """A URL with options that it does not have yet; an address of SQLite as it is.

    Raises:
        ValueError: It cannot be read.
    """
    found = _made(url)
    if found.drivername not in _POSTGRES:
        return url
    known = {"sslmode" if name == "ssl" else name for name in found.query}
    further = {name: value for name, value in options.items() if name not in known}
    if not further:
        return url
    return found.update_query_dict(further).render_as_string(hide_password=False)


def _made(url: str) -> URL:
    try:
        return make_url(url)
    except ArgumentError as error:
        raise ValueError("it cannot be read; use sqlite:/// or postgresql://") from error
    except ValueError:
        # What it says may hold a part of the password.
        raise ValueError("the port is not a number") from None


def _sqlite_url(url: URL) -> URL:
    if url.database in (None, "", ":memory:"):
        raise ValueError("SQLite needs a file: sqlite:///path/to/docflow.db")
    if "\0" in (url.database or ""):
        raise ValueError("the name of the file holds a null character")
    _refuse_options(url, frozenset())
    return url.set(drivername="sqlite+aiosqlite")


def _postgres_url(url: URL) -> URL:
    _refuse_options(url, _POSTGRES_OPTIONS)
    if {"ssl", "sslmode"} <= url.query.keys():
        raise ValueError("sslmode and ssl are the same option; keep one")
    for name, value in url.query.items():
        if name in tls.FILES and not isinstance(value, str):
            raise ValueError(f"{name} is given more than once")
    mode = url.query.get("sslmode", url.query.get("ssl"))
    if mode is not None:
        if mode not in _SSL_MODES:
            raise ValueError(f"sslmode must be one of {', '.join(_SSL_MODES)}, not {mode!r}")
        url = url.difference_update_query(["sslmode"]).update_query_dict({"ssl": mode})
    return url.set(drivername="postgresql+asyncpg")


def _refuse_options(url: URL, known: frozenset[str]) -> None:
    """Drivers fail on options that they do not know, or ignore them."""
    if unknown := sorted(url.query.keys() - known):
        allowed = f"known are {', '.join(sorted(known))}" if known else "SQLite takes none"
        raise ValueError(f"option {unknown[0]!r} is unknown; {allowed}")
