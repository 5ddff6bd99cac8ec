"""Type files: what is wrong with one is said with its line and what to do."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from adapters.types.files import (
    TypeFile,
    builtin_types,
    read_type,
    schema_text,
    type_text,
    types_in,
)
from workflows.shared.errors import RuleViolation

FILES = Path(__file__).parent / "files"
HEAD = "name: invoices\ntitle: Invoices\nkey: [number]\n"
FIELDS = "fields:\n  number: {kind: code, required: true}\n"


@pytest.mark.parametrize("declared", [*builtin_types().values()], ids=lambda each: each.name)
def test_a_type_can_be_written_and_read_again(declared: object) -> None:
    text = type_text(builtin_types()[declared.name])  # type: ignore[attr-defined]
    assert read_type(text, "again.yaml") == declared


def test_types_of_other_trades_are_read() -> None:
    names = {each.declared.name for each in types_in(FILES)}
    assert names == {"invoice_lines", "timesheets", "parts", "appointments", "tender_bids"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: a type begins with `name: my_table`"),
        ("name: [", "line 2: this is not YAML"),
        ("name: a: b", "put a text that holds `: ` into quotes"),
        ("name: x\n", "line 1: key: is missing here"),
        (HEAD.replace("invoices", "My-Table") + FIELDS, "line 1: name: 'My-Table' is no name"),
        (HEAD + "titel: x\n" + FIELDS, "line 4: titel: is not known here; did you mean 'title'?"),
        (
            HEAD + FIELDS + "  net:\n    kind: mony\n",
            "line 7: fields.net.kind: 'mony' is not known here; did you mean 'money'?",
        ),
        (
            HEAD + FIELDS + "  net:\n    requird: yes\n",
            "line 7: fields.net.requird: is not known here; did you mean 'required'?",
        ),
        (HEAD.replace("number", "nummer") + FIELDS, "line 3: key: there is no field 'nummer'"),
        (
            HEAD + FIELDS.replace(", required: true", ""),
            "line 3: key: 'number' needs 'required: true', or a 'default'",
        ),
        (HEAD + FIELDS + "  net: {minimum: 3}\n", "line 6: fields.net: 'minimum' is of fields of"),
        (
            HEAD + FIELDS + "  due: {kind: date, minimum: gestern}\n",
            "line 6: fields.due: minimum: 'gestern' is no such value; write 2025-03-04",
        ),
        (HEAD + FIELDS + "  to: {kind: reference}\n", "needs either 'to'"),
        (HEAD + FIELDS + "  state: {kind: choice}\n", "needs 'choices'"),
        (
            HEAD + FIELDS + "  pay: {aliases: [Number]}\n",
            "line 1: the header 'number' means 'number' and 'pay'; remove it from one of them",
        ),
        (
            HEAD + "rules:\n- {any_of: [number, sum]}\n" + FIELDS,
            "line 5: rules.1: there is no field 'sum'",
        ),
        (HEAD + FIELDS + "  version: {}\n", "'version' is a column that docflow keeps"),
        (
            HEAD + FIELDS + "  net: {kind: text}\n  net: {kind: code}\n",
            "line 7: net is there twice",
        ),
        (
            HEAD + FIELDS + "  a: {kind: text, pattern: '(?=x)'}\n",
            "line 6: fields.a: pattern: is not a pattern that can be used",
        ),
        (
            HEAD + FIELDS + "  a:\n    kind: timestamp\n    zone: Berlin\n",
            "line 8: fields.a.zone: 'Berlin' is no time zone; write one like Europe/Berlin",
        ),
        (HEAD + FIELDS + "  a: {kind: integer, default: x}\n", "default: 'x' is not a number"),
        (
            HEAD + FIELDS + "  a: {kind: choice, choices: {p: [x], q: [X]}}\n",
            "choices: 'X' means 'p' and 'q'",
        ),
        (HEAD + FIELDS + "  ctid: {}\n", "'ctid' is a column that docflow keeps"),
        (HEAD + "scope: [a, a]\n" + FIELDS, "scope: it lists a name twice"),
        (
            HEAD
            + "rules:\n- {required: b, when: {a: maybe}}\n"
            + FIELDS
            + "  a: {kind: boolean}\n  b: {}\n",
            "line 5: rules.1: a: 'maybe'",
        ),
        (HEAD + FIELDS + "  a: &x {kind: text}\n  b: *x\n", "an alias stands here"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, said: str) -> None:
    with pytest.raises(RuleViolation) as refused:
        read_type(text, "mine.yaml")
    assert all(line.startswith("mine.yaml: ") for line in str(refused.value).splitlines())
    assert said in str(refused.value)


def test_ten_faults_are_shown_and_the_rest_counted() -> None:
    wrong = "".join(f"  f{number}: {{kind: no}}\n" for number in range(15))
    with pytest.raises(RuleViolation, match=r"mine\.yaml: and 5 more"):
        read_type(HEAD + FIELDS + wrong, "mine.yaml")


def test_two_files_cannot_declare_one_type(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yml"):
        (tmp_path / name).write_text(HEAD + FIELDS)
    with pytest.raises(RuleViolation, match=r"b\.yml: a\.yaml declares the type invoices as well"):
        list(types_in(tmp_path))


def test_no_truth_value_or_number_of_yaml_is_made_of_a_text() -> None:
    field = "  answer: {kind: choice, choices: {no: [off], 010: [on]}, default: 010}\n"
    declared = read_type(HEAD + FIELDS + field, "mine.yaml").fields["answer"]
    assert (dict(declared.choices), declared.default) == ({"no": ("off",), "010": ("on",)}, "010")


def test_the_published_schema_is_that_of_this_release() -> None:
    published = FILES.parents[2] / "docs" / "reference" / "type.schema.json"
    assert published.read_text(encoding="utf-8") == schema_text()


@pytest.mark.parametrize("each", [*types_in(FILES)], ids=lambda each: each.place)
def test_a_type_file_fits_the_published_schema(each: TypeFile) -> None:
    schema = json.loads(schema_text())
    content = yaml.safe_load((FILES / each.place).read_text(encoding="utf-8"))
    assert [*Draft202012Validator(schema).iter_errors(content)] == []
