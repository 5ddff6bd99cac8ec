"""Who asks, and what their roles allow."""

import os
import pwd
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from adapters.ports.access import Actor, UploadGrant
from workers.shared.services.errors import Forbidden
from workflows.shared.runs import Visible

if TYPE_CHECKING:
    from workflows.shared.declared_types import DeclaredType

VIEWER: Final = "viewer"
"""Reads what belongs to an organisation."""
MAPPER: Final = "mapper"
"""As a viewer, and uploads files and answers what imports ask."""
OPERATOR: Final = "operator"
"""As a mapper, and does what concerns jobs and transfers; with the role in the whole installation
also what belongs to no organisation, in every pipeline."""
ADMIN: Final = "admin"
"""As an operator, and makes API tokens and reads the audit."""
_LONGEST: Final = 200
"""Characters of a name."""
ROLES: Final = (VIEWER, MAPPER, OPERATOR, ADMIN)
"""Each role includes those before it."""


def includes(held: Collection[str], role: str) -> bool:
    """Whether one of some roles is a role, or includes it."""
    return not frozenset(held).isdisjoint(ROLES[ROLES.index(role) :])


@dataclass(frozen=True, slots=True)
class Identity:
    """A person, a program or a command that acts."""

    subject: str
    organisations: tuple[int, ...]
    """The first one is theirs where a request names none."""
    roles: frozenset[str]
    """In all of the organisations, and for what belongs to none."""
    name: str | None = None
    email: str | None = None
    by: Actor = "person"
    roles_in: Mapping[int, frozenset[str]] = field(
        default_factory=dict[int, frozenset[str]], hash=False
    )
    """Further roles, by organisation."""
    is_narrowed: bool = False
    """They look at what belongs to their organisations alone."""

    def within(self, organisation: int) -> "Identity":
        """The same person, who looks at what belongs to one of their organisations alone."""
        return replace(self, organisations=(organisation,), is_narrowed=True)

    upload: UploadGrant | None = field(default=None, hash=False)
    """What an upload token is for; None: they have another token.

    Its holder sees the uploads of its session alone, which are those by its subject.
    """

    def sees_upload_by(self, subject: str) -> bool:
        """Whether they see, within their organisations, an upload that somebody has made."""
        return self.upload is None or subject == self.subject

    def may(self, role: str, organisation: int | None = None) -> bool:
        """Whether they have a role, or one that includes it.

        Args:
            role: One of `ROLES`.
            organisation: Whose things they are about; None: what belongs to no organisation.
        """
        if organisation is None:
            return includes(self.roles, role)
        if organisation not in self.organisations:
            return False
        return includes(self.roles | self.roles_in.get(organisation, frozenset()), role)

    def where(self, role: str) -> tuple[int, ...]:
        """The organisations in which they have a role."""
        return tuple(each for each in self.organisations if self.may(role, each))

    def may_anywhere(self, role: str) -> bool:
        """Whether they have a role in some organisation, or for what belongs to none."""
        return self.may(role) or bool(self.where(role))

    @property
    def sees(self) -> Visible:
        """Whose runs they see: those of their organisations; operators those of none as well."""
        return Visible(self.where(VIEWER), others=self.is_operator and not self.is_narrowed)

    @property
    def may_read(self) -> bool:
        """Any of the known roles reads."""
        return self.may_anywhere(VIEWER)

    @property
    def may_write(self) -> bool:
        """Mappers decide, upload and cancel."""
        return self.may_anywhere(MAPPER)

    @property
    def is_operator(self) -> bool:
        """Operators see what every pipeline waits for."""
        return self.may(OPERATOR)


def acting_user(environment: Mapping[str, str]) -> str:
    """Return the operating system's name for the user whom this process belongs to."""
    for name in ("USER", "LOGNAME", "USERNAME"):
        if named := environment.get(name, "").strip():
            return named[:_LONGEST]
    uid = os.getuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        # As in a container that runs as a number.
        return f"uid {uid}"


def require_role(who: Identity, role: str, organisation: int | None) -> None:
    """Refuse callers who lack a role in an organisation.

    Args:
        who: The caller.
        role: The least that is needed.
        organisation: None: what is asked for belongs to no organisation.

    Raises:
        Forbidden: The caller has neither the role nor one that includes it.
    """
    if who.may(role, organisation):
        return
    if organisation is None and who.where(role):
        raise Forbidden(
            f"this belongs to the whole installation: your role {role} counts in single "
            "organisations alone; ask for one that counts in all"
        )
    where = "" if organisation is None else f" in organisation {organisation}"
    raise Forbidden(f"your roles{where} do not allow this; ask for the role {role}")


def owner_for(who: Identity, role: str, named: int | None) -> int | None:
    """Return the organisation that something new belongs to; None: the installation.

    If none is named, it is the first in which the caller has the role. What callers with the role
    in the whole installation make belongs to no organisation unless they name one.

    Args:
        who: The caller.
        role: The least that is needed.
        named: By the caller; None: they name none.

    Raises:
        Forbidden: The caller lacks the role.
    """
    if named is None and not who.may(role):
        named = next(iter(who.where(role)), None)
    require_role(who, role, named)
    return named


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


def require_import(
    who: Identity, organisation: int | None, types: "Iterable[DeclaredType]"
) -> None:
    """Refuse callers who may not import rows of some declared types.

    A type says in `may_import` who may. If it does not, its rows are those of an organisation, or
    everybody's: then operators alone import them.

    Args:
        who: The caller.
        organisation: For which they import; None: for none.
        types: The types of the rows that are written.

    Raises:
        Forbidden: The caller lacks every role that one of the types allows.
    """
    from workflows.shared.declared_types import ORGANISATION

    for declared in types:
        roles: Sequence[str] = declared.may_import or (MAPPER,)
        whose = organisation
        if declared.may_import is None and ORGANISATION not in declared.scope:
            roles, whose = (OPERATOR,), None
        if not any(who.may(role, whose) for role in roles):
            raise Forbidden(
                f"rows of type {declared.title} need the role {' or '.join(roles)}, which your "
                "token lacks"
            )
