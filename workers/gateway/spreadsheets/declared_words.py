"""What declarations of spreadsheets call things: words for the catalogues that no page holds."""

from collections.abc import Iterator

from domain.spreadsheets import plain_words
from domain.spreadsheets.bibs import QUESTIONS
from domain.spreadsheets.header import NO_ROWS, ONLY_HEADERS, SIDEWAYS
from domain.spreadsheets.remarks import REMARKS
from domain.spreadsheets.sheet_types import SheetTypes
from domain.spreadsheets.skipped_rows import REASONS
from workers.pipelines.spreadsheets import SPREADSHEETS
from workers.services.spreadsheets.upload_form import EMPTY_FILE


def declared_words() -> Iterator[str]:
    """Titles, questions and what is said of files without rows; some of them more than once."""
    yield SPREADSHEETS.title
    for kind in SheetTypes():
        yield kind.title
        if kind.context is not None:
            yield kind.context.title
        yield from (field.title for field in kind.fields)
        for target in kind.targets:
            yield plain_words.record_title(target.table)
            yield from (plain_words.column_title(column) for column in target.key)
    yield from (question.title for question in QUESTIONS.values())
    yield plain_words.record_title("custom_list_values")
    yield from (EMPTY_FILE, NO_ROWS, ONLY_HEADERS, SIDEWAYS)
    yield from (*REASONS, *REMARKS)
