"""Forms of the pages are taken from our own pages only."""

import hashlib
import hmac
import secrets
from typing import Final

FIELD: Final = "csrf"
"""Name of the hidden field."""
HEADER: Final = "x-csrf-token"
"""Name of the header that scripts send it in."""
_CONTEXT: Final = b"docflow form "


def csrf_token(session: str) -> str:
    """The token that forms of a session carry.

    Only a client that can read the session's cookie can make it; alone it is useless.

    Args:
        session: Value of the session cookie.
    """
    salt = secrets.token_hex(8)
    return f"{salt}.{_mac(session, salt)}"


def csrf_valid(session: str, token: str | None) -> bool:
    """Whether a token was made for this session."""
    salt, dot, mac = (token or "").partition(".")
    return bool(dot) and hmac.compare_digest(
        mac.encode(errors="replace"), _mac(session, salt).encode()
    )


def _mac(session: str, salt: str) -> str:
    # The cookie is a signed token: only its owner and the gateway know it. A salt per page keeps
    # compressed answers from giving it away.
    key = session.encode(errors="replace")
    return hmac.new(key, _CONTEXT + salt.encode(errors="replace"), hashlib.sha256).hexdigest()
