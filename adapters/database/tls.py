"""TLS of a PostgreSQL server by files, as the options of a URL name them for libpq."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

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
