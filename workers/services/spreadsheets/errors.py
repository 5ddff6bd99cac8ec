"""Refusals that only spreadsheet imports know."""

from contracts.spreadsheets import MappingsAnswer
from workers.services.errors import ServiceError


class StillOpen(ServiceError):
    """Required fields or values have no mapping yet.

    Attributes:
        answer: What is open.
        saved: The decisions of this request were saved nevertheless.
    """

    status = 406
    kind = "still-open"
    title = "Mappings are still open"

    def __init__(self, message: str, answer: MappingsAnswer, *, saved: bool = False) -> None:
        super().__init__(message)
        self.answer = answer
        self.saved = saved
