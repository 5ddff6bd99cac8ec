"""The review of an import: rows are corrected before anything is written."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError

from workflows.shared import policies
from workflows.shared.failures import explain, failure_type, failures_logged, reraise_cancellation
from workflows.spreadsheets import pauses as refusals
from workflows.spreadsheets.mappings import ReviewCounts
from workflows.spreadsheets.pauses import SpreadsheetPauses
from workflows.spreadsheets.reviews import (
    REVIEW,
    ChangeReview,
    CheckAgain,
    CheckNote,
    CloseReview,
    ReviewChange,
    ReviewChanged,
    ReviewInput,
)
from workflows.spreadsheets.runs import CHECK_REASON, Confirmation
from workflows.spreadsheets.state import SpreadsheetRun
from workflows.spreadsheets.steps import SpreadsheetReview


class ReviewStep:
    """Opens the review, takes changes while it is open, and has all rows checked behind them.

    A change checks the cells that it concerns; what rows have to do with each other and with people
    is checked in the background, for the newest version.
    """

    def __init__(self, run: SpreadsheetRun, pauses: SpreadsheetPauses) -> None:
        self._run, self._pauses = run, pauses
        self._checking: asyncio.Task[None] | None = None

    @property
    def is_wanted(self) -> bool:
        """The rows are to be reviewed before they are processed."""
        now = self._run.now
        return self._run.order.review and not now.reviewed and not now.skip_values

    async def hold(self) -> None:
        """Check the rows and wait for a person to confirm them.

        With `auto_start` rows without a problem are confirmed; those of a dry run never are.
        """
        run = self._run
        if not run.now.in_review:
            counts = await self._pauses.do("check the rows", self._open)
            run.set(review=counts, in_review=True)
            if run.order.auto_start and not counts.wrong and not run.order.dry_run:
                await self._pauses.do("confirm the rows", lambda: self._close(run.order.by))
        self._check_later()
        try:
            await self._pauses.wait_for_person(lambda: run.now.reviewed, REVIEW)
        finally:
            self.stop()
        await self.ended()
        run.set(in_review=False)

    def stop(self) -> None:
        """Check no further."""
        if self._checking is not None:
            self._checking.cancel()

    async def ended(self) -> None:
        """Wait until nothing is in flight."""
        if self._checking is not None:
            await asyncio.gather(self._checking, return_exceptions=True)
            self._checking = None

    def check_change(self, change: ReviewChange) -> None:
        """Refuse a change that comes at the wrong time, or is based on other rows."""
        if not self._run.now.in_review or self._run.now.reviewed:
            raise refusals.wrong_state("the rows are not being reviewed")
        refusals.refuse_other_version(change.expected_version, self._run.now.version)

    async def change(self, change: ReviewChange) -> ReviewChanged:
        """Apply a stored operation, or find out what it would change."""
        self.check_change(change)
        run = self._run
        work = ChangeReview(
            order=run.order,
            columns=run.now.columns,
            operation=change.operation,
            version=run.now.version + 1,
            by=change.by,
            at=workflow.now(),
            preview=change.preview,
        )
        try:
            changed = await workflow.execute_activity_method(
                SpreadsheetReview.change_review,
                work,
                summary="preview a change" if change.preview else "change rows",
                **policies.ANSWER,
            )
        except FailureError as error:
            raise _for_caller(error) from error
        if not change.preview:
            version = max(run.now.version, changed.version)
            run.set(version=version, review=changed.counts, check_failure=None)
            self._check_later()
        run.touch()
        return changed

    def check_check_again(self) -> None:
        """Refuse to check what is checked, or is being checked."""
        if not self._run.now.in_review or self._run.now.reviewed:
            raise refusals.wrong_state("the rows are not being reviewed")
        if not self._is_behind():
            raise refusals.wrong_state("all rows are checked already")
        if self.is_busy:
            raise refusals.wrong_state("the rows are being checked already")

    async def check_again(self, answer: CheckAgain) -> None:
        """Have all rows checked once more, after that has failed."""
        self.check_check_again()
        run = self._run
        run.set(check_failure=None)
        self._check_later()
        run.touch()
        try:
            await run.record(run.trail("retry", "check all rows", answer.by))
            await self._note_check(run.now.version, None)
        except FailureError as error:
            raise _for_caller(error) from error

    def check_confirm(self, answer: Confirmation) -> None:
        """Refuse to confirm rows that another person has changed meanwhile."""
        if self._run.now.reviewed:
            raise refusals.wrong_state("the rows are confirmed already")
        refusals.refuse_other_version(answer.expected_version, self._run.now.version)

    async def confirm(self, answer: Confirmation) -> None:
        """Accept no further changes; the rows are processed next."""
        try:
            await self._close(answer.by, import_now=answer.import_now)
        except FailureError as error:
            raise _for_caller(error) from error

    async def _open(self) -> ReviewCounts:
        return await workflow.execute_activity_method(
            SpreadsheetReview.open_review,
            self._input(),
            summary="check the rows",
            **policies.LONG,
        )

    async def _close(self, by: str, *, import_now: bool = False) -> None:
        run = self._run
        order = run.order
        if import_now:
            order = order.model_copy(update={"dry_run": False})
        version = run.now.version + 1
        work = CloseReview(
            order=order, columns=run.now.columns, version=version, by=by, at=workflow.now()
        )
        await workflow.execute_activity_method(
            SpreadsheetReview.close_review, work, summary="confirm the rows", **policies.ANSWER
        )
        run.order = order
        run.set(version=version, reviewed=True)
        run.touch()

    def _check_later(self) -> None:
        """Have all rows checked in the background, unless that is under way."""
        if self._is_behind() and (self._checking is None or self._checking.done()):
            self._checking = asyncio.create_task(self._check())

    def _is_behind(self) -> bool:
        now = self._run.now
        return now.in_review and not now.reviewed and now.review.checked < now.version

    async def _check(self) -> None:
        run = self._run
        while self._is_behind():
            version = run.now.version
            try:
                counts = await run.waiting.done(self._check_once)
            except FailureError as error:
                reraise_cancellation(error)
                # The next change, or a person, has them checked again.
                workflow.logger.warning("rows could not be checked: %s", explain(error))
                if not workflow.patched("failed-checks-are-shown"):
                    return
                if run.now.version == version:
                    await self._show_failure(version, explain(error)[:CHECK_REASON])
                if run.now.version == version:
                    return
                continue
            run.set(check_failure=None)
            if counts.checked > run.now.review.checked:
                run.set(review=counts)

    async def _show_failure(self, version: int, reason: str) -> None:
        self._run.set(check_failure=reason)
        # Where it cannot be stored, the status of the run still has it.
        with failures_logged("the failed check of the rows was not stored"):
            await self._run.waiting.done(lambda: self._note_check(version, reason))

    async def _note_check(self, version: int, reason: str | None) -> None:
        await workflow.execute_activity_method(
            SpreadsheetReview.note_check,
            CheckNote(uuid=self._run.order.uuid, version=version, reason=reason),
            summary="show that the check failed" if reason else "show that rows are checked",
            **policies.ANSWER,
        )

    async def _check_once(self) -> ReviewCounts:
        return await workflow.execute_activity_method(
            SpreadsheetReview.check_review,
            self._input(),
            summary="check all rows",
            **policies.LONG,
        )

    def _input(self) -> ReviewInput:
        run = self._run
        assert run.now.staged is not None
        return ReviewInput(
            order=run.order,
            staged=run.now.staged,
            columns=run.now.columns,
            version=run.now.version,
        )

    @property
    def is_busy(self) -> bool:
        """Rows are being checked: a new history would begin without them."""
        return self._checking is not None and not self._checking.done()


def _for_caller(error: FailureError) -> ApplicationError:
    """The failure of a step of an answer; the run continues."""
    reraise_cancellation(error)
    return ApplicationError(explain(error), type=failure_type(error), non_retryable=True)
