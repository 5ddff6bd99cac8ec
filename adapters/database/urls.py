"""Addresses of databases: what they may say, TLS by files, and what the drivers are given."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

FILES: Final = ("sslrootcert", "sslcert", "sslkey")
"""Certificates that the server's is checked with; the client's own, and its key."""
SYSTEM: Final = "system"
"""In the place of a file: the certificates that this machine trusts."""
_CHECKED: Final = ("require", "verify-ca", "verify-full")
"""Modes in which root certificates mean that the server's certificate is checked."""


def context_of(options: Mapping[str, object]) -> ssl.SSLContext | None:
    """What connections are made with; None: no file is named, the driver does it by the mode.

    Root certificates without a mode mean `verify-full`.

    Source: https://www.postgresql.org/docs/current/libpq-ssl.html

    Args:
        options: Of a URL, with the mode as `ssl`.

    Raises:
        ValueError: A file cannot be used, or does not go with the others; the message names it.
    """
    files = {name: str(options[name]) for name in FILES if name in options}
    if not files:
        return None
    root = files.get("sslrootcert")
    mode = str(options.get("ssl", "require" if root is None else "verify-full"))
    _refuse_mixed(files, mode)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = mode == "verify-full"
    context.verify_mode = ssl.CERT_REQUIRED if root is not None else ssl.CERT_NONE
    if root == SYSTEM:
        context.load_default_certs()
    elif root is not None:
        _load_root(context, root)
    if "sslcert" in files:
        _load_own(context, files["sslcert"], files["sslkey"])
    return context


def _refuse_mixed(files: Mapping[str, str], mode: str) -> None:
    if mode not in _CHECKED:
        raise ValueError(f"{next(iter(files))} needs sslmode={', '.join(_CHECKED)}, not {mode}")
    if mode != "require" and "sslrootcert" not in files:
        raise ValueError(f"sslmode={mode} needs sslrootcert: a file, or {SYSTEM!r}")
    if ("sslcert" in files) != ("sslkey" in files):
        raise ValueError("sslcert and sslkey belong together")
    if files.get("sslrootcert") == SYSTEM and mode != "verify-full":
        # Those authorities certify every site: only the name makes the difference.
        raise ValueError(f"sslrootcert={SYSTEM} needs sslmode=verify-full")


def _load_root(context: ssl.SSLContext, file: str) -> None:
    _require_readable("sslrootcert", file)
    try:
        context.load_verify_locations(cafile=file)
    except ssl.SSLError:
        raise ValueError(f"sslrootcert: {file} holds no certificate in PEM format") from None


def _load_own(context: ssl.SSLContext, certificate: str, key: str) -> None:
    _require_readable("sslcert", certificate)
    _require_readable("sslkey", key)
    try:
        # Without a password OpenSSL would ask the terminal for that of an encrypted key.
        context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError:
        raise ValueError(
            f"sslcert and sslkey: {certificate} and {key} are not a certificate in PEM format and "
            "its key without a password"
        ) from None


def _require_readable(option: str, file: str) -> None:
    try:
        Path(file).open("rb").close()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not the name of a file"
        raise ValueError(f"{option}: {file} cannot be read: {reason}") from None


_POSTGRES: Final = ("postgres", "postgresql", "postgresql+asyncpg")
_POSTGRES_OPTIONS: Final = frozenset(
    {
        *("gsslib", "host", "krbsrvname", "passfile", "port", "ssl", "sslmode"),
        *("target_session_attrs", *FILES),
    }
)
_SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


def parsed(url: str) -> URL:
    """A URL as the drivers take it; the mode of TLS is its option `ssl`.

    Raises:
        ValueError: It is not an address of a database; the message says why, without its password.
    """
    found = _made(url)
    if found.port is not None and not 0 < found.port < 1 << 16:
        raise ValueError("the port is not a number up to 65535")
    if found.drivername not in _POSTGRES:
        raise ValueError(f"database {found.drivername!r} is not supported; use postgresql://")
    return _postgres_url(found)


def check_url(url: str) -> None:
    """See whether `open_database` would take a URL.

    Raises:
        ValueError: It would not; the message says why.
    """
    context_of(parsed(url).query)


def with_options(url: str, options: Mapping[str, str]) -> str:
    """A URL with options that it does not have yet.

    Raises:
        ValueError: It cannot be read.
    """
    found = _made(url)
    known = {"sslmode" if name == "ssl" else name for name in found.query}
    further = {name: value for name, value in options.items() if name not in known}
    if not further:
        return url
    return found.update_query_dict(further).render_as_string(hide_password=False)


def _made(url: str) -> URL:
    try:
        return make_url(url)
    except ArgumentError as error:
        raise ValueError("it cannot be read; use postgresql://") from error
    except ValueError:
        # What it says may hold a part of the password.
        raise ValueError("the port is not a number") from None


def _postgres_url(url: URL) -> URL:
    # Drivers fail on options that they do not know, or ignore them.
    if unknown := sorted(url.query.keys() - _POSTGRES_OPTIONS):
        known = ", ".join(sorted(_POSTGRES_OPTIONS))
        raise ValueError(f"option {unknown[0]!r} is unknown; known are {known}")
    if {"ssl", "sslmode"} <= url.query.keys():
        raise ValueError("sslmode and ssl are the same option; keep one")
    for name, value in url.query.items():
        if name in FILES and not isinstance(value, str):
            raise ValueError(f"{name} is given more than once")
    mode = url.query.get("sslmode", url.query.get("ssl"))
    if mode is not None:
        if mode not in _SSL_MODES:
            raise ValueError(f"sslmode must be one of {', '.join(_SSL_MODES)}, not {mode!r}")
        url = url.difference_update_query(["sslmode"]).update_query_dict({"ssl": mode})
    return url.set(drivername="postgresql+asyncpg")
