"""Problems of spreadsheet imports, as they are answered and described."""

from collections.abc import Mapping
from typing import Any, Final

from fastapi_problem.error import Problem

from workers.gateway.http.problems import ProblemDescription, problem_of, problem_responses
from workers.gateway.spreadsheets.schemas import answer_fields
from workers.services.errors import Conflict, NotFound, UnsupportedFile, WrongState
from workers.services.spreadsheets.errors import StillOpen

_DESCRIPTIONS: Final[Mapping[int, ProblemDescription]] = {
    404: ProblemDescription(NotFound.kind, "no such import in your organisations"),
    406: ProblemDescription(StillOpen.kind, "required mappings are still open"),
    409: ProblemDescription(WrongState.kind, "not in this state of the import"),
    412: ProblemDescription(Conflict.kind, "the mappings were changed by another person"),
    415: ProblemDescription(UnsupportedFile.kind, "not a spreadsheet, or not a form upload"),
}


def import_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Entries of an OpenAPI document for problems of these statuses."""
    return problem_responses(*statuses, further=_DESCRIPTIONS)


def still_open(error: StillOpen) -> Problem:
    """What is open, and the version of the mappings."""
    return problem_of(
        error,
        {"etag": f'"{error.answer.version}"'},
        saved=error.saved,
        **answer_fields(error.answer),
    )
