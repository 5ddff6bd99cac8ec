"""What a partner's record must hold, and which of its keys count today."""

import base64
import binascii
import hashlib
from collections.abc import Iterator
from datetime import date
from typing import Final

from contracts.transfers import HostKey, Partner, PlaceKind
from domain.errors import RuleViolation
from domain.transfers.old_algorithms import not_known
from domain.transfers.paths import path_problem
from domain.transfers.windows import zone_of

EXPIRY_DAYS: Final = (30, 14, 7)
"""Days before the end of a key at which notices are sent; and on the day after it."""


def record_problems(partner: Partner) -> Iterator[str]:
    """What is missing or wrong in a record, a sentence each."""
    needs_host = partner.kind in (PlaceKind.SFTP, PlaceKind.HTTPS, PlaceKind.AZURE_BLOB)
    if needs_host and not partner.host:
        yield f"a partner of kind {partner.kind} needs `host`"
    if partner.kind in (PlaceKind.FOLDER, PlaceKind.AZURE_BLOB, PlaceKind.S3):
        what = "the folder" if partner.kind is PlaceKind.FOLDER else "the container or bucket"
        if not partner.container:
            yield f"a partner of kind {partner.kind} needs `container`: {what}"
    if partner.kind is PlaceKind.SFTP:
        if not partner.user:
            yield "a partner of kind sftp needs `user`"
        if not (partner.password or partner.private_key):
            yield "a partner of kind sftp needs `password` or `private_key`, as a reference"
    if partner.write is not None and partner.kind not in (PlaceKind.FOLDER, PlaceKind.SFTP):
        yield f"`write` is for folders and SFTP: at {partner.kind} a file appears whole"
    if partner.algorithms and partner.kind is not PlaceKind.SFTP:
        yield "`algorithms` is for SFTP"
    if problem := not_known(partner.algorithms):
        yield problem
    for key in partner.host_keys:
        try:
            fingerprint(key)
        except RuleViolation as problem:
            yield str(problem)
    # On an SFTP server a root may begin with a slash: else it stands below the login's folder.
    root = (partner.root or "").removeprefix("/" if partner.kind is PlaceKind.SFTP else "")
    if root and (problem := path_problem(root)):
        yield f"`root`: {problem}"
    if partner.host and ("@" in partner.host or "?" in partner.host):
        yield "`host` may hold neither user, password nor query: credentials are references"
    try:
        zone_of(partner.zone)
    except RuleViolation as problem:
        yield str(problem)


def check_record(partner: Partner) -> None:
    """Check a record.

    Raises:
        RuleViolation: Something is missing or wrong; the message says all of it.
    """
    problems = list(record_problems(partner))
    if problems:
        raise RuleViolation("; ".join(problems))


def fingerprint(key: HostKey) -> str:
    """The fingerprint of a host key, as `ssh-keygen -l` shows it.

    Raises:
        RuleViolation: It is not a key.
    """
    parts = key.key.split()
    try:
        blob = base64.b64decode(parts[1], validate=True)
    except (IndexError, binascii.Error):
        raise RuleViolation(
            "a host key is written as in `known_hosts`: algorithm and base64"
        ) from None
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
    return f"SHA256:{digest}"


def valid_host_keys(partner: Partner, today: date) -> tuple[HostKey, ...]:
    """The pinned keys that count today."""
    return tuple(
        key
        for key in partner.host_keys
        if (key.valid_from is None or key.valid_from <= today)
        and (key.valid_until is None or today <= key.valid_until)
    )


def pinned_keys(partner: Partner, today: date) -> str:
    """The pinned keys in words, with the days of those that do not count today."""
    if not partner.host_keys:
        return "none is pinned"
    valid = valid_host_keys(partner, today)
    sentences = [f"{fingerprint(key)} is pinned" for key in valid]
    sentences += [
        f"{fingerprint(key)} is pinned, but {_why_not_valid(key, today)}"
        for key in partner.host_keys
        if key not in valid
    ]
    return "; ".join(sentences)


def _why_not_valid(key: HostKey, today: date) -> str:
    if key.valid_until is not None and key.valid_until < today:
        return f"has expired: its last day was {key.valid_until}"
    return f"counts from {key.valid_from} only"


def expiry_step(ends: date, today: date) -> int | None:
    """Which of the warnings about a key is due: 30, 14 or 7 days; 0: it has expired; None: none."""
    left = (ends - today).days
    if left < 0:
        return 0
    return min((days for days in EXPIRY_DAYS if left <= days), default=None)
