"""Old algorithms of SSH, which the record of a partner can permit by name."""

from collections.abc import Iterable, Sequence
from enum import Enum

from contracts.transfers import Partner


class Old(Enum):
    """What is negotiated, with the old algorithms for it."""

    KEYS = ("ssh-rsa", "ssh-dss")
    CIPHERS = ("aes256-cbc", "aes192-cbc", "aes128-cbc", "3des-cbc")
    KEX = (
        "diffie-hellman-group-exchange-sha1",
        "diffie-hellman-group14-sha1",
        "diffie-hellman-group1-sha1",
    )
    MACS = ("hmac-sha1-96", "hmac-md5", "hmac-md5-96")


def permitted(partner: Partner, old: Old) -> Sequence[str]:
    """Those that a record permits."""
    return [name for name in partner.algorithms if name in old.value]


def not_known(names: Iterable[str]) -> str | None:
    """What is wrong with names of algorithms; None: nothing."""
    known = [name for old in Old for name in old.value]
    if strange := [name for name in names if name not in known]:
        return (
            f"`algorithms` permits old algorithms of SFTP only, which {', '.join(strange)} isn't; "
            f"known are {', '.join(known)}"
        )
    return None
