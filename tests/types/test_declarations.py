"""Values of a declaration: refused when its file is read, or good for every import."""

import json
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from itertools import product
from typing import Any, Final

import pytest
import yaml
from jsonschema import Draft202012Validator

from adapters.types.countries import country_names
from adapters.types.files import read_type
from adapters.types.schema import schema_text
from workflows.imports.types import table_spec
from workflows.shared.conversion import Flaw, read_cells
from workflows.shared.declared_fields import KINDS, ONLY
from workflows.shared.declared_types import DeclaredType
from workflows.shared.errors import RuleViolation
from workflows.shared.fields import ColumnKind
from workflows.shared.notations import Notation
from workflows.shared.packed_rows import text_of
from workflows.shared.row_rules import broken_rules

HEAD: Final = "name: things\ntitle: Things\nkey: [number]\n"
FIELDS: Final = HEAD + "fields:\n  number: {kind: code, required: true}\n"
TEXTS: Final = (
    *("", " ", "-", "0", "1", "-1", "1.5", "12.345,6", "1e400", "NaN", "Infinity", "3000000000"),
    *("10%", "5 EUR", "EUR", "EUX", "true", "sometimes", "open", "Open", "n/a", "#N/A", "first"),
    *("2025-03-04", "03/04/2025", "9999-12-31", "1800-01-01", "2025", "25:00", "1:30", "01:30:00"),
    *("2025-03-04 14:30", "2025-03-30 02:30", "Europe/Berlin", "hh:mm", "a@b.co", "+49 30 123456"),
    *("DE", "Germany", "things", "ask", "[a-z]+", "(?=x)", "x" * 120, "a\tb"),
)
BASES: Final[Mapping[str, Mapping[str, Any]]] = {
    "choice": {"choices": {"open": ["Open"], "done": []}},
    "reference": {"table": "erp.sites", "row_key": "id"},
    "money": {"currency": "EUR", "blanks": ["open"]},
    "integer": {"words": {"dozen": "12"}},
    "date": {"part": "first"},
}
READING: Final = (
    *("default", "minimum", "maximum", "pattern", "max_length", "blanks", "choices", "examples"),
    *("words", "currency", "zone", "clock", "part", "past", "filled", "units"),
)
"""Words that change how cells are read."""
CELLS: Final = (*TEXTS[::3], "open", "dozen", "n/a", None, 1, 1.5, True, date(2025, 3, 4))
TYPES: Final = {
    ColumnKind.BOOLEAN: bool,
    ColumnKind.DATE: date,
    ColumnKind.DECIMAL: Decimal,
    ColumnKind.DURATION: int,
    ColumnKind.INTEGER: int,
    ColumnKind.MONEY: Decimal,
    ColumnKind.PLACE: int,
    ColumnKind.TIME: time,
    ColumnKind.TIMESTAMP: datetime,
}
"""Kind to what a column of it stores; of every other kind a text."""


def _shaped(word: str, text: str) -> Any:
    """A text as a file has it behind a word."""
    match word:
        case "blanks" | "examples" | "units":
            return [text]
        case "choices":
            return {text: ["open"]}
        case "words":
            return {"dozen": text, text: "12"}
        case _:
            return text


def _read(field: Mapping[str, Any], *rules: Mapping[str, Any]) -> DeclaredType | None:
    """The type with such a field; None if it is refused, with a line and a reason."""
    name = field["kind"] if field["kind"] in ("sequence", "section") else "value"
    content = {
        "name": "things",
        "title": "Things",
        "key": ["number", *(each for each in (name,) if each != "value")],
        "fields": {
            "number": {"kind": "code", "required": "true"},
            name: field,
            **(
                {"second": {"kind": field["kind"], **BASES.get(field["kind"], {})}} if rules else {}
            ),
        },
        "rules": rules,
    }
    try:
        return read_type(json.dumps(content), "mine.yaml")
    except RuleViolation as refused:
        lines = str(refused).splitlines()
        assert all(line.startswith("mine.yaml: line 1: ") for line in lines), lines
        return None


def _import(declared: DeclaredType) -> None:
    """Read odd cells of each column in each notation, as an import of the type does."""
    spec = table_spec(declared, "things", country_names())
    for field in spec.fields[1:]:
        stored = TYPES.get(field.kind, str)
        assert field.blank is None or isinstance(field.blank, stored), field
        for notation in (None, Notation.POINT, Notation.COMMA):
            values, _ = read_cells(field, CELLS, notation)
            for value in values:
                assert isinstance(value, Flaw | None | stored), (field, value)
            cells = {each.name: values for each in spec.fields}
            for row, _, reason in broken_rules(declared, cells):
                assert reason and row < len(values)
            assert all(map(text_of, (each for each in values if not isinstance(each, Flaw | str))))


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_is_refused_at_once_or_works(kind: str) -> None:
    base = {"kind": kind, **BASES.get(kind, {})}
    imported: set[str] = set()
    # To read the names of all countries takes its time.
    texts = ("", "n/a", "DE", "Germany", "XX") if kind == "country" else TEXTS
    own = [word for word in READING if kind in ONLY.get(word, KINDS)]
    for word in READING:
        assert word in own or _read({**base, word: _shaped(word, "1")}) is None
    for word, text in product(own, texts):
        declared = _read({**base, word: _shaped(word, text)})
        if declared is not None and declared.digest not in imported:
            imported.add(declared.digest)
            _import(declared)
    assert imported


@pytest.mark.parametrize("kind", [each for each in KINDS if each not in ("sequence", "section")])
def test_a_rule_is_refused_at_once_or_works(kind: str) -> None:
    base = {"kind": kind, **BASES.get(kind, {})}
    rules: Iterator[dict[str, Any]] = (
        {"required": "second", "when": {"value": text}} for text in TEXTS
    )
    compared = ({"compare": ["value", sign, "second"]} for sign in ("<", "<=", "=", ">=", ">"))
    for rule in (*rules, *compared, {"any_of": ["value", "second"]}):
        if (declared := _read(base, rule)) is not None:
            _import(declared)


def test_a_word_means_its_number_in_each_notation() -> None:
    field = {
        "kind": "decimal",
        "minimum": "0",
        "words": {"dozen": "12", "half": "0.5", "free": "0"},
    }
    declared = _read(field)
    assert declared is not None
    spec = table_spec(declared, "things", {}).by_name["value"]
    for notation in (Notation.POINT, Notation.COMMA, None):
        values, _ = read_cells(spec, ["Dozen", "half", "FREE", "7"], notation)
        assert values == [12, Decimal("0.5"), 0, 7]


CASES: Final = (
    # What stands behind the two fields above, and whether it is a type.
    ("  a: {kind: boolean, default: false}", True),
    ("  a: {kind: boolean}\n  b: {}\nrules: [{required: b, when: {a: true}}]", True),
    ("  a: {kind: integer}\n  b: {}\nrules: [{required: b, when: {a: 1}}]", True),
    ("  a: {kind: integer, words: {dozen: 12}}", True),
    ("  a: {kind: choice, choices: [1, 2]}", True),
    ("  a: {kind: choice, choices: {1: [one], 2: }}", True),
    ("  a: {kind: integer, minimum: 0, maximum: 10, examples: [1]}", True),
    ("  a: {aliases: [2024], max_length: 12, title: 2024}", True),
    ("  a: {max_length: '12', pattern: 1}", True),
    ("  a:", True),
    ("  a: {kind: , currency: , required: , aliases: }", True),
    ("  a: {required: yes}\n  b: {required: 'yes'}\n  c: {filled: 'off'}", True),
    ("  a: {kind: money, currency: ISK}", True),
    ("  a: {kind: decimal, currency: }", True),
    ("retention: 400", True),
    ("retention: 1 day", True),
    ("retention: ", True),
    ("description: 12\nunmapped: keep", True),
    ("retention: 1.5", False),
    ("retention: 0", False),
    ("retention: 13 months", False),
    ("retention: 100000", False),
    ("  Net: {}", False),
    ("  net: {net: 1}", False),
    (f"  {'n' * 41}: {{}}", False),
    ("  a: {aliases: {german: [Zahlung]}}", False),
    ("  a: {aliases: {de: Zahlung}}", False),
    ("  a: {aliases: ['']}", False),
    ("  a: {aliases: [' ']}", False),
    ("  a: {kind: mony}", False),
    ("  a: {kind: money, currency: EUX}", False),
    ("  a: {kind: money, currency: eur}", False),
    ("  a: {currency: EUR}", False),
    ("  a: {kind: date, words: {soon: 2025-01-01}}", False),
    ("  a: {past: false}", False),
    ("  a: {kind: sequence, default: 1}", False),
    ("  a: {required: 1}", False),
    ("  a: {required: sometimes}", False),
    ("  a: {max_length: 0}", False),
    ("  a: {max_length: 1.5}", False),
    ("  a: {max_length: long}", False),
    ("  a: {choices: {x: y}, kind: choice}", False),
    ("  a: {kind: reference, to: Things}", False),
    ("  a: {kind: reference, table: ERP.Sites, row_key: id}", False),
    ("  a: text", False),
    ("  a: {}\nrules: [{required: number, when: {a: }}]", False),
    ("  a: {}\nrules: [{compare: [a, '=>', number]}]", False),
    ("  a: {}\nrules: [{any_of: [a]}]", False),
    ("  a: {}\nrules: {any_of: [a, number]}", False),
    ("may_import: operator", False),
    ("may_import: [boss]", False),
    ("checks: [Vat]", False),
    ("target: {database: ERP, table: a.b}", False),
    ("  a: {kind: choice}", False),
    ("  a: {kind: choice, choices: []}", False),
    ("  a: {kind: choice, choices: }", False),
    ("  a: {kind: reference, to: sites}", True),
    ("  a: {kind: reference, to: sites, unknown: create}", True),
    ("  a: {kind: reference}", False),
    ("  a: {kind: reference, to: sites, table: sites, row_key: id}", False),
    ("  a: {kind: reference, to: sites, row_key: id}", False),
    ("  a: {kind: reference, table: sites}", False),
    ("  a: {kind: reference, table: sites, row_key: id, unknown: refuse}", True),
    ("  a: {kind: reference, table: sites, row_key: id, unknown: create}", False),
    ("  a: {required: yes, default: x}", False),
    ("  a: {required: no, default: x}", True),
    ("  a: {default: ''}", True),
    ("  a: {kind: integer, default: ''}", False),
    ("  version: {}", False),
    ("scope: [version]", False),
    ("scope: [site, site]", False),
    ("table: staged_things", False),
    ("  a: {}\nrules: [{any_of: [a, a]}]", False),
    ("  a: {}\nrules: [{any_of: [a, number], together: [a, number]}]", False),
    ("  a: {}\nrules: [{required: a}]", False),
    ("  a: {}\nrules: [{any_of: [a, number], when: {a: b}}]", False),
    ("target: {file: csv, webhook: erp, columns: {}}", True),
    ("target: {table: a.b, columns: {number: no}}", True),
    ("target: {}", False),
    ("target: {table: a.b, file: csv}", False),
    ("target: {file: csv, database: erp}", False),
    ("target: {file: csv, columns: {number: no}}", False),
    ("target: {table: a.b, webhook: erp}", False),
    ("target: {file: csv}\nretention: 1 day", False),
    ("target: {table: a.b}\ntable: c", False),
    ("target: {table: a.b}\nunmapped: keep", False),
    ("target: {file: csv}\nunmapped: keep", True),
    ("target: \nretention: 1 day\ntable: c\nunmapped: keep", True),
    ("titel: Things", False),
    ("titel: ", False),
    ("title_: {}", False),
)


@pytest.mark.parametrize(("text", "is_type"), CASES)
def test_the_schema_and_the_loader_agree(text: str, is_type: bool) -> None:
    file = FIELDS + text
    # An editor has days as texts.
    content = json.loads(json.dumps(yaml.safe_load(file), default=str))
    errors = [*Draft202012Validator(json.loads(schema_text())).iter_errors(content)]
    try:
        read_type(file, "mine.yaml")
        refused = None
    except RuleViolation as error:
        refused = str(error)
    assert (not errors, refused is None) == (is_type, is_type), (errors, refused)
