"""What declarations of spreadsheets call things: words for the catalogues that no page holds."""

from collections.abc import Iterator

from activities.spreadsheets.column_matching import NO_ROWS, ONLY_HEADERS, SIDEWAYS
from activities.spreadsheets.sheet_types import discover
from activities.spreadsheets.validation import REASONS
from workers.spreadsheets.register import SPREADSHEETS
from workers.spreadsheets.upload_form import EMPTY_FILE
from workflows.spreadsheets import decisions
from workflows.spreadsheets.names import QUESTIONS, REMARKS


def declared_words() -> Iterator[str]:
    """Titles, questions and what is said of files without rows; some of them more than once."""
    yield SPREADSHEETS.title
    for kind in discover().values():
        yield kind.title
        if kind.context is not None:
            yield kind.context.title
        yield from (field.title for field in kind.fields)
        for target in kind.targets:
            yield decisions.record_title(target.table)
            yield from (decisions.column_title(column) for column in target.key)
    yield from (question.title for question in QUESTIONS.values())
    yield decisions.record_title("custom_list_values")
    yield from (EMPTY_FILE, NO_ROWS, ONLY_HEADERS, SIDEWAYS)
    yield from (*REASONS, *REMARKS)
