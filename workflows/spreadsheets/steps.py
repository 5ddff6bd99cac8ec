"""Steps of spreadsheets as workflows call them; `activities.spreadsheets` carries them out."""

from temporalio import activity

from workflows.shared.contracts import BlobRef
from workflows.spreadsheets.mappings import CellSummary, ReviewCounts
from workflows.spreadsheets.reviews import (
    ChangeReview,
    CheckNote,
    CloseReview,
    DecideRows,
    ReviewChanged,
    ReviewInput,
)
from workflows.spreadsheets.runs import (
    Analysis,
    AnalysisInput,
    CollectInput,
    DecideCells,
    ExpiredInput,
    ExpiredPage,
    FailedUndo,
    Finishing,
    HandOverInput,
    Processed,
    ProcessInput,
    PurgeInput,
    PurgeResult,
    ReportInput,
    RowCounts,
    SaveColumns,
    SpreadsheetInput,
    Staged,
    StageInput,
    StatusRecord,
    UndoInput,
    UndoResult,
)
from workflows.spreadsheets.runs import Notice as FormerNotice


class SpreadsheetAnalysis:
    """Looks at uploaded files."""

    @activity.defn(name="spreadsheets.analyse")
    async def analyse(self, work: AnalysisInput) -> Analysis: ...


class SpreadsheetLifecycle:
    """Opens, records and closes imports."""

    @activity.defn(name="spreadsheets.begin")
    async def begin(self, order: SpreadsheetInput) -> None: ...

    @activity.defn(name="spreadsheets.record")
    async def record(self, record: StatusRecord) -> None: ...

    @activity.defn(name="spreadsheets.finish")
    async def finish(self, finishing: Finishing) -> RowCounts: ...

    @activity.defn(name="spreadsheets.decide_rows")
    async def decide_rows(self, work: DecideRows) -> None: ...

    @activity.defn(name="spreadsheets.save_columns")
    async def save_columns(self, save: SaveColumns) -> None: ...


class SpreadsheetNotifications:
    """Sends notices of runs that began to wait before all pipelines shared `notices.send`."""

    @activity.defn(name="spreadsheets.notify")
    async def notify(self, notice: FormerNotice) -> None: ...


class SpreadsheetRetentionSteps:
    """Purges imports, before-images and leftovers of uploads."""

    @activity.defn(name="spreadsheets.expired")
    async def expired(self, work: ExpiredInput) -> ExpiredPage: ...

    @activity.defn(name="spreadsheets.purge")
    async def purge(self, work: PurgeInput) -> PurgeResult: ...

    @activity.defn(name="spreadsheets.purge_leftovers")
    async def purge_leftovers(self, work: ExpiredInput) -> PurgeResult: ...


class SpreadsheetReview:
    """Reviews rows."""

    @activity.defn(name="spreadsheets.open_review")
    async def open_review(self, work: ReviewInput) -> ReviewCounts: ...

    @activity.defn(name="spreadsheets.check_review")
    async def check_review(self, work: ReviewInput) -> ReviewCounts: ...

    @activity.defn(name="spreadsheets.change_review")
    async def change_review(self, work: ChangeReview) -> ReviewChanged: ...

    @activity.defn(name="spreadsheets.note_check")
    async def note_check(self, work: CheckNote) -> None: ...

    @activity.defn(name="spreadsheets.close_review")
    async def close_review(self, work: CloseReview) -> None: ...


class SpreadsheetRows:
    """Rows of a spreadsheet into their tables."""

    @activity.defn(name="spreadsheets.process")
    async def process(self, work: ProcessInput) -> Processed: ...


class SpreadsheetFiles:
    """Hands accepted rows over."""

    @activity.defn(name="spreadsheets.hand_over")
    async def hand_over(self, work: HandOverInput) -> BlobRef: ...


class SpreadsheetReports:
    """Writes reports."""

    @activity.defn(name="spreadsheets.write_report")
    async def write_report(self, work: ReportInput) -> BlobRef | None: ...


class SpreadsheetUndoSteps:
    """Undoes imports."""

    @activity.defn(name="spreadsheets.undo")
    async def undo(self, order: UndoInput) -> UndoResult: ...

    @activity.defn(name="spreadsheets.park_undo")
    async def park_undo(self, order: FailedUndo) -> None: ...

    @activity.defn(name="spreadsheets.fail_undo")
    async def fail_undo(self, order: FailedUndo) -> None: ...


class SpreadsheetStaging:
    """Reads the whole of an uploaded file."""

    @activity.defn(name="spreadsheets.stage")
    async def stage(self, work: StageInput) -> Staged: ...


class SpreadsheetValues:
    """Collects values and takes decisions about them."""

    @activity.defn(name="spreadsheets.collect_values")
    async def collect_values(self, work: CollectInput) -> CellSummary: ...

    @activity.defn(name="spreadsheets.decide_cells")
    async def decide_cells(self, decide: DecideCells) -> CellSummary: ...
