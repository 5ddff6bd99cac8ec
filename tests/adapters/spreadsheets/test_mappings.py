"""Columns and values: found, decided, remembered."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.value_store import ValueFilter
from activities.spreadsheets.views import SqlSpreadsheetViews
from adapters.database.engine import Database
from adapters.database.models.spreadsheets import remembered_columns, remembered_values
from stack.sample_club import SampleClub
from tests.support.spreadsheets.store import NOW, StoredSpreadsheet, opened
from workflows.spreadsheets.fields import Entity, FoundValue, Preview, RememberedValue
from workflows.spreadsheets.mappings import (
    Alternative,
    CellDecision,
    CellRule,
    CellSummary,
    ColumnMapping,
    DecisionRecord,
    FieldMetadata,
    Layout,
    MappingStatus,
    OpenValue,
)
from workflows.spreadsheets.runs import Analysis, DecideCells, SaveColumns

FIELD = "EVENT_CATEGORY_NAME"
COLUMNS = (
    ColumnMapping(
        id=1,
        index=0,
        header="E-Mail",
        target="EMAIL",
        status=MappingStatus.AUTO_MATCHED,
        confidence=0.95,
    ),
    ColumnMapping(
        id=2, index=2, header="Größe \0", alternatives=(Alternative(name="CLUB", score=0.7),)
    ),
)
PREVIEW = Preview("xlsx", ["Läufer"], [(3, ["E-Mail", "Größe"])], [["a@b.c"], ["L", "half \ud800"]])


def chosen(target: str, header: str = "Größe", **more: Any) -> ColumnMapping:
    given = {"id": 2, "index": 2, "header": header, "target": target}
    return ColumnMapping(**{**given, "status": MappingStatus.MANUAL_MATCHED, **more})


def save(
    sheet: StoredSpreadsheet, version: int, *columns: ColumnMapping, **more: Any
) -> SaveColumns:
    return SaveColumns(
        uuid=sheet.uuid,
        organisation_id=1,
        import_type="EVENT_PARTICIPANT",
        version=version,
        columns=columns,
        **more,
    )


async def analysed(
    sheets: SqlSpreadsheetStore, club: SampleClub, version: int = 0, **fields: Any
) -> StoredSpreadsheet:
    sheet = await opened(sheets, club, **fields)
    facts = (FieldMetadata(name="EMAIL", required=True),)
    analysis = Analysis(layout=Layout(header_line=3), columns=COLUMNS, fields=facts)
    await sheets.save_analysis(sheet.order, analysis, PREVIEW, version)
    return sheet


async def test_an_analysis_is_shown_as_it_was_saved(
    sheets: SqlSpreadsheetStore, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    sheet = await analysed(sheets, club)
    view = await views.columns(sheet.uuid)
    assert view.version == 0
    first, second = view.columns
    assert (first.id, first.index, first.target, first.status) == (
        *(1, 0, "EMAIL"),
        MappingStatus.AUTO_MATCHED,
    )
    assert second.header == "Größe \ufffd"
    assert [each.name for each in second.alternatives] == ["CLUB"]
    assert (list(first.samples), list(second.samples)) == (["a@b.c"], ["L", "half \ufffd"])
    preview = await views.preview(sheet.uuid)
    assert preview is not None
    assert (preview.format, list(preview.sheets)) == ("xlsx", ["Läufer"])
    assert list(preview.rows) == [(3, ["E-Mail", "Größe"])]
    row = await views.get(sheet.uuid, {1})
    assert row is not None
    assert row.layout == Layout(header_line=3)


async def test_another_layout_replaces_the_columns(
    sheets: SqlSpreadsheetStore, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    sheet = await analysed(sheets, club)
    other = Analysis(layout=Layout(header_line=9), columns=COLUMNS[:1], fields=())
    await sheets.save_analysis(sheet.order, other, PREVIEW, 1)
    late = Analysis(layout=Layout(header_line=3), columns=COLUMNS, fields=())
    await sheets.save_analysis(sheet.order, late, PREVIEW, 0)
    view = await views.columns(sheet.uuid)
    assert (view.version, [column.id for column in view.columns]) == (1, [1])


async def test_columns_keep_the_newest_version_and_the_whole_trail(
    sheets: SqlSpreadsheetStore, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    sheet = await analysed(sheets, club)
    lines = [
        DecisionRecord(kind="column", subject="Größe", decision=name, by="anna", at=NOW)
        for name in ("CLUB", "BIB")
    ]
    newer = save(sheet, 2, COLUMNS[0], chosen("BIB"), trail=(lines[1],))
    await sheets.save_columns(newer)
    await sheets.save_columns(newer)
    await sheets.save_columns(save(sheet, 1, COLUMNS[0], chosen("CLUB"), trail=(lines[0],)))
    view = await views.columns(sheet.uuid)
    assert (view.version, view.columns[1].target) == (2, "BIB")
    assert view.columns[1].status is MappingStatus.MANUAL_MATCHED
    assert list(view.columns[1].samples) == ["L", "half \ufffd"]
    assert {line.decision for line in (await views.decisions(sheet.uuid)).items} == {"CLUB", "BIB"}


async def test_an_answer_repeated_after_a_crash_is_recorded_once(
    sheets: SqlSpreadsheetStore, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    sheet = await analysed(sheets, club)
    for seconds in (0, 12):
        at = NOW + timedelta(seconds=seconds)
        line = DecisionRecord(kind="column", subject="Größe", decision="BIB", by="anna", at=at)
        await sheets.save_columns(save(sheet, 1, COLUMNS[0], chosen("BIB"), trail=(line,)))
    assert [each.at for each in (await views.decisions(sheet.uuid)).items] == [NOW]


async def test_columns_that_people_chose_are_remembered(
    sheets: SqlSpreadsheetStore, club: SampleClub
) -> None:
    sheet = await analysed(sheets, club)
    await sheets.save_columns(save(sheet, 1, COLUMNS[0], chosen("CLUB"), remember=True))
    assert await sheets.remembered_columns(1, "EVENT_PARTICIPANT", ["groesse", "E-Mail"]) == {}
    assert await sheets.remembered_columns(
        1, "EVENT_PARTICIPANT", ["GRÖSSE", "große", "größe", "Größe:", "E-Mail"]
    ) == dict.fromkeys(("GRÖSSE", "größe", "Größe:", "große"), "CLUB")
    assert await sheets.remembered_columns(2, "EVENT_PARTICIPANT", ["Größe"]) == {}
    assert await sheets.remembered_columns(1, "MEMBERSHIP", ["Größe"]) == {}
    await sheets.save_columns(save(sheet, 2, chosen("BIB", header="größe"), remember=True))
    assert await sheets.remembered_columns(1, "EVENT_PARTICIPANT", ["Größe"]) == {"Größe": "BIB"}
    # People of another site teach those of the organisation nothing.
    theirs = await analysed(sheets, club, remembers=False)
    await sheets.save_columns(save(theirs, 1, chosen("TEAM"), remember=True))
    assert await sheets.remembered_columns(1, "EVENT_PARTICIPANT", ["Größe"]) == {"Größe": "BIB"}


async def test_columns_remembered_under_an_older_spelling_are_found(
    sheets: SqlSpreadsheetStore, database: Database
) -> None:
    memory = {"organisation_id": 1, "import_type": "EVENT_PARTICIPANT", "decided_at": NOW}
    later = {"decided_at": NOW + timedelta(days=1)}
    rows = [
        {**memory, "header": "GR\xd6SSE", "target": "CLUB", **later},
        {**memory, "header": "grosse", "target": "BIB"},
        {**memory, "header": "#  #", "target": "ROW"},
    ]
    async with database.transaction() as connection:
        await connection.execute(remembered_columns.insert(), rows)
    asked = ["Größe", "# #", "#"]
    found = await sheets.remembered_columns(1, "EVENT_PARTICIPANT", asked)
    assert found == {"Größe": "CLUB", "# #": "ROW"}


def value(text: str, rows: int = 1, target: Entity | None = None, **more: Any) -> FoundValue:
    if target is None:
        return FoundValue(FIELD, text, rows, **more)
    return FoundValue(FIELD, text, rows, target.id, target.name, 1.0)


def decide(
    sheet: StoredSpreadsheet, version: int, *decisions: CellDecision, **more: Any
) -> DecideCells:
    return DecideCells(
        order=sheet.order, version=version, decisions=decisions, by="anna", at=NOW, **more
    )


async def all_mappings(sheets: SqlSpreadsheetStore, sheet: StoredSpreadsheet) -> dict[str, Any]:
    return {
        mapping.value: mapping async for page in sheets.mappings(sheet.uuid) for mapping in page
    }


async def test_values_are_found_once_and_keep_their_decision(
    sheets: SqlSpreadsheetStore, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    sheet = await opened(sheets, club)
    other = await opened(sheets, club)
    senior = Entity(2, "Senior (18+)")
    found = [
        value("Senior", 5, senior),
        value("Sen.", 2, alternatives=[(2, "Senior (18+)", 0.8)]),
        value("half \ud800"),
    ]
    await sheets.save_values(sheet.uuid, found)
    await sheets.save_values(other.uuid, found)
    first = await all_mappings(sheets, sheet)
    assert list(first) == ["Senior", "Sen.", "half \ufffd"]
    assert first["Senior"].status is MappingStatus.AUTO_MATCHED
    assert first["Sen."].alternatives == (Alternative(name="Senior (18+)", score=0.8, id=2),)
    ids = {text: mapping.id for text, mapping in first.items()}
    summary = await sheets.decide_cells(
        decide(sheet, 1, CellDecision(id=ids["Sen."], target_id=2)), {ids["Sen."]: senior}
    )
    assert summary == CellSummary(
        total=3,
        open=1,
        first_open=(OpenValue(id=ids["half \ufffd"], field=FIELD, value="half \ufffd", rows=1),),
    )
    await sheets.save_values(sheet.uuid, [value("Sen.", 9), value("new")])
    after = await all_mappings(sheets, sheet)
    assert (after["Sen."].rows, after["Sen."].target_id) == (9, 2)
    assert after["Sen."].status is MappingStatus.MANUAL_MATCHED
    assert (await sheets.cell_summary(sheet.uuid)).open == 2
    assert (await sheets.cell_summary(other.uuid)).open == 2
    strangers = [mapping.id for mapping in (await all_mappings(sheets, other)).values()]
    assert await sheets.cell_mapping(sheet.uuid, [*strangers, ids["Sen."]]) == [after["Sen."]]
    row = await views.get(sheet.uuid, {1})
    assert row is not None
    assert (row.values_total, row.open_values, row.version) == (4, 2, 1)


async def test_decisions_are_applied_once_and_all_or_none(
    sheets: SqlSpreadsheetStore, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    sheet = await opened(sheets, club)
    senior, junior = Entity(2, "Senior (18+)"), Entity(1, "Junior (U18)")
    await sheets.save_values(sheet.uuid, [value("a", 1, senior), *map(value, "bcd")])
    ids = {text: mapping.id for text, mapping in (await all_mappings(sheets, sheet)).items()}
    first = decide(
        sheet,
        1,
        CellDecision(id=ids["a"], confirm=True),
        CellDecision(id=ids["b"], ignore=True),
        CellDecision(id=ids["c"], create=True),
        CellDecision(id=ids["d"], target_id=1),
    )
    targets = {ids["d"]: junior}
    summary = await sheets.decide_cells(first, targets)
    assert (summary.total, summary.open) == (4, 0)
    mappings = await all_mappings(sheets, sheet)
    assert [(m.status, m.target_id, m.create) for m in mappings.values()] == [
        (MappingStatus.MANUAL_MATCHED, 2, False),
        (MappingStatus.IGNORED, None, False),
        (MappingStatus.MANUAL_MATCHED, None, True),
        (MappingStatus.MANUAL_MATCHED, 1, False),
    ]
    again = decide(sheet, 1, CellDecision(id=ids["d"], ignore=True))
    assert await sheets.decide_cells(again, {}) == summary
    assert (await all_mappings(sheets, sheet)) == mappings
    with pytest.raises(LookupError, match="there is no value 999999"):
        await sheets.decide_cells(
            decide(
                sheet,
                2,
                CellDecision(id=ids["d"], ignore=True),
                CellDecision(id=999999, ignore=True),
            ),
            {},
        )
    assert (await all_mappings(sheets, sheet)) == mappings
    trail = await views.decisions(sheet.uuid)
    assert {line.subject: (line.decision, line.confidence) for line in trail.items} == {
        f"{FIELD}: a": ("confirmed", 1.0),
        f"{FIELD}: b": ("ignored", None),
        f"{FIELD}: c": ("created", None),
        f"{FIELD}: d": ("Junior (U18)", None),
    }


async def test_values_that_people_chose_are_remembered(
    sheets: SqlSpreadsheetStore, club: SampleClub
) -> None:
    sheet = await opened(sheets, club)
    senior = Entity(2, "Senior (18+)")
    await sheets.save_values(sheet.uuid, [value("auto", 1, senior), *map(value, ("A+", "A-", "x"))])
    ids = {text: mapping.id for text, mapping in (await all_mappings(sheets, sheet)).items()}
    decisions = [CellDecision(id=ids[text], target_id=2) for text in ("A+", "A-")]
    targets = {ids["A+"]: senior, ids["A-"]: Entity(3, "Masters")}
    await sheets.decide_cells(
        decide(sheet, 1, *decisions, CellDecision(id=ids["x"], ignore=True)), targets
    )
    assert await sheets.remembered_values(1, "EVENT_PARTICIPANT", FIELD) == {}
    confirm = decide(sheet, 2, confirm=True)
    await sheets.decide_cells(confirm, {})
    await sheets.decide_cells(confirm, {})
    assert await sheets.remembered_values(1, "EVENT_PARTICIPANT", FIELD) == {
        "a+": RememberedValue(2, "Senior (18+)"),
        "a-": RememberedValue(3, "Masters"),
        "x": RememberedValue(),
    }
    assert await sheets.remembered_values(2, "EVENT_PARTICIPANT", FIELD) == {}
    assert await sheets.remembered_values(1, "MEMBERSHIP", FIELD) == {}
    assert await sheets.remembered_values(1, "EVENT_PARTICIPANT", "OTHER") == {}


async def test_values_remembered_under_an_older_spelling_are_found(
    sheets: SqlSpreadsheetStore, database: Database
) -> None:
    memory = {"organisation_id": 1, "import_type": "EVENT_PARTICIPANT", "field": FIELD}
    rows = [
        {**memory, "value": "u 18", "target_id": 1, "decided_at": NOW + timedelta(days=1)},
        {**memory, "value": "u18", "target_id": 2, "decided_at": NOW},
        {**memory, "value": "blood group a+", "target_id": 3, "decided_at": NOW},
        {**memory, "value": "blood group a-", "target_id": 4, "decided_at": NOW},
    ]
    async with database.transaction() as connection:
        await connection.execute(remembered_values.insert(), rows)
    found = await sheets.remembered_values(1, "EVENT_PARTICIPANT", FIELD)
    assert {value: chosen.target_id for value, chosen in found.items()} == {
        "u18": 1,
        "blood group a+": 3,
        "blood group a-": 4,
    }


async def test_a_value_spelled_in_another_way_replaces_what_is_remembered(
    sheets: SqlSpreadsheetStore, club: SampleClub, database: Database
) -> None:
    for number, (spelling, target) in enumerate([("U 18", 1), ("u18", 2)]):
        sheet = await opened(sheets, club)
        await sheets.save_values(sheet.uuid, [value(spelling)])
        ids = [mapping.id for mapping in (await all_mappings(sheets, sheet)).values()]
        chosen_row = Entity(target, "Youth")
        decision = CellDecision(id=ids[0], target_id=target)
        await sheets.decide_cells(decide(sheet, 1, decision), {ids[0]: chosen_row})
        await sheets.decide_cells(decide(sheet, 2, confirm=True), {})
        found = await sheets.remembered_values(1, "EVENT_PARTICIPANT", FIELD)
        assert found == {"u18": RememberedValue(number + 1, "Youth")}
    async with database.reading() as connection:
        stored = (await connection.execute(select(remembered_values.c.value))).scalars().all()
    assert stored == ["u18"]


async def test_values_are_paged_and_filtered(
    sheets: SqlSpreadsheetStore, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    sheet = await opened(sheets, club)
    many = [value(f"v{n:04}", 1, Entity(1, "x") if n % 2 else None) for n in range(2_500)]
    await sheets.save_values(sheet.uuid, [*many, FoundValue("OTHER", "v0001", 1)])
    sizes = [len(page) async for page in sheets.mappings(sheet.uuid)]
    assert sizes == [1_000, 1_000, 501]
    summary = await sheets.cell_summary(sheet.uuid)
    assert (summary.total, summary.open, len(summary.first_open)) == (2_501, 1_251, 50)
    wanted = ValueFilter(field=FIELD, status=MappingStatus.UNMATCHED)
    view = await views.cells(sheet.uuid, wanted, page=2, size=3)
    assert (view.total, [cell.value for cell in view.items]) == (1_250, ["v0012", "v0014", "v0016"])


async def test_values_that_match_are_found_counted_and_answered(
    sheets: SqlSpreadsheetStore, club: SampleClub, views: SqlSpreadsheetViews
) -> None:
    sheet, other = await opened(sheets, club), await opened(sheets, club)
    texts = ("Müller & Co", "muller", "100 %", "100_000", "+", "-")
    for each in (sheet, other):
        person = FoundValue("PERSON", "Ada Muller", 1, question="MAIL_MISSING")
        await sheets.save_values(each.uuid, [*map(value, texts), person])

    async def matching(text: str) -> list[str]:
        return [
            each.value for each in (await views.cells(sheet.uuid, ValueFilter(text=text))).items
        ]

    assert await matching("MÜLLER") == ["Müller & Co", "muller", "Ada Muller"]
    assert await matching("muller co") == ["Müller & Co"]
    assert await matching("100 0") == ["100_000"]
    assert await matching("%") == []
    assert await matching("+") == ["+"]
    assert await views.cell_counts(sheet.uuid, ValueFilter(text="muller")) == {
        FIELD: 2,
        "PERSON": 1,
    }
    rules = (CellRule(text="muller", ignore=True), CellRule(field=FIELD, create=True))
    order = decide(sheet, 1, rules=rules)
    summary = await sheets.decide_cells(order, {}, (None, None))
    assert (summary.open, summary.first_open[0].value) == (1, "Ada Muller")
    found = await all_mappings(sheets, sheet)
    assert found["muller"].status is MappingStatus.IGNORED
    assert found["100 %"].create
    assert (await sheets.cell_summary(other.uuid)).open == 7
    assert await sheets.decide_cells(order, {}, (None, None)) == summary
    people = CellRule(field="PERSON", question="MAIL_MISSING", create=True)
    assert (await sheets.decide_cells(decide(sheet, 2, rules=(people,)), {}, (None,))).open == 0
