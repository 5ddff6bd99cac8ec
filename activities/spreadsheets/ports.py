"""Tables of the spreadsheets pipeline, and what it asks of files.

Tables of reviews of spreadsheets.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from activities.spreadsheets.review_rules import ReviewState, RowProblem, StoredOperation
from workflows.shared.contracts import BlobRef, Problem
from workflows.spreadsheets.fields import (
    CustomList,
    Entity,
    EntityScope,
    FoundValue,
    ParkedRow,
    Preview,
    RememberedValue,
    SheetChunk,
    SheetMark,
    SkippedRow,
)
from workflows.spreadsheets.mappings import CellMapping, CellSummary, DecisionRecord, ReviewCounts
from workflows.spreadsheets.people import KnownPerson, PeopleQuery
from workflows.spreadsheets.reviews import (
    CheckNote,
    CloseReview,
    DecideRows,
    ReviewEffect,
    ReviewExample,
    ReviewOperation,
)
from workflows.spreadsheets.runs import (
    Analysis,
    DecideCells,
    ExpiredPage,
    Processed,
    RetentionOrder,
    RowCounts,
    SaveColumns,
    SpreadsheetOrder,
    SpreadsheetResult,
    StatusRecord,
    UndoOrder,
    UndoResult,
)


class SpreadsheetReviews(Protocol):
    """Reviews: rows, problems and corrections. Every method is one transaction and may run
    twice."""

    async def state(self, uuid: str) -> ReviewState | None:
        """The review of an import; None: there is none."""
        ...

    async def add_blocks(
        self, uuid: str, blocks: Sequence[tuple[int, bytes]], *, first: bool
    ) -> None:
        """Store rows: line of the first of a block, and its bytes; `first` removes earlier ones."""
        ...

    def blocks(self, uuid: str) -> AsyncIterator[Sequence[bytes]]:
        """Every block in the order of the file, some at a time."""
        ...

    async def first_blocks(self, uuid: str, count: int) -> Sequence[bytes]:
        """The first blocks of the file."""
        ...

    async def blocks_with(self, uuid: str, lines: Collection[int]) -> Sequence[bytes]:
        """The blocks that some rows may be in."""
        ...

    async def open(self, uuid: str, counts: ReviewCounts) -> None:
        """Accept corrections from now on."""
        ...

    async def operations(self, uuid: str) -> Sequence[ReviewOperation]:
        """The operations that were applied, by version, behind the rows that docflow skips."""
        ...

    async def decide_rows(self, work: DecideRows) -> None:
        """Keep rows, or leave them out, before columns are confirmed; at most once a version."""
        ...

    async def operation(self, uuid: str, id: int) -> StoredOperation | None:
        """One operation; None: there is none of this id in this import."""
        ...

    async def note(
        self, uuid: str, id: int, effect: ReviewEffect, examples: Sequence[ReviewExample]
    ) -> None:
        """Store what an operation would change."""
        ...

    async def apply(
        self,
        uuid: str,
        id: int,
        line: DecisionRecord,
        version: int,
        effect: ReviewEffect,
        examples: Sequence[ReviewExample],
        replaced: tuple[Collection[int] | None, Collection[int] | None],
        problems: Sequence[RowProblem],
        excluded: int,
    ) -> ReviewCounts | None:
        """Give an operation its version, and replace the problems of some rows and columns.

        None: the review has been closed meanwhile; nothing is changed.
        """
        ...

    async def replace_problems(
        self, uuid: str, version: int, problems: Sequence[RowProblem]
    ) -> ReviewCounts | None:
        """Write all that is wrong at a version; None: there is a later one."""
        ...

    async def note_check(self, note: CheckNote) -> None:
        """Store why all rows could not be checked at a version; one that is not the newest is
        left out."""
        ...

    async def problems_in(
        self, uuid: str, lines: Collection[int] | None, columns: Collection[int] | None
    ) -> int:
        """How many problems some rows have in some columns; None: any."""
        ...

    async def close(
        self,
        work: CloseReview,
        columns: Sequence[tuple[int, str]],
        edits: Sequence[ReviewOperation],
    ) -> None:
        """Accept no further corrections, and remember those of whole columns."""
        ...


class SpreadsheetStore(Protocol):
    """Tables of the spreadsheets pipeline. Every method is one transaction and may run twice."""

    @property
    def reviews(self) -> SpreadsheetReviews:
        """Reviews of rows before they are written."""
        ...

    async def open(self, order: SpreadsheetOrder, workflow_id: str, now: datetime) -> None:
        """Make the status row (UPLOADED), and forget the note of the upload."""
        ...

    async def record(self, record: StatusRecord) -> None:
        """Write one transition into the status row, with its trail.

        Nothing changes when the stored sequence is higher, or the import has ended.
        """
        ...

    async def finish(self, result: SpreadsheetResult, record: StatusRecord) -> RowCounts:
        """As `record`, with report and final state, whatever the stored sequence; the counts as
        the progress mark has them. An import that has ended stays as it is."""
        ...

    async def save_analysis(
        self, order: SpreadsheetOrder, analysis: Analysis, preview: Preview, version: int
    ) -> None:
        """Replace columns and preview."""
        ...

    async def save_total(self, uuid: str, total: int) -> None:
        """Rows of the file, as far as they are counted."""
        ...

    async def save_hidden_rows(self, uuid: str, rows: int, lines: str) -> None:
        """Put into the preview how many rows of the whole file are hidden, and the first lines."""
        ...

    async def save_skipped_rows(self, uuid: str, rows: Sequence[SkippedRow]) -> None:
        """Put into the preview which rows of the whole file are no people, or may be none."""
        ...

    async def save_file(self, uuid: str, blob: BlobRef) -> None:
        """Note a blob that is made for an import, so that it goes when the import is purged."""
        ...

    async def save_columns(self, save: SaveColumns) -> None:
        """Write column mappings with their trail; remember people's decisions if asked to."""
        ...

    async def remembered_columns(
        self, organisation_id: int, import_type: str, headers: Sequence[str]
    ) -> Mapping[str, str | None]:
        """Header to field, of those that people decided before; None: they left it out."""
        ...

    async def custom_lists(self, organisation_id: int) -> Sequence[CustomList]:
        """The organisation's custom lists."""
        ...

    async def context_exists(self, table: str, id: int, organisation_id: int) -> bool:
        """Whether an event, period or race is the organisation's."""
        ...

    async def entities(self, scope: EntityScope) -> Sequence[Entity]:
        """Everything that cells may refer to, by name; at most 100,000."""
        ...

    async def remembered_values(
        self, organisation_id: int, import_type: str, field: str
    ) -> Mapping[str, RememberedValue]:
        """Normalised value to what people chose for it before."""
        ...

    async def index_people(self, organisation_id: int) -> None:
        """Make people findable that another program wrote, or an earlier release."""
        ...

    async def people(self, organisation_id: int, query: PeopleQuery) -> Sequence[KnownPerson]:
        """The organisation's people whom rows may be about, by id."""
        ...

    async def people_by_id(self, organisation_id: int, ids: Sequence[int]) -> Sequence[KnownPerson]:
        """Some of the organisation's people; ids of others are left out."""
        ...

    async def remembered_people(self, organisation_id: int) -> Mapping[str, Mapping[int, bool]]:
        """What people answered before, by digest of the question: id of a person, and whether
        it is the same."""
        ...

    async def save_values(self, uuid: str, values: Sequence[FoundValue]) -> None:
        """Add distinct values; one that is there keeps its decision and gets this count."""
        ...

    async def cell_summary(self, uuid: str) -> CellSummary:
        """Figures and the first open values."""
        ...

    async def cell_mapping(self, uuid: str, ids: Sequence[int]) -> Sequence[CellMapping]:
        """Some mappings of this import by id; ids of other imports are left out."""
        ...

    async def decide_cells(
        self,
        decide: DecideCells,
        targets: Mapping[int, Entity],
        rule_targets: Sequence[Entity | None] = (),
    ) -> CellSummary:
        """Take checked decisions and rules with their trail, all or none.

        Args:
            decide: The decisions; a version that was written before changes nothing.
            targets: Entity chosen for each mapping id with `target_id` or `create` resolved.
            rule_targets: Entity chosen by each rule; None where it names none.
        """
        ...

    def mappings(self, uuid: str) -> AsyncIterator[Sequence[CellMapping]]:
        """Every cell mapping, in pages of at most 1,000."""
        ...

    async def create_entity(self, scope: EntityScope, name: str) -> Entity:
        """Find or make a candidate of this name."""
        ...

    async def mark(self, uuid: str) -> SheetMark:
        """How far the rows have come."""
        ...

    async def write(self, uuid: str, chunk: SheetChunk, *, dry_run: bool) -> SheetMark:
        """Write one chunk: targets by natural key, results, before-images, parked rows, found
        values and the progress mark.

        A chunk at or before the mark is left alone. Under `dry_run` the outcomes are found out,
        recorded with a summary of the differences, and no target table changes.
        """
        ...

    async def parked(self, uuid: str, after: int, limit: int) -> Sequence[ParkedRow]:
        """Parked rows by line, above line `after`."""
        ...

    async def end_round(self, uuid: str, round: int) -> Processed:
        """Mark a round as ended; figures of all rounds, rows and values that wait."""
        ...

    def errors(self, uuid: str) -> AsyncIterator[Sequence[tuple[int, Sequence[Problem]]]]:
        """Rows with outcome ERROR by line, in pages of at most 1,000."""
        ...

    async def begin_undo(self, order: UndoOrder) -> str | None:
        """Mark an import as being undone; None, or why it cannot be.

        An order that was carried out already is not refused: its attempt may have died since.
        """
        ...

    async def undo_chunk(self, uuid: str) -> bool:
        """Take back the newest chunk that is not taken back yet; False: there is none."""
        ...

    async def end_undo(self, uuid: str) -> UndoResult:
        """Mark an import as undone; what was done and what was left alone."""
        ...

    async def expired(self, order: RetentionOrder, now: datetime) -> ExpiredPage:
        """Imports that are due for purging, the oldest first; never one that is PROCESSING."""
        ...

    async def files_of(self, uuid: str) -> Sequence[BlobRef]:
        """Blobs of an import: source, staged rows, report; none while it is PROCESSING."""
        ...

    async def purge(self, uuid: str, now: datetime) -> bool:
        """Remove results, values, previews, parked rows and names; a trail without personal
        data stays. False when that was done before."""
        ...

    async def purge_journals(self, before: datetime, limit: int) -> int:
        """Remove before-images of imports that ended before; how many imports."""
        ...

    async def purge_proposals(self, before: datetime, limit: int) -> int:
        """Remove changes of reviews that were proposed before and never applied; how many."""
        ...

    async def stale_uploads(self, before: datetime, limit: int) -> Sequence[tuple[str, str]]:
        """Uuid and blob name of uploads that never became an import."""
        ...

    async def forget_upload(self, blob_name: str) -> None:
        """Forget the note of an upload."""
        ...
