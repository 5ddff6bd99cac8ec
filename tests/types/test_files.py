"""Type files: what is wrong with one is said with its line and what to do."""

import json
import tomllib
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from adapters.types.files import (
    TypeFile,
    builtin_types,
    read_own_type,
    read_type,
    type_text,
    types_in,
)
from adapters.types.schema import schema_text
from workflows.shared.declared_types import HookedType
from workflows.shared.errors import RuleViolation

FILES = Path(__file__).parent / "files"
WRONG = tomllib.loads((FILES.parent / "wrong_files.toml").read_text(encoding="utf-8"))
HEAD = "name: invoices\ntitle: Invoices\nkey: [number]\n"
FIELDS = "fields:\n  number: {kind: code, required: true}\n"


@pytest.mark.parametrize("declared", [*builtin_types().values()], ids=lambda each: each.name)
def test_a_type_can_be_written_and_read_again(declared: HookedType) -> None:
    assert read_own_type(type_text(declared), "again.yaml", HookedType) == declared


def test_types_of_other_trades_are_read() -> None:
    names = {each.declared.name for each in types_in(FILES)}
    assert names == {"invoice_lines", "timesheets", "parts", "appointments", "tender_bids"}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_refused_with_line_word_and_cure(name: str) -> None:
    case = WRONG[name]
    with pytest.raises(RuleViolation) as refused:
        read_type(case["text"], "mine.yaml")
    lines = str(refused.value).splitlines()
    assert all(line.startswith("mine.yaml: ") for line in lines)
    assert [line.removeprefix("mine.yaml: ") for line in lines] == case["said"].splitlines()


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
