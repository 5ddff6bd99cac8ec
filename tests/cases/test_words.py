"""What single texts mean: `words/*.toml` has a table for each rule, text = meaning.

The name of a table is that of its rule here. A blank meaning is that there is none.
"""

import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC
from decimal import Decimal
from functools import cache
from json import loads
from pathlib import Path
from typing import Any, Final

import pytest

from activities.spreadsheets.column_matching import match_columns
from activities.spreadsheets.entities import SUGGESTED_FROM, Entity, ImportContext
from activities.spreadsheets.sheet_types import discover
from activities.spreadsheets.value_mapping import resolver_of
from adapters.database.schema import country_rows
from adapters.files.schedules.records import Values
from adapters.files.tables.delimited import find_delimiter
from adapters.files.tables.workbooks import number_text
from adapters.files.tables.xlsx.values import Format, Sign, number, number_format, text
from adapters.files.texts.html import safe_filename
from adapters.files.texts.pdf import pdf_date
from tests.support.imports.activities import message_of
from tests.support.spreadsheets.rules import SHIRTS, surroundings
from workflows.imports.findings import changed
from workflows.imports.header import meaning_of
from workflows.imports.messages import TableMessage
from workflows.imports.runs import Retry
from workflows.imports.types import TableSpec
from workflows.shared.cells import escape_formula, unescape_formula
from workflows.shared.conversion import Flaw, read_cells
from workflows.shared.errors import RuleViolation
from workflows.shared.fields import ColumnKind, FieldSpec
from workflows.shared.left_out import footer_of, is_totals_word, likeness_of, may_hold_words
from workflows.shared.titles import currency_in
from workflows.spreadsheets.fields import header_key, value_key
from workflows.spreadsheets.mappings import ColumnMapping

FOLDER: Final = Path(__file__).parent / "words"
OWN_FORMAT: Final = 170
"""Code of a format that is not built in."""
FIELDS: Final = discover()["EVENT_PARTICIPANT"].fields_for([SHIRTS])


def utc(date: str) -> str:
    """The moment of a date in a PDF file."""
    moment = pdf_date(date)
    return moment.astimezone(UTC).isoformat() if moment else ""


def exported(written: str) -> str:
    """A text of an exported table, from which it comes back as it was."""
    assert unescape_formula(escape_formula(written)) == written
    return escape_formula(written)


def schedule_number(raw: str) -> str:
    """A number of a schedule; what is none is left empty and reported."""
    values = Values()
    found = values.number(3, "lag_hours", raw)
    assert [(each.line, each.column, each.value) for each in values.remarks] == (
        [(3, "lag_hours", raw)] if found is None else []
    )
    assert all(each.reason.endswith("; the value was left empty") for each in values.remarks)
    return "" if found is None else f"{found:f}"


def kept_lines(given: str) -> list[str]:
    """The lines of an answer; those that are none are refused."""
    message = message_of("equipment", blob_name="in/file", left_out="ask")
    try:
        answered = changed(message, Retry(changes={"keep_lines": loads(given)}).changes)
    except RuleViolation as refused:
        assert "keep_lines" in str(refused)
        return []
    assert isinstance(answered, TableMessage)
    assert answered.left_out == "ask"
    return list(answered.keep_lines)


def column(header: str) -> ColumnMapping:
    """A column with this header alone."""
    (found,) = match_columns([(0, header)], FIELDS, {}, ())
    return found


def likeliest(header: str) -> str:
    """The first field that is suggested for a header, which is not matched."""
    found = column(header)
    assert (found.target, found.confidence) == (None, 0)
    assert all(SUGGESTED_FROM <= each.score < 1 for each in found.alternatives)
    return found.alternatives[0].name if found.alternatives else ""


@cache
def countries() -> ImportContext:
    """All countries."""
    rows = [Entity(row["id"], row["name"], loads(row["spellings"])) for row in country_rows()]
    return surroundings(entities={"countries": rows})


def country(value: str) -> int:
    """The number of a country; 0: it is not certain which."""
    found = resolver_of("countries").resolve(value, countries())
    assert found.confidence in ((0,) if found.target is None else (1.0, 0.95))
    assert len(found.alternatives) <= 3
    return 0 if found.target is None else found.target.id


def category(value: str) -> list[Any]:
    """Id of a category and how certain it is."""
    found = resolver_of("event_categories").resolve(value, surroundings())
    return [found.target.id if found.target else 0, found.confidence]


def cells_of(kind: ColumnKind, **limits: Any) -> Callable[[str], str]:
    """How the texts of a column are read: the value, or what is wrong."""
    field = FieldSpec("field", kind, **limits)

    def value(text: str) -> str:
        ((found,), refused) = read_cells(field, [text], None)
        assert refused is isinstance(found, Flaw)
        return found.reason if isinstance(found, Flaw) else "" if found is None else str(found)

    return value


def titles_of(kind: ColumnKind, *aliases: str, **limits: Any) -> Callable[[str], str]:
    """What a header means to the field, by both doors; `asked` if it names another unit."""
    field = FieldSpec("amount", kind, aliases=aliases, **limits)
    table = TableSpec("amounts", (), ("amount",), (field,))

    def meaning(header: str) -> str:
        (uploaded,) = match_columns([(0, header)], [field], {}, [["1", "2"]])
        remembered = {"Amount": field.name}
        (again,) = match_columns([(0, header)], [field], remembered, [["1", "2"]])
        found = meaning_of(header, table)
        assert uploaded.target == again.target == (found and found.field.name)
        if found is not None:
            return "amount"
        asked = [each.why for each in uploaded.alternatives]
        return "asked" if any("names another unit" in why for why in asked) else ""

    return meaning


def word_of_tables(text: str) -> str:
    """What a key may say in the place of a code."""
    assert may_hold_words(["D-1", text]) or not (is_totals_word(text) or footer_of(text))
    return "total" if is_totals_word(text) else "footer" if footer_of(text) else ""


def format_name(code: int, pattern: str | None) -> str:
    """What a format of a worksheet makes of a number: its kind, or the sign that it shows."""
    shown = number_format(code, pattern)
    return shown.sign if isinstance(shown, Sign) else Format(shown).name


RULES: Final[Mapping[str, Callable[[str], Any]]] = {
    "names are made safe": lambda name: safe_filename(name, "file"),
    "dates of PDF files": utc,
    "delimiters of texts": lambda content: find_delimiter(content, complete=True),
    "numbers of worksheets": lambda raw: number(raw.encode()),
    "texts of worksheets": lambda raw: text(raw) or "",
    "built-in formats of worksheets": lambda code: format_name(int(code), None),
    "formats of worksheets": lambda pattern: format_name(OWN_FORMAT, pattern),
    "texts of exported tables": exported,
    "numbers of exported tables": lambda written: number_text(Decimal(written)),
    "numbers of schedules": schedule_number,
    "lines that a person keeps": kept_lines,
    "words for totals": word_of_tables,
    "keys like totals": lambda key: likeness_of(key).name.lower(),
    "headers that name a field": lambda header: [column(header).target, column(header).confidence],
    "headers that are like the name of a field": likeliest,
    "headers that are like nothing": likeliest,
    "countries": country,
    "categories": category,
    "keys of headers": header_key,
    "keys of values": value_key,
    "truth values": cells_of(ColumnKind.BOOLEAN),
    "times of day": cells_of(ColumnKind.TIME),
    "days with a time": cells_of(ColumnKind.TIMESTAMP),
    "days with a time in Berlin": cells_of(ColumnKind.TIMESTAMP, zone="Europe/Berlin"),
    "amounts of euros": cells_of(ColumnKind.MONEY, currency="EUR"),
    "amounts of Canadian dollars": cells_of(ColumnKind.MONEY, currency="CAD"),
    "amounts of Bulgarian levs": cells_of(ColumnKind.MONEY, currency="BGN"),
    "headers of euros": titles_of(ColumnKind.MONEY, "Preis", "Prix", "Precio", currency="EUR"),
    "headers of Canadian dollars": titles_of(ColumnKind.MONEY, currency="CAD"),
    "headers of money": titles_of(ColumnKind.MONEY),
    "headers of kilograms": titles_of(ColumnKind.DECIMAL, "Menge", "N\u00b0", units=("kg",)),
    "headers of percentages": titles_of(ColumnKind.DECIMAL, units=("%",)),
    "headers of numbers": titles_of(ColumnKind.DECIMAL, "Rabatt", "% complete"),
    "currencies of headers": lambda header: currency_in(header) or "",
    "phone numbers": cells_of(ColumnKind.PHONE),
    "texts that match a pattern": cells_of(ColumnKind.CODE, pattern="[A-Z]{2}-[0-9]+|free"),
    "texts that are blank here": cells_of(ColumnKind.TEXT, blanks=("keine Angabe", "999")),
}
WORDS: Final = {
    f"{rule}: {word!r}": (RULES[rule], word, meaning)
    for family in sorted(FOLDER.glob("*.toml"))
    for rule, words in tomllib.loads(family.read_text()).items()
    for word, meaning in words.items()
}


@pytest.mark.parametrize(("rule", "word", "meaning"), WORDS.values(), ids=WORDS)
def test_a_text_means_this(rule: Callable[[str], Any], word: str, meaning: Any) -> None:
    found = rule(word)
    assert (type(found), found) == (type(meaning), meaning)


def test_every_rule_has_words() -> None:
    assert {rule for rule, _, _ in WORDS.values()} == set(RULES.values())
