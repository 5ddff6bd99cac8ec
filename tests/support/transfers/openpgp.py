"""OpenPGP keys and messages for tests, made by GnuPG itself."""

import subprocess
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path

import gnupg

from adapters.files.openpgp.keyring import GnuPg
from tests.support.transfers.secrets import PlantedSecrets
from workflows.transfers.partners import OpenPgpKey

AGENT = "allow-loopback-pinentry\nallow-preset-passphrase\ns2k-count 65536\n"
_CALL = (
    *("--batch", "--yes", "--no-options", "--quiet"),
    *("--trust-model", "always", "--pinentry-mode", "loopback"),
)
OUR_PASSPHRASE = "correct hörse battery"
BEFORE = "20200101T000000!"
"""When old keys were made."""


@dataclass(frozen=True)
class Party:
    """Someone with a key."""

    fingerprint: str
    public: str
    private: str
    passphrase: str | None

    def partner(self) -> OpenPgpKey:
        """The key as that of a partner."""
        return OpenPgpKey(fingerprint=self.fingerprint, public=self.public)

    def own(self, secrets: PlantedSecrets) -> OpenPgpKey:
        """The key as one of ours."""
        name = f"env:KEY_{self.fingerprint[:8]}"
        secrets.values[name] = self.private
        if self.passphrase is not None:
            secrets.values[f"{name}_PASSPHRASE"] = self.passphrase
        return OpenPgpKey(
            fingerprint=self.fingerprint,
            public=self.public,
            private=name,
            passphrase=f"{name}_PASSPHRASE" if self.passphrase is not None else None,
            own=True,
        )


class Forge:
    """GnuPG with the keys of all parties: makes what others would send.

    Args:
        home: Folder of its own, with a short path.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "gpg-agent.conf").write_text(AGENT)
        self.gpg = gnupg.GPG(gnupghome=str(home), options=["--no-options"], encoding="utf-8")

    def party(
        self,
        name: str,
        passphrase: str | None = None,
        *,
        expired: bool = False,
        old: bool = False,
        rsa: bool = False,
    ) -> Party:
        """A key with a sub-key for encryption; an old one is of 2020, and has expired or not."""
        kind = (
            "Key-Type: RSA\nKey-Length: 2048\nSubkey-Type: RSA\nSubkey-Length: 2048\n"
            if rsa
            else "Key-Type: EDDSA\nKey-Curve: ed25519\nSubkey-Type: ECDH\nSubkey-Curve: cv25519\n"
        )
        lock = f"Passphrase: {passphrase}\n" if passphrase else "%no-protection\n"
        end = "Expire-Date: 1y\n" if expired else ""
        moment = ["--faked-system-time", BEFORE] if expired or old else []
        orders = f"{kind}Name-Real: {name}\n{end}{lock}%commit\n".encode()
        # Once in thousands of keys GnuPG 2.2 leaves the sub-key out of the private text.
        for _ in range(3):
            printed = self.call(*moment, "--status-fd", "1", "--generate-key", given=orders)
            lines = printed.decode().splitlines()
            (made,) = [line.split()[3] for line in lines if " KEY_CREATED " in line]
            party = self.exported(made, passphrase)
            if self._parts(party.private) == self._parts(party.public):
                return party
        raise AssertionError(f"GnuPG exports no whole key of {name}")

    def _parts(self, text: str) -> int:
        """How many keys and sub-keys a text holds."""
        shown = self.call("--show-keys", "--with-colons", given=text.encode()).decode()
        kinds = [line.partition(":")[0] for line in shown.splitlines()]
        return sum(kind in ("pub", "sec", "sub", "ssb") for kind in kinds)

    def exported(self, fingerprint: str, passphrase: str | None) -> Party:
        """A key as it is now."""
        private = self.gpg.export_keys(
            fingerprint, secret=True, passphrase=passphrase, expect_passphrase=bool(passphrase)
        )
        return Party(fingerprint, self.gpg.export_keys(fingerprint), private, passphrase)

    def call(self, *arguments: str, given: bytes = b"") -> bytes:
        """Run GnuPG with anything."""
        done = subprocess.run(
            ["gpg", "--homedir", str(self.home), *_CALL, *arguments],
            input=given,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def close(self) -> None:
        """End its agent."""
        subprocess.run(["gpgconf", "--homedir", str(self.home), "--kill", "gpg-agent"], check=True)


def without_sub_key(party: Party, home: Path) -> str:
    """The private text of a key as a machine exports it that lacks the private sub-key.

    Args:
        party: Whose; without a passphrase.
        home: A folder of its own.
    """
    forge = Forge(home)
    forge.call("--import", given=party.private.encode())
    listed = forge.call("--list-secret-keys", "--with-colons", "--with-keygrip").decode()
    *_, grip = [line.split(":")[9] for line in listed.splitlines() if line.startswith("grp:")]
    (home / "private-keys-v1.d" / f"{grip}.key").unlink()
    # The agent keeps keys in memory.
    forge.close()
    exported = forge.call("--armor", "--export-secret-keys", party.fingerprint).decode()
    forge.close()
    return exported


async def pieces_of(content: bytes, size: int = 1 << 16) -> AsyncGenerator[bytes]:
    """Bytes that arrive one after the other."""
    for start in range(0, len(content), size):
        yield content[start : start + size]


async def collected(chunks: AsyncGenerator[bytes]) -> bytes:
    """A sink that keeps what it takes."""
    return b"".join([chunk async for chunk in chunks])


def fingerprints(parties: Sequence[Party]) -> list[str]:
    """Of some parties."""
    return [party.fingerprint for party in parties]


class Work:
    """A message on its way through a keyring of ours."""

    def __init__(self, pgp: GnuPg, *keys: OpenPgpKey) -> None:
        self.pgp = pgp
        self.keys = keys
        self.seen: list[bytes] = []
        self.whole: bytes | None = None

    async def sink(self, chunks: AsyncGenerator[bytes]) -> bytes:
        """Keep what comes; `whole` only when it has come to its end."""
        async for chunk in chunks:
            self.seen.append(chunk)
        self.whole = b"".join(self.seen)
        return self.whole

    async def decrypt(self, message: bytes, *signers: str, most: int = 1 << 30) -> str | None:
        """Who signed it; `whole` is what the sink was given, if it was given an end."""
        async with self.pgp.open(self.keys) as ring:
            _, signature = await ring.decrypt(
                pieces_of(message), self.sink, signers, most=most, signed=bool(signers)
            )
        return signature.fingerprint if signature else None
