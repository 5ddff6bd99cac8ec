"""Connections to SFTP servers whose host keys are pinned."""

import asyncio
import base64
import logging
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from typing import Final

import asyncssh

from adapters.http import AddressRefused
from adapters.places.base import Credentials, Pace, Timeouts
from adapters.places.egress import Egress
from adapters.ports.errors import Denied, PortError
from adapters.ports.places import (
    FileMissing,
    LoginRefused,
    NameRefused,
    PartnerAway,
    PlaceError,
    UnknownHostKey,
)
from workflows.transfers.partners import (
    Old,
    Partner,
    fingerprint,
    permitted,
    pinned_keys,
    valid_host_keys,
)
from workflows.transfers.paths import printable

_ALIVE_SECONDS: Final = 5.0
KEEPALIVES: Final = 3
"""A connection that answers none of so many is dead, whatever TCP believes."""
_RSA: Final = ("rsa-sha2-512", "rsa-sha2-256", "ssh-rsa")
_ALGORITHMS: Final = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
_CIPHERS: Final = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"
"""These before the others: processors have instructions for them."""

_PACKET: Final = 1 << 18
"""Bytes that a server may send at once: each packet costs the same, whatever it holds."""

# It logs every file that is opened.
logging.getLogger("asyncssh").setLevel(logging.WARNING)


class _Client(asyncssh.SSHClient):
    """Remembers a key that is not pinned; nothing is accepted here."""

    def __init__(self) -> None:
        self.shown: asyncssh.SSHKey | None = None
        self.is_expired = False

    def password_change_requested(self, prompt: str, lang: str) -> tuple[str, str]:
        """A password is changed by people alone."""
        self.is_expired = True
        return NotImplemented

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        self.shown = key
        return False


@dataclass(frozen=True)
class SftpSession:
    """A session, and the pace of all bytes that pass in it, of however many steps."""

    client: asyncssh.SFTPClient
    pace: Pace

    async def is_alive(self) -> bool:
        """Whether the server still answers in it."""
        try:
            async with asyncio.timeout(_ALIVE_SECONDS):
                await self.client.realpath(".")
        except (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection):
            return False
        except asyncssh.SFTPError:
            # A server that does not know the request has answered it.
            return True
        except (asyncssh.Error, OSError, ValueError):
            return False
        return True


@asynccontextmanager
async def connected(
    partner: Partner,
    credentials: Credentials,
    today: date,
    egress: Egress,
    timeouts: Timeouts,
) -> AsyncGenerator[asyncssh.SFTPClient]:
    """An SFTP session, for the length of the block.

    Raises:
        PartnerAway: The server cannot be reached.
        LoginRefused: It does not let us in.
        UnknownHostKey: It shows a key that is not pinned; nothing was sent to it.
        Denied: It may not be connected to, or our key cannot be read.
    """
    client = _Client()
    connection = await _connection(partner, credentials, today, egress, timeouts, client)
    try:
        with translated(partner, credentials):
            async with asyncio.timeout(timeouts.login):
                # A name that is not UTF-8 is listed with the others, and refused by itself.
                sftp = await connection.start_sftp_client(path_errors="surrogateescape")
        yield sftp
        sftp.exit()
    finally:
        connection.abort()
        await connection.wait_closed()


async def _connection(
    partner: Partner,
    credentials: Credentials,
    today: date,
    egress: Egress,
    timeouts: Timeouts,
    client: _Client,
) -> asyncssh.SSHClientConnection:
    host, port = partner.host or "", partner.port or 22
    known = [asyncssh.import_public_key(each.key) for each in valid_host_keys(partner, today)]
    with translated(partner, credentials):
        keys = _client_keys(partner, credentials)
        sock = await egress.connect(host, port)
        try:
            return await asyncssh.connect(
                host,
                port,
                sock=sock,
                config=None,
                username=partner.user or "",
                password=credentials.password,
                client_keys=keys,
                agent_path=None,
                gss_host=None,
                known_hosts=(known, [], []),
                server_host_key_algs=[*_algorithms(known), *permitted(partner, Old.KEYS)],
                client_factory=lambda: client,
                encryption_algs=_added(partner, Old.CIPHERS) or _CIPHERS,
                kex_algs=_added(partner, Old.KEX),
                mac_algs=_added(partner, Old.MACS),
                compression_algs=None,
                max_pktsize=_PACKET,
                login_timeout=timeouts.login,
                keepalive_interval=timeouts.keepalive,
                keepalive_count_max=KEEPALIVES,
            )
        except asyncssh.PermissionDenied as error:
            why = "the password has expired" if client.is_expired else error.reason
            raise LoginRefused(
                partner.name,
                f"{partner.name} does not let {partner.user} in: {credentials.hide(why)}; once "
                "that is put right, runs continue within five minutes",
            ) from None
        except asyncssh.KeyExchangeFailed as error:
            raise PartnerAway(
                partner.name,
                f"{partner.name} and docflow have no algorithm in common: "
                f"{credentials.hide(error.reason)[:300]}; `algorithms` in its record permits old "
                "ones by name",
            ) from None
        except asyncssh.HostKeyNotVerifiable:
            if client.shown is None:
                raise
            raise _unknown(partner, client.shown, today) from None
        finally:
            # Where the connection was made, it is asyncio's by now.
            if client.shown is not None:
                sock.close()


def _client_keys(partner: Partner, credentials: Credentials) -> list[asyncssh.SSHKey]:
    if credentials.private_key is None:
        return []
    key = f"the private key {partner.private_key} of {partner.name}"
    try:
        return [asyncssh.import_private_key(credentials.private_key, credentials.passphrase)]
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError):
        if _is_locked_openssh_key(credentials.private_key):
            raise Denied(
                f"{key} has a passphrase in OpenSSH's format, which is read only where the package "
                "bcrypt is installed beside docflow; or take the passphrase off "
                "(`ssh-keygen -p -N '' -f KEY`), and let the store of secrets protect it"
            ) from None
        raise Denied(
            f"{key} is not a key that can be read with {partner.passphrase or 'no passphrase'}"
        ) from None


def _is_locked_openssh_key(text: str) -> bool:
    """Whether a key is encrypted as `ssh-keygen` does (PROTOCOL.key of OpenSSH)."""
    begin, _, rest = text.strip().partition("\n")
    if begin.strip() != "-----BEGIN OPENSSH PRIVATE KEY-----":
        return False
    with suppress(ValueError):
        return b"bcrypt" in base64.b64decode(rest.partition("-----")[0])[:64]
    return False


def _algorithms(known: Sequence[asyncssh.SSHKey]) -> list[str]:
    """Those of pinned keys first; a server that has another key shows it, and is refused by it."""
    pinned: list[str] = []
    for key in known:
        name = key.get_algorithm()
        pinned += _RSA if name == "ssh-rsa" else (name,)
    return list(dict.fromkeys((*pinned, *_ALGORITHMS)))


def _added(partner: Partner, old: Old) -> str | tuple[()]:
    """What asyncssh is given to offer old algorithms behind its own; nothing: its own alone."""
    names = permitted(partner, old)
    return f"+{','.join(names)}" if names else ()


def _unknown(partner: Partner, key: asyncssh.SSHKey, today: date) -> UnknownHostKey:
    shown, pinned = key.get_fingerprint(), pinned_keys(partner, today)
    line = key.export_public_key("openssh").decode().strip()
    return UnknownHostKey(
        f"{partner.name} shows the host key {shown}; {pinned}",
        shown,
        [fingerprint(each) for each in valid_host_keys(partner, today)],
        " ".join(line.split()[:2]),
        pinned,
    )


@contextmanager
def translated(partner: Partner, credentials: Credentials, path: str = "") -> Generator[None]:
    """Errors of asyncssh inside the block as errors of the ports, without secrets."""
    try:
        yield
    except AddressRefused as refusal:
        raise Denied(str(refusal)) from None
    except TimeoutError:
        raise PartnerAway(partner.name, f"{partner.name} does not answer in time") from None
    except asyncssh.SFTPError as error:
        raise _failure(partner, error, credentials.hide(error.reason), path) from None
    except (asyncssh.Error, OSError) as error:
        reason = credentials.hide(str(error))[:300]
        raise PartnerAway(partner.name, f"{partner.name} cannot be reached: {reason}") from None
    except ValueError as error:
        # A file of a connection that was lost.
        raise PartnerAway(partner.name, f"{partner.name}: {credentials.hide(str(error))}") from None


def _failure(partner: Partner, error: asyncssh.SFTPError, reason: str, path: str) -> PortError:
    text = f"{partner.name}, {printable(path)}: {reason[:300]}"
    match error:
        case asyncssh.SFTPConnectionLost() | asyncssh.SFTPNoConnection():
            return PartnerAway(partner.name, f"the connection to {partner.name} was lost")
        case asyncssh.SFTPNoSuchFile() | asyncssh.SFTPNoSuchPath():
            return FileMissing(f"there is no file {printable(path)} at {partner.name}")
        case asyncssh.SFTPPermissionDenied() | asyncssh.SFTPWriteProtect():
            return Denied(text)
        case asyncssh.SFTPInvalidFilename():
            return NameRefused(text)
        case _:
            return PlaceError(text)
