"""Who asks."""

from dataclasses import dataclass
from typing import Final

from workers.shared.services.errors import Forbidden

VIEWER: Final = "viewer"
"""Reads the imports of their organisations."""
IMPORTER: Final = "importer"
"""Does everything with the imports of their organisations."""
OPERATOR: Final = "operator"
"""As an importer, and sees in the inbox what every pipeline waits for."""
ROLES: Final = frozenset({VIEWER, IMPORTER, OPERATOR})


@dataclass(frozen=True, slots=True)
class Identity:
    """A person, by their token."""

    subject: str
    organisations: tuple[int, ...]
    """The first one is theirs where a request names none."""
    roles: frozenset[str]
    name: str | None = None
    email: str | None = None

    @property
    def may_read(self) -> bool:
        """Any of the known roles reads."""
        return bool(self.roles & ROLES)

    @property
    def may_write(self) -> bool:
        """Importers and operators decide, upload and cancel."""
        return bool(self.roles & {IMPORTER, OPERATOR})

    @property
    def is_operator(self) -> bool:
        """Operators see what every pipeline waits for."""
        return OPERATOR in self.roles


def require_operator(who: Identity, what: str) -> None:
    """Refuse callers who are not operators.

    Args:
        who: The caller.
        what: Is for operators alone, in the plural.

    Raises:
        Forbidden: The caller is none.
    """
    if not who.is_operator:
        raise Forbidden(f"{what} are for operators: your token lacks the role operator")
