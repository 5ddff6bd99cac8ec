"""Names, encodings, types and schemas of vector data."""

import re
from datetime import UTC, datetime

import pytest

from workflows.jobs.vectors import (
    ColumnType,
    FeatureProblem,
    GeometryType,
    LayerReport,
    LoadMode,
    Projection,
    UnknownEncoding,
    VectorColumn,
    VectorTable,
    column_names,
    column_of,
    dataset_name,
    differences,
    encoding_of,
    geometry_type,
    item_id,
    load_key,
    table_name,
    table_names,
    takes,
    text_column,
    too_many_rejected,
)
from workflows.shared.errors import InvalidDocument


def test_names_keep_letters_of_every_script_and_lose_the_rest() -> None:
    assert column_names(["Größe (m²)", "Имя", "2nd", "***", "NAME", "name"]) == [
        "größe_m2",
        "имя",
        "n2nd",
        "field",
        "name",
        "name_2",
    ]


def test_long_names_are_cut_where_postgresql_would_and_stay_apart() -> None:
    first, second = column_names([f"{'ä' * 60}{end}" for end in "xy"])
    assert first != second and all(len(name.encode()) <= 63 for name in (first, second))
    assert len(table_name("x" * 80).encode()) <= 50


def test_tables_are_called_by_their_dataset_and_layer() -> None:
    assert dataset_name("in/Flur Stücke.2024.gpkg") == "flur_stücke"
    assert table_names("town", ["roads"]) == {"roads": "town"}
    assert table_names("town", ["Roads", "roads"]) == {
        "Roads": "town_roads",
        "roads": "town_roads_2",
    }


@pytest.mark.parametrize(
    ("said", "codec"),
    [
        ("UTF-8", "utf-8"),
        ("65001", "utf-8"),
        ("1252", "cp1252"),
        ("ANSI 1251", "cp1251"),
        ("OEM 850", "cp850"),
        ("Windows-1250", "cp1250"),
        ("ISO-8859-15", "iso8859-15"),
        ("8859_2", "iso8859-2"),
        ("LDID/87", "cp1252"),
        ("Big5", "big5"),
    ],
)
def test_encodings_are_understood_as_they_are_written(said: str, codec: str) -> None:
    found = encoding_of(None, said, None, 0)
    assert found is not None and (found.codec, found.origin) == (codec, ".cpg")


def test_the_parameter_goes_before_the_file_and_a_missing_byte_says_nothing() -> None:
    found = encoding_of("cp850", "UTF-8", None, 0x57)
    assert str(found) == "cp850 (parameter)"
    assert encoding_of(None, None, None, 0) is None


@pytest.mark.parametrize("said", ["nosuch", "base64", "rot13"])
def test_an_unknown_encoding_is_no_encoding(said: str) -> None:
    with pytest.raises(UnknownEncoding, match=said):
        encoding_of(None, said, None, 0)


def test_whole_numbers_and_reals_share_a_column_while_they_are_exact() -> None:
    assert column_of([1, 0.5, None])[:2] == (ColumnType.REAL, [1.0, 0.5, None])
    kind, values, note = column_of([(1 << 53) + 1, 0.5])
    assert (kind, values) == (ColumnType.TEXT, ["9007199254740993", "0.5"])
    assert note is not None and "exactly" in note


def test_times_with_and_without_a_zone_stay_text() -> None:
    kind, values, note = text_column(["2024-01-02T03:04:05Z", "2024-01-02T03:04:05"])
    assert kind is ColumnType.TEXT and values[1] == "2024-01-02T03:04:05"
    assert note is not None and "zone" in note


def test_times_of_other_zones_are_the_same_instant() -> None:
    kind, values, note = text_column(["2024-01-02T03:04:05+02:00", None])
    assert (kind, values) == (
        ColumnType.INSTANT,
        [datetime(2024, 1, 2, 1, 4, 5, tzinfo=UTC), None],
    )
    assert note is not None


def test_what_only_looks_like_a_date_is_text() -> None:
    assert text_column(["2024-13-01"])[0] is ColumnType.TEXT


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({GeometryType.POLYGON, GeometryType.MULTI_POLYGON}, GeometryType.MULTI_POLYGON),
        ({GeometryType.POINT}, GeometryType.POINT),
        ({GeometryType.POINT, GeometryType.POLYGON}, GeometryType.GEOMETRY),
        ({GeometryType.COLLECTION, GeometryType.POINT}, GeometryType.GEOMETRY),
    ],
)
def test_a_table_has_the_type_that_holds_all(
    found: set[GeometryType], expected: GeometryType
) -> None:
    assert geometry_type(found) is expected
    assert all(takes(expected, each) for each in found)


def test_differences_of_schemas_are_all_named() -> None:
    def column(name: str, kind: ColumnType, *, is_empty: bool = False) -> VectorColumn:
        return VectorColumn(name=name, source=name, type=kind, is_empty=is_empty)

    text, real = ColumnType.TEXT, ColumnType.REAL
    table = VectorTable(
        name="t", columns=(column("a", text), column("n", real)), geometry=GeometryType.POLYGON
    )
    same = (column("n", ColumnType.INTEGER), column("a", ColumnType.DATE, is_empty=True))
    fits = VectorTable(name="t", columns=same, geometry=GeometryType.POLYGON)
    assert list(differences(table, fits)) == []
    other = VectorTable(
        name="t",
        columns=(column("a", real), column("b", text)),
        geometry=GeometryType.MULTI_POLYGON,
        has_z=True,
    )
    assert len(list(differences(table, other))) == 5


def layer(**changes: object) -> LayerReport:
    table = VectorTable(name="t", columns=(), geometry=GeometryType.POINT)
    report = LayerReport(
        layer="L", table=table, features=10, kept=10, projection=Projection(source="EPSG:4326")
    )
    return report.model_copy(update=changes)


def test_too_many_rejected_features_are_refused_with_the_first_reason() -> None:
    assert too_many_rejected(layer(kept=9, rejected=1), 0.1) is None
    problem = FeatureProblem(feature=3, field="NAME", reason="byte 0xfc is wrong")
    bad = layer(kept=8, rejected=2, problems=(problem,), problems_blob="p.jsonl")
    question = too_many_rejected(bad, 0.1) or ""
    assert re.search(r"2 of 10 .*feature 3: 'NAME': byte .*p\.jsonl", question)
    with pytest.raises(InvalidDocument):
        too_many_rejected(layer(kept=0, rejected=10), 1)


def test_what_was_appended_once_is_not_again_by_another_attempt() -> None:
    assert load_key(LoadMode.APPEND, "j", 1, 0) == load_key(LoadMode.APPEND, "j", 2, 0)
    assert load_key(LoadMode.REPLACE, "j", 1, 0) != load_key(LoadMode.REPLACE, "j", 2, 0)


def test_items_have_ids_that_clients_take() -> None:
    assert item_id("parcels_2024") == "parcels_2024"
    assert item_id("größe").startswith("gr_e-") or item_id("größe").startswith("gre-")
    assert item_id("größe") != item_id("gröSe")
