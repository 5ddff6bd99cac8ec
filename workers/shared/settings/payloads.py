"""Settings of the encryption of what Temporal stores."""

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from pydantic import BeforeValidator, Field

from workers.shared.settings.base import Setting, Settings

PAYLOAD_KEYS: Final = "DOCFLOW_PAYLOAD_KEYS"
CLEAR: Final = "clear"
"""Stands before the keys if payloads are decrypted, and none is encrypted."""
_KEY: Final = re.compile(r"([A-Za-z0-9._-]{1,64})=((?:env|file|aws):\S+)")


def _keys(value: object) -> object:
    """Read `[clear,]ID=REFERENCE,...`; a message never repeats what may be a key.

    Raises:
        ValueError: It is something else.
    """
    if not isinstance(value, str):
        return value
    first, *others = parts = [each.strip() for each in value.split(",")]
    if first == CLEAR:
        parts = others
    found = [_KEY.fullmatch(each) for each in parts]
    keys = [(each[1], each[2]) for each in found if each is not None]
    if len(keys) < len(found) or not keys:
        raise ValueError(
            f"must be ID=REFERENCE with commas, such as 2026-11=file:/run/secrets/payloads or "
            f"2026-11=env:NAME or 2026-11=aws:NAME; {CLEAR} may stand before them"
        )
    if len(dict(keys)) < len(keys):
        raise ValueError("has two keys with one id")
    return ((CLEAR, ""), *keys) if first == CLEAR else tuple(keys)


class PayloadSettings(Settings):
    """What Temporal's payloads are encrypted with."""

    title: ClassVar[str] = "Payloads in Temporal"
    used_by: ClassVar[str] = (
        "everything that connects to Temporal: workers, bridges, gateway, functions, "
        "`docflow setup`, commands while the gateway is down"
    )

    keys: Annotated[
        tuple[tuple[str, str], ...],
        BeforeValidator(_keys),
        Setting(kind="`ID=REFERENCE`, with commas"),
    ] = Field(
        (),
        validation_alias=PAYLOAD_KEYS,
        description="keys that encrypt what Temporal stores, as `env:NAME`, `file:PATH` or "
        "`aws:NAME`; the first encrypts, all decrypt. If `clear` stands before them, payloads are "
        "decrypted, and new ones stand in clear. Without it, payloads stand in clear",
    )

    @property
    def references(self) -> Mapping[str, str]:
        """Where each key is, by its id."""
        return {id: reference for id, reference in self.keys if reference}

    @property
    def encrypts(self) -> bool:
        """Whether new payloads are encrypted."""
        return bool(self.keys) and bool(self.keys[0][1])
