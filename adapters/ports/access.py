"""What the audit holds, and the tokens of programs."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal

from workflows.shared.contracts import PlainRecord, served

Actor = Literal["person", "token", "command"]
"""How somebody acts: signed in, by a program's token, or at a machine of docflow."""


class AuditEntry(PlainRecord):
    """A change that somebody made, or tried to make."""

    id: Annotated[int, served("Number of the entry", 7)]
    at: Annotated[datetime, served("When it began", "2026-05-04T10:00:00Z")]
    organisation_id: Annotated[int | None, served("Organisation that it concerns", 3)]
    who: Annotated[str, served("Who acted", "ann")]
    by: Annotated[Actor, served("How they acted", "person")]
    action: Annotated[str, served("Operation of the API, page or command", "cancelImport")]
    object: Annotated[str | None, served("What it was done to", "run/P1/T1")]
    before: Annotated[Any, served("What was changed, as it was", None)]
    after: Annotated[Any, served("What was changed, as it is now", {"enabled": False})]
    reason: Annotated[str | None, served("Why, in the words of who acted", "wrong file")]
    from_where: Annotated[str | None, served("Address of the client, or machine", "10.0.0.7")]
    request_id: Annotated[str | None, served("Header X-Request-Id of the request", None)]
    status: Annotated[
        int | None,
        served(
            "Status of the answer, or exit code of the command; null: it was begun, and its end is "
            "not known",
            202,
        ),
    ]


@dataclass
class Act:
    """What somebody does, as it is noted.

    An endpoint that knows what it changes adds `object`, `before`, `after` and `reason`.
    """

    who: str
    by: Actor
    action: str
    organisation_id: int | None = None
    """That of the run which `object` names comes before it."""
    object: str | None = None
    before: Any = None
    after: Any = None
    reason: str | None = None
    from_where: str | None = None
    request_id: str | None = None
    id: int | None = None
    """Number of its entry; None: it has none yet."""


@dataclass(frozen=True)
class AuditFilter:
    """Which entries are wanted."""

    organisations: Collection[int] = ()
    """Those whose entries may be seen."""
    others: bool = False
    """Entries of no organisation may be seen as well."""
    who: str | None = None
    action: str | None = None
    object: str | None = None
    organisation: int | None = None
    since: datetime | None = None
    before: int | None = None
    """Number of the last entry of the page before."""


PREFIX: Final = "docflow_"
"""Begins the text of each token of a program."""
USE_NOTED_EACH: Final = timedelta(minutes=1)
"""The use of a token is noted at most so often."""


class UploadGrant(PlainRecord):
    """What an upload token is for: one kind of upload, in an importer inside other sites' pages."""

    session: Annotated[
        str, served("Whose uploads it sees: a renewed token has the same", "mZ3fR9sQ0aXyT1Lk")
    ]
    import_type: Annotated[str, served("What the rows are", "EVENT_PARTICIPANT")]
    context_id: Annotated[int | None, served("Event, membership period or race; null: none", 7)]
    scope: Annotated[
        Mapping[str, str],
        served("What all rows of a declared type share", {"project_id": "P1"}),
    ]
    origins: Annotated[
        tuple[str, ...], served("Sites that may show the importer", ["https://shop.example"])
    ]
    theme: Annotated[
        Mapping[str, str], served("What the importer looks like", {"accent": "#0a6b5c"})
    ]
    language: Annotated[
        str | None, served("Language of the importer; null: that of the browser", "de")
    ]


class ApiToken(PlainRecord):
    """The token of a program; its secret is shown once and stored nowhere."""

    id: Annotated[int, served("Number of the token", 7)]
    name: Annotated[str, served("What uses it", "planning system")]
    organisation_id: Annotated[
        int | None, served("Where its roles count; null: for what belongs to no organisation", 3)
    ]
    roles: Annotated[tuple[str, ...], served("Its roles", ["mapper"])]
    beginning: Annotated[str, served("How its text begins", "docflow_7_mZ3f")]
    made_by: Annotated[str, served("Who made it", "ann")]
    made_at: Annotated[datetime, served("When", "2026-05-04T10:00:00Z")]
    expires_at: Annotated[
        datetime | None, served("When it ends to be valid; null: never", "2027-05-04T10:00:00Z")
    ]
    last_used_at: Annotated[
        datetime | None, served("When it was used last, to the minute", "2026-05-05T09:30:00Z")
    ]
    revoked_at: Annotated[datetime | None, served("When it was revoked; null: it is valid", None)]
    upload: Annotated[
        UploadGrant | None, served("What an upload token is for; null: it is none", None)
    ] = None


def hash_of(secret: str) -> str:
    """The form in which a secret of 32 random bytes is stored."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


@dataclass(frozen=True)
class Session:
    """A person who is signed in; or one whom a link will sign in, once."""

    subject: str
    organisations: tuple[int, ...]
    """The first one is theirs where a request names none."""
    roles: tuple[str, ...]
    """In all of the organisations, and for what belongs to none."""
    expires_at: datetime
    """When it ends at the latest."""
    roles_in: Mapping[int, Sequence[str]] = field(default_factory=dict[int, Sequence[str]])
    """Further roles, by organisation."""
    name: str | None = None
    email: str | None = None
    provider: str | None = None
    """Who has said who they are; None: a token or a link."""
    token_id: int | None = None
    """Number of the program's token that they signed in with."""
    id_token: str | None = None
    """What the provider said, for signing out there."""
    is_link: bool = False
    made_at: datetime | None = None
    seen_at: datetime | None = None
    """When a page was asked for last, to the minute."""
