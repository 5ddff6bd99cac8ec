"""OpenPGP keys for the demo and benchmarks, made by GnuPG."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gnupg

from stack.children import StackError


@dataclass(frozen=True)
class MadeKey:
    """A key, without a passphrase; both parts armoured."""

    fingerprint: str
    public: str
    private: str


def has_gnupg() -> bool:
    """Whether GnuPG is installed."""
    return shutil.which("gpg") is not None


def make_key(home: Path, name: str) -> MadeKey:
    """Make a key that signs, with one below it that is encrypted to.

    Args:
        home: Of GnuPG; the key stays there too.
        name: Whose it is.

    Raises:
        StackError: GnuPG refuses.
    """
    gpg: Any = gnupg.GPG(gnupghome=str(home))
    made = gpg.gen_key(
        "Key-Type: EDDSA\nKey-Curve: ed25519\nSubkey-Type: ECDH\nSubkey-Curve: cv25519\n"
        f"Name-Real: {name}\n%no-protection\n%commit\n"
    )
    if not made.fingerprint:
        raise StackError(f"GnuPG makes no key: {made.stderr}")
    private = gpg.export_keys(made.fingerprint, secret=True, expect_passphrase=False)
    return MadeKey(made.fingerprint, gpg.export_keys(made.fingerprint), private)


def encrypt(home: Path, content: bytes, target: Path, *, to: str, by: str) -> None:
    """Write a signed and encrypted message.

    Args:
        home: Of GnuPG, with both keys.
        content: What it says.
        target: File to write.
        to: Fingerprint of whom it is for.
        by: Fingerprint of whose it is.

    Raises:
        StackError: GnuPG refuses.
    """
    gpg: Any = gnupg.GPG(gnupghome=str(home))
    made = gpg.encrypt(content, to, sign=by, always_trust=True, armor=False, output=str(target))
    if not made.ok:
        raise StackError(f"GnuPG does not encrypt: {made.stderr}")
