"""Changes of a review on their way to its run."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from adapters.database.spreadsheets.reviews import SqlReviewStore
from adapters.database.spreadsheets.views import SpreadsheetRow, SqlSpreadsheetViews
from contracts.spreadsheets import FINAL
from contracts.spreadsheets.reviews import (
    Operation,
    ReviewChange,
    ReviewChanged,
    ReviewOperation,
)
from domain.spreadsheets.edits import Edits
from domain.spreadsheets.operations import described, undone
from domain.spreadsheets.review import ReviewState, StoredOperation
from domain.spreadsheets.standing import standing
from workers.services.errors import Conflict, Refused, TemporalUnavailable, WrongState
from workers.services.identity import Identity
from workers.services.spreadsheets.choices import Choices
from workers.services.spreadsheets.queries import SpreadsheetQueries
from workers.services.spreadsheets.runs import SpreadsheetRuns

NAMED: Final = 3
"""Changes of others that a refusal names."""


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """What an operation has changed, or would change."""

    changed: ReviewChanged
    stored: StoredOperation


class ReviewChanges:
    """Sends changes to the runs of imports, and reads what reviews are made of."""

    def __init__(
        self,
        queries: SpreadsheetQueries,
        reviews: SqlReviewStore,
        views: SqlSpreadsheetViews,
        runs: SpreadsheetRuns,
        choices: Choices,
    ) -> None:
        self._queries, self._reviews, self._views = queries, reviews, views
        self._runs, self._choices = runs, choices

    async def send(
        self,
        who: Identity,
        uuid: str,
        operation: Operation,
        expected_version: int | None,
        *,
        preview: bool = False,
        key: str | None = None,
    ) -> ChangeOutcome:
        """Have the run apply an operation, or find out what it would change.

        Raises:
            Conflict: Another person has changed the rows since; the message says who and what.
            WrongState: The rows are not being reviewed.
            Refused: It cannot be applied, or the key stands for another change.
            TemporalUnavailable: Whether it is applied is not known.
        """
        row = await self._queries.writable(who, uuid)
        state = await self.state(row)
        proposed = ReviewOperation(
            id=0, version=0, operation=operation, by=who.subject, at=datetime.now(UTC)
        )
        if key is None:
            self._refuse_closed(row, state)
        id = await self._reviews.propose(uuid, proposed, key)
        if id is None:
            raise Refused("this Idempotency-Key was used for another change; take a new one")
        if key is not None and (known := await self._applied(uuid, id)) is not None:
            return ChangeOutcome(_changed(known, state), known)
        change = ReviewChange(
            by=who.subject, expected_version=expected_version, operation=id, preview=preview
        )
        try:
            self._refuse_closed(row, state)
            changed = await self._runs.update(row, "change_review", change, ReviewChanged)
            stored = await self._reviews.operation(uuid, id)
        except (Conflict, Refused, WrongState) as error:
            # The first request of this key may have reached the run meanwhile.
            if (known := await self._applied(uuid, id)) is not None:
                return ChangeOutcome(_changed(known, state), known)
            await self._reviews.forget(id)
            if isinstance(error, Conflict):
                raise await self.explained(row, error, expected_version) from error
            raise
        except TemporalUnavailable as error:
            if preview:
                await self._reviews.forget(id)
                raise
            if key is None:
                more = "look at the list of changes before you request it again"
            else:
                more = "request it again as it was: it is made once"
            raise TemporalUnavailable(
                f"{error}; whether the change was made is not known yet: {more}"
            ) from error
        if preview:
            await self._reviews.forget(id)
        assert stored is not None
        return ChangeOutcome(changed, stored)

    async def _applied(self, uuid: str, id: int) -> StoredOperation | None:
        """An operation that counts; None: it was not applied.

        Raises:
            Refused: It was taken back since.
        """
        stored = await self._reviews.operation(uuid, id)
        if stored is None or not stored.operation.version:
            return None
        version = stored.operation.version
        if version in undone(await self._reviews.operations(uuid)):
            raise Refused(
                f"this change was made, as version {version}, and taken back since; request it "
                "as a new one to make it again"
            )
        return stored

    @staticmethod
    def _refuse_closed(row: SpreadsheetRow, state: ReviewState) -> None:
        if has_stopped(row):
            raise WrongState(f"the import has stopped, {row.step}: {row.reason}; retry that first")
        if not state.is_open:
            raise WrongState("the rows are not being reviewed any more")

    async def explained(
        self, row: SpreadsheetRow, conflict: Conflict, expected: int | None
    ) -> Conflict:
        """A conflict that says who changed what since."""
        state = await self._reviews.state(row.uuid)
        if state is None or expected is None:
            return conflict
        edits = await self.edits(row)
        headers = {column.id: column.header for column in edits.columns}
        later = [
            each for each in await self._reviews.operations(row.uuid) if each.version > expected
        ]
        if not later:
            return Conflict(str(conflict), state.version)
        named = [
            f"{each.by} at {each.at:%H:%M} UTC: {' '.join(described(each.operation, headers))}"
            for each in later[-NAMED:]
        ]
        more = f" (and {len(later) - NAMED} changes before)" if len(later) > NAMED else ""
        return Conflict(
            f"the rows were changed since version {expected}: {'; '.join(named)}{more}; "
            "look at them again",
            state.version,
        )

    async def state(self, row: SpreadsheetRow) -> ReviewState:
        """The review of an import.

        Raises:
            WrongState: There is none, or not yet.
        """
        state = await self._reviews.state(row.uuid)
        if state is None:
            raise WrongState(
                f"the rows of this import are not reviewed, or not yet; it {standing(row.state)}"
            )
        # Rows are stored before they are checked; a step that failed in between has to be repeated.
        return replace(state, is_open=False) if has_stopped(row) else state

    async def edits(self, row: SpreadsheetRow, version: int | None = None) -> Edits:
        """The corrections as they are, or as they were at a version."""
        columns = (await self._views.columns(row.uuid)).mappings
        titles = {each.name: each.title for each in await self._choices.fields(row)}
        operations = await self._reviews.operations(row.uuid)
        counted = [each for each in operations if version is None or each.version <= version]
        return Edits(columns, counted, titles)


def _changed(stored: StoredOperation, state: ReviewState) -> ReviewChanged:
    """What the run has answered when it applied an operation."""
    return ReviewChanged(
        version=stored.operation.version, effect=stored.effect, counts=state.counts
    )


def has_stopped(row: SpreadsheetRow) -> bool:
    """Whether a step has failed and waits to be tried again."""
    return row.state not in FINAL and row.waiting_since is not None and bool(row.reason)
