"""People whom rows are about, over HTTP: found, and erased."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from workers.shared.gateway.access import TheAct
from workers.shared.gateway.http.requests import Who, the
from workers.shared.services.errands import ErrandService
from workers.shared.services.identity import ADMIN, require_role
from workers.spreadsheets.erasure import ERASE
from workers.spreadsheets.http import TheService, import_problems
from workers.spreadsheets.register import NAME
from workflows.shared.contracts import PlainRecord, served

_LARGEST_ID: Final = 2**53
_Organisation = Annotated[
    int, Field(ge=1, le=_LARGEST_ID, description="Whose person it is", examples=[1])
]


class Wanted(BaseModel):
    """Which people are looked for."""

    model_config = ConfigDict(extra="forbid")

    organisation_id: _Organisation
    text: str = Field(
        min_length=2,
        max_length=200,
        description="Parts of the name or the mail address, all of which must be there",
        examples=["anna meier"],
    )


class FoundPerson(PlainRecord):
    """A person."""

    id: Annotated[int, served("Number of the person", 7)]
    name: Annotated[str, served("How they are told apart", "Anna Meier, anna@example.org")]


class FoundPeople(PlainRecord):
    """People who were found."""

    items: Annotated[Sequence[FoundPerson], served("At most 50, by name", [])]
    next: Annotated[None, served("Always null: write more of the name", None)] = None


class Erasing(BaseModel):
    """Who is erased, and why."""

    model_config = ConfigDict(extra="forbid")

    organisation_id: _Organisation
    dry_run: bool = Field(False, description="Only say what would be erased")
    reason: str | None = Field(
        None, max_length=500, description="Why, for the audit", examples=["asked for it by mail"]
    )


class Erased(PlainRecord):
    """What is, or would be, erased of a person."""

    rows: Annotated[Mapping[str, int], served("Rows of each table", {"persons": 1})]
    uploads: Annotated[
        Sequence[str],
        served("Uploads that hold the person: file, results, report and history go", []),
    ]
    open: Annotated[
        Sequence[str],
        served("Uploads that have not ended and may hold the person: they must end first", []),
    ]
    not_searched: Annotated[
        Sequence[str],
        served("Types with rows that may be about the person: delete those rows there", ["guests"]),
    ]


router = APIRouter(
    prefix="/api/v1/people", tags=["people"], responses=import_problems(401, 403, 422, 503)
)


@router.post("/find")
async def find_people(service: TheService, who: Who, body: Wanted) -> FoundPeople:
    """Look for people of an organisation by a part of their name or mail address."""
    require_role(who, ADMIN, body.organisation_id)
    found = await service.people(body.organisation_id, body.text)
    return FoundPeople(items=[FoundPerson(id=each.id, name=each.name) for each in found])


@router.post("/{id}/erase", responses=import_problems(404, 409))
async def erase_person(
    errands: Annotated[ErrandService, the(ErrandService)],
    who: Who,
    act: TheAct,
    body: Erasing,
    id: Annotated[int, Path(ge=1, le=_LARGEST_ID, description="Number of the person")],
) -> Erased:
    """Erase a person: their rows, and everything that is kept of the uploads that hold them.

    Rows of other people that these uploads wrote stay, and can't be undone any more. Rows of the
    types in `not_searched` stay, too: docflow does not know whom they are about. The entry of
    the audit has the number of the person alone.
    """
    require_role(who, ADMIN, body.organisation_id)
    act.organisation_id = body.organisation_id
    given = {
        "organisation_id": body.organisation_id,
        "person_id": id,
        "dry_run": body.dry_run,
    }
    found = Erased.model_validate(await errands.ask(who, NAME, ERASE, given))
    act.after = {
        "dry_run": body.dry_run,
        "rows": dict(found.rows),
        "uploads": [*found.uploads],
        "not_searched": [*found.not_searched],
    }
    return found
