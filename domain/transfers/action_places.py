"""Where an action reads, writes or sends, for people."""

from collections.abc import Mapping
from typing import Final

from contracts.transfers import (
    Action,
    CallHttp,
    Checksum,
    Compress,
    Extract,
    FireEvent,
    ReadFile,
    Scan,
    WriteFile,
)
from domain.transfers.continued import fired_to

PLACE: Final = 100
"""Characters of a place."""


def partner_of(action: Action) -> str | None:
    """The partner that an action needs; None: it needs none."""
    match action:
        case FireEvent() | Compress() | Extract() | Scan() | Checksum():
            return None
        case _:
            return action.partner


def place_of(action: Action, names: Mapping[str, str]) -> str | None:
    """Path at the partner, queue or format of an action, without anything secret.

    Args:
        action: The action.
        names: Its templates, resolved.

    Returns:
        None: there is nothing to say of it.
    """
    match action:
        case ReadFile() | WriteFile():
            said = names.get("path", action.path)
        case CallHttp():
            # What follows the path of an address may be a signature or a token.
            said = f"{action.method} {names.get('path', action.path).partition('?')[0]}"
        case FireEvent():
            said = fired_to(action.queue)
        case Compress() | Extract():
            said = str(action.format or "")
        case _:
            return None
    return (said if len(said) <= PLACE else f"{said[: PLACE - 3]}...") or None
