"""What the pages say has to hold: messages validate, commands parse, links and names exist."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pytest
import typer.main
from typer.testing import CliRunner

from activities.imports.tables import own_tables
from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.types.people import people_sheet
from adapters.files import limits
from adapters.types.files import read_own_type
from tests import command_pages
from tests.support.spreadsheets.activities import SpreadsheetSetup, table
from workers.batches.settings import read_timings
from workers.catalogue import PIPELINES
from workers.imports.messages import read_message
from workers.jobs.errands import Restart
from workers.shared.cli.app import app
from workers.spreadsheets.errands import StoredUpload
from workflows.batches.events import CASE_EVENT, EVENT_TYPES, Announcement, Publication
from workflows.batches.loads import DOCUMENT_EVENT, DOCUMENT_EVENT_TYPES
from workflows.batches.names import Timings
from workflows.batches.runs import BatchAnswer
from workflows.imports.messages import IMPORT_MESSAGE, DocumentType
from workflows.imports.runs import Retry
from workflows.jobs.runs import JobRequest
from workflows.shared.contracts import WireContract
from workflows.shared.declared_types import PeopleType
from workflows.shared.errands import ErrandInput
from workflows.spreadsheets.runs import RowCounts

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("samples/*.md")])
IMPORTS = (ROOT / "docs" / "imports.md").read_text()
BATCHES = (ROOT / "docs" / "batches.md").read_text()
VECTORS = (ROOT / "docs" / "jobs-vectors.md").read_text()
README = (ROOT / "README.md").read_text()
REFERENCE = (ROOT / "docs" / "reference" / "settings.md").read_text()

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_SETTING = re.compile(r'"([A-Z]+(?:_[A-Z]+)+)"')

_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*/?")
_MAKE = re.compile(r"^(?:\$ )?make ([a-z-]+)|`make ([a-z-]+)", re.MULTILINE)
_OF_RECIPES = ("parcels", "tools", "test_missing_file")
"""Words in the names of files that the recipes of CONTRIBUTING.md make."""
FOLDERS = (
    *("adapters", "activities", "workflows", "workers", "stack", "emulators"),
    *("tests", "benchmarks", "samples", "deploy", "docs", "client", "docflow"),
)

_OURS = ("DOCFLOW_", "AZURE_", "AWS_", "DATABASE_", "TEMPORAL_", "MAX_")
_OF_TESTS = ("DOCFLOW_CHAOS", "DOCFLOW_CHROMIUM", "DOCFLOW_CRASH_SEED", "DOCFLOW_TEST_AWS")
"""Known to docflow so that it does not warn of them."""


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _blocks(text: str, *languages: str) -> list[str]:
    return [body for language, body in _FENCE.findall(text) if language in languages]


def _commands(text: str) -> Iterator[tuple[str, ...]]:
    """Every `docflow ...` that stands in a shell block, or in the text as `docflow ...`."""
    lines = [
        line
        for body in _blocks(text, "sh", "console")
        for line in body.replace("\\\n", " ").splitlines()
    ]
    for line in [*lines, *re.findall(r"`((?:[A-Z_]+=\S+ )?docflow [^`]+)`", _FENCE.sub("", text))]:
        if "docflow " not in line:
            continue
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&")
        lexer.whitespace_split = True
        for separates, words in groupby(lexer, lambda word: set(word) <= set(";|&")):
            found = [word for word in words if word != "$" and not re.match(r"[A-Z_]+=", word)]
            if not separates and found[:1] == ["docflow"]:
                yield tuple(found[1:])


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _shown(name: str, value: int) -> str:
    if not name.endswith("_BYTES") or value < limits.MB:
        return f"{value:,}"
    return (
        f"{value >> 30} GB"
        if value >= 1 << 30 and value % (1 << 30) == 0
        else f"{value >> 20:,} MB"
    )


MESSAGES = [json.loads(block) for block in _blocks(IMPORTS, "json")]
EVENTS = [said for block in _blocks(BATCHES, "json") if "eventType" in (said := json.loads(block))]
COMMANDS = sorted({(_name(page), words) for page in PAGES for words in _commands(page.read_text())})


def test_every_document_type_has_an_example() -> None:
    assert {example["document_type"] for example in MESSAGES} == set(DocumentType)


@pytest.mark.parametrize("example", MESSAGES, ids=lambda example: example["document_type"])
def test_an_example_is_a_message_without_unknown_fields(example: dict[str, object]) -> None:
    message = IMPORT_MESSAGE.validate_python(example)
    assert example.keys() <= type(message).model_fields.keys()


def test_answers_of_the_temporal_cli_can_be_decoded() -> None:
    inputs = re.findall(r"--name retry \\\n +--input '(.+)'$", IMPORTS, re.MULTILINE)
    assert inputs
    for text in inputs:
        assert Retry.model_validate_json(text).message is not None


def test_every_event_of_a_batch_has_an_example() -> None:
    assert {example["eventType"] for example in EVENTS} == {
        *EVENT_TYPES,
        *DOCUMENT_EVENT_TYPES,
        *Announcement,
    }


@pytest.mark.parametrize("example", EVENTS, ids=lambda example: example["eventType"])
def test_an_example_is_an_event_without_unknown_fields(example: dict[str, Any]) -> None:
    # As strictly as a bridge: by the names on the wire.
    event: WireContract
    if example["eventType"] in EVENT_TYPES:
        event = CASE_EVENT.validate_json(json.dumps(example), by_alias=True, by_name=False)
    elif example["eventType"] in DOCUMENT_EVENT_TYPES:
        event = DOCUMENT_EVENT.validate_json(json.dumps(example), by_alias=True, by_name=False)
    else:
        event = Publication.model_validate_json(json.dumps(example), by_alias=True, by_name=False)
    said = event.model_dump(mode="json", by_alias=True)
    for name, value in example.items():
        assert said[name] == value or (name == "timings" and value.items() <= said[name].items())


def test_times_of_a_batch_are_those_of_its_contract() -> None:
    section = BATCHES[BATCHES.index("## Times") : BATCHES.index("## Events on the wire")]
    table = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (\d+) \|", section, re.MULTILINE)
    defaults = Timings().model_dump(by_alias=True)
    assert {name: int(value) for name, _, value in table} == defaults
    for name, setting, _ in table:
        assert read_timings({setting: "7"}).model_dump(by_alias=True) == {**defaults, name: 7}


def test_what_the_temporal_cli_sends_to_batches_can_be_decoded() -> None:
    (block,) = [block for block in _blocks(BATCHES, "sh") if "temporal workflow" in block]
    reported = re.findall(r"--name (\w+) +--input '(.+)'$", block.replace("\\\n", ""), re.MULTILINE)
    assert {name for name, _ in reported} == {"retry", "skip", "fail"}
    for _, text in reported:
        assert BatchAnswer.model_validate_json(text).by == "ann"


_ARGUMENTS: Final[Mapping[tuple[str, str], Callable[[Any], object]]] = {
    ("imports", "start"): lambda given: read_message(json.dumps(given).encode(), {}),
    ("spreadsheets", "start"): StoredUpload.model_validate,
    ("batches", "start"): CASE_EVENT.validate_python,
    ("jobs", "start"): JobRequest.model_validate,
    ("jobs", "restart"): Restart.model_validate,
}
"""What reads the arguments of an errand, by task queue and kind."""


def test_errands_of_the_docs_are_done_by_workers() -> None:
    blocks = [
        block
        for page in PAGES
        for block in _blocks(page.read_text(), "sh")
        if "--type Errand" in block
    ]
    text = "\n".join(blocks).replace("\\\n", "")
    found = re.findall(r"--type Errand --task-queue (\w+)[^']*--input '([^']+)'", text)
    seen: set[tuple[str, str]] = set()
    for queue, given in found:
        errand = ErrandInput.model_validate_json(given)
        [pipeline] = [each for each in PIPELINES if each.task_queue == queue]
        assert errand.kind in pipeline.errands
        _ARGUMENTS[queue, errand.kind](errand.arguments)
        seen.add((queue, errand.kind))
    assert seen == _ARGUMENTS.keys()


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=lambda value: "".join(value)[:60])
def test_a_command_has_its_options(page: str, words: tuple[str, ...]) -> None:
    command, path = typer.main.get_command(app), []
    for word in words:
        if word not in getattr(command, "commands", {}):
            break
        command = command.commands[word]
        path.append(word)
    assert path or words[0].startswith("-"), f"{page}: docflow {' '.join(words)}"
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    assert {word for word in words if word.startswith("--")} <= known, page
    assert CliRunner().invoke(app, [*path, "--help"], prog_name="docflow").exit_code == 0


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in _LINK.findall(page.read_text()):
        found = page.parent / target if target else page
        assert found.exists(), target
        if anchor:
            assert anchor in map(_slug, _HEADING.findall(found.read_text())), f"{target}#{anchor}"


def _named(page: Path) -> set[str]:
    """What stands in backticks on a page, and the modules that its shell blocks run."""
    text = page.read_text()
    run = re.findall(r"python -m ([\w.]+)", text)
    return {*_CODE.findall(_FENCE.sub("", text)), *run}


def _exists(name: str) -> bool:
    """Whether a module, or a name in one, is of this repository."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:length])
        if path.is_dir() or path.with_suffix(".py").exists():
            source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            rest = parts[length:]
            return not rest or (len(rest) == 1 and rest[0] in source.read_text())
    return False


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_files_and_modules_that_a_page_names_exist(page: Path) -> None:
    assert _missing(page) == []


def _missing(page: Path) -> list[str]:
    wrong: list[str] = []
    for name in _named(page):
        if any(word in name for word in _OF_RECIPES) or not _PATH.fullmatch(name):
            continue
        if "/" in name and name.split("/")[0] in FOLDERS:
            found = any(ROOT.glob(name.rstrip("/")))
        elif name.endswith(".py") and "/" not in name:
            found = any(path for folder in FOLDERS for path in (ROOT / folder).rglob(name))
        elif "." in name and name.split(".")[0] in FOLDERS[:9]:
            found = _exists(name)
        else:
            continue
        if not found:
            wrong.append(name)
    return sorted(wrong)


def test_a_file_or_module_that_is_missing_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "`workers/nothing.py`, `nothing.py`, `workers.nothing.run`, `workers.shared.process`"
    )
    assert _missing(page) == ["nothing.py", "workers.nothing.run", "workers/nothing.py"]


def test_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {found for page in PAGES for pair in _MAKE.findall(page.read_text()) for found in pair}
    assert {name for name in named if name and not name.startswith("bench-")} <= targets
    assert {"demo", "test", "chaos", "smoke", "tools"} <= named


def test_settings_that_a_page_names_are_in_the_reference() -> None:
    for page in PAGES:
        for name in re.findall(r"`((?:DOCFLOW|AZURE)_[A-Z_]+)`", page.read_text()):
            known = name in _OF_TESTS or page.name == "CHANGELOG.md"
            assert known or f"`{name.removesuffix('_FILE')}`" in REFERENCE, f"{page.name}: {name}"


def test_terms_of_the_glossary_are_sorted_and_unique() -> None:
    rows = re.findall(
        r"^\| ([a-z][^|]*) \|", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE
    )
    terms = [term for term in rows if term != "term"]
    assert len(terms) >= 40
    assert terms == sorted(set(terms))


def test_every_decision_is_in_the_list() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"^- \[(.+)\]\((.+)\)$", (folder / "README.md").read_text(), re.MULTILINE)
    assert sorted(name for _, name in listed) == sorted(
        path.name for path in folder.glob("*.md") if path.name != "README.md"
    )
    for title, name in listed:
        assert (folder / name).read_text().splitlines()[0] == f"# {title}", name


@pytest.mark.parametrize("document_type", own_tables())
def test_fields_of_a_table_are_described(document_type: DocumentType) -> None:
    _, _, section = IMPORTS.partition(f"### `{document_type}`\n")
    section = re.split(r"\n##", section)[0]
    table = own_tables()[document_type]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == [field.name for field in table.fields]
    for row, field in zip(rows, table.fields, strict=True):
        assert row.split("|")[3].strip() == ", ".join(field.aliases)
        assert ("**required**" in row) is field.required
    assert f"natural key {', '.join(f'`{name}`' for name in table.natural_key)}." in section


def test_limits_are_those_of_the_readers() -> None:
    for name, value in vars(limits).items():
        if name.isupper() and name != "MB":
            assert f"| `{name}` | {_shown(name, value)} |" in IMPORTS + BATCHES + VECTORS


def test_every_setting_that_is_read_is_in_the_reference() -> None:
    read = {
        name
        for folder in ("workers", "adapters", "activities")
        for path in (ROOT / folder).rglob("*.py")
        for name in _SETTING.findall(path.read_text())
        if name.startswith(_OURS) and name not in _OF_TESTS
    }
    assert len(read) > 50
    assert [name for name in sorted(read) if f"`{name}`" not in REFERENCE] == []


def test_settings_in_the_readme_are_those_of_the_reference() -> None:
    section = README[README.index("## Settings") : README.index("## More")]
    named = re.findall(r"^\| `([A-Z_]+)` \|", section, re.MULTILINE)
    assert 8 <= len(named) <= 16
    assert [name for name in named if f"| `{name}` |" not in REFERENCE] == []


async def test_the_example_of_an_import_type_imports(setup: SpreadsheetSetup) -> None:
    (source,) = _blocks((ROOT / "docs" / "spreadsheets.md").read_text(), "yaml")
    volunteers = people_sheet(read_own_type(source, "VOLUNTEER.yaml", PeopleType))
    setup.types = SheetTypes(types=[volunteers])
    rows = [("Vorname", "Nachname", "Helferteam"), ("Ann", "Ash", "Water"), ("", "", "Tape")]
    prepared = await setup.prepare(table(*rows), import_type="VOLUNTEER")
    assert (await prepared.process()).counts == RowCounts(created=1, error=1)
    assert await setup.select("event_participants", "team") == [("Water",)]


def test_the_reference_has_the_help_of_every_command() -> None:
    written = {file.name: file.read_text() for file in command_pages.FOLDER.iterdir()}
    assert written == command_pages.pages(), "run `python -m tests.command_pages`"
