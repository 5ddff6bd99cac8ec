"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the tree."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from adapters.database.schema import upgrade
from stack.children import free_port
from stack.temporal import temporal_server
from tests.support.fresh_database import fresh_url
from tests.support.gateway import KEY, token
from tests.support.processes import says
from tests.support.waiting import eventually
from tests.unit.recipes import ROOT, Block, Tree, blocks, recipe
from workers.shared.register import Pipeline

TYPE = recipe("Adding a document type")
PIPELINE = recipe("Adding a pipeline")
TEST = recipe("Adding a test")

EXAMPLES = dict(
    re.findall(r"^\| `([\w/.]+)` \| `(tests/sixth/[\w/.]+)` \|", PIPELINE, re.MULTILINE)
)
"""Place in the tree to the file of the example that stands there."""


def test_a_document_type_is_added_by_following_the_recipe(tmp_path: Path) -> None:
    tree = Tree.copy(tmp_path)
    for block in blocks(TYPE, "diff"):
        tree.apply(block)
    for block in blocks(TYPE, "python"):
        tree.write(block.path, block.body)
    tree.run("tests.replay.test_contracts")
    tree.run("stack.migration", "tools")
    said = tree.test(
        *("tests/unit/imports/test_registry.py", "tests/unit/imports/test_samples.py"),
        *("tests/unit/imports/test_messages.py", "tests/unit/cli/test_messages.py"),
        *("tests/unit/test_docs.py", "tests/replay/test_contracts.py"),
        *("tests/adapters/test_migrations.py", "-rA"),
        *("-k", "tool or every_document or differs or upgraded"),
    )
    # A selection of tests passes without the new type too: these are its own.
    for case in (
        "test_counts[tools.csv-tool-2-1]",
        "test_facts_follow_the_message[tool]",
        "test_an_example_is_a_message_without_unknown_fields[tool]",
        "test_an_upgraded_database_matches_the_models",
        "test_fields_of_a_table_are_described[tool]",
        "test_no_contract_differs_from_the_lock",
    ):
        assert re.search(rf"PASSED \S+::{re.escape(case)}", said), f"{case}\n{said}"


@pytest.mark.parametrize(
    ("title", "tests"),
    [
        (
            "Adding a field to a table",
            "tests/unit/test_docs.py::test_fields_of_a_table_are_described "
            "tests/adapters/test_migrations.py tests/unit/imports/test_registry.py",
        ),
        (
            "Adding an action on files",
            "tests/unit/transfers/test_counting.py tests/unit/transfers/test_job_settings.py",
        ),
        (
            "Adding a kind of partner",
            "tests/unit/transfers/test_shares.py tests/unit/transfers/test_partner_rules.py",
        ),
        (
            "Adding a page",
            "tests/gateway/test_types_page.py tests/gateway/test_templates.py",
        ),
    ],
)
def test_a_part_is_added_by_following_its_recipe(tmp_path: Path, title: str, tests: str) -> None:
    section = recipe(title)
    tree = Tree.copy(tmp_path)
    for block in blocks(section, "diff"):
        tree.apply(block)
    for block in blocks(section, "python"):
        tree.write(block.path, block.body)
    for block in blocks(section, "sh"):
        tree.follow(block)
        if name := re.search(r"^make migration NAME=(\w+)", block.text, re.MULTILINE):
            tree.run("stack.migration", name[1])
    for path in {
        block.path for language in ("diff", "python") for block in blocks(section, language)
    }:
        if path.endswith(".py"):
            tree.check("ruff", "check", "--fix", "--no-cache", path)
            tree.check("ruff", "format", "--check", "--no-cache", path)
    tree.test(*tests.split(), "tests/replay/test_contracts.py")


def test_a_block_that_no_longer_fits_its_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text("A = 1\nB = 2\nB = 2\n")
    tree = Tree(tmp_path)
    tree.apply(Block("diff", "+++ rules.py\n A = 1\n+C = 3\n"))
    assert (tmp_path / "rules.py").read_text() == "A = 1\nC = 3\nB = 2\nB = 2\n"
    for context in ("Z = 1", "B = 2"):
        with pytest.raises(AssertionError, match="holds this"):
            tree.apply(Block("diff", f"+++ rules.py\n {context}\n+C = 3\n"))


def test_the_recipe_of_a_document_type_touches_what_an_existing_type_touches() -> None:
    named = {block.path for block in (*blocks(TYPE, "diff"), *blocks(TYPE, "python"))}
    spelled = re.compile(r"crew_trade(s|\b)|CREW_TRADE")
    touched = {
        path.relative_to(ROOT).as_posix()
        for folder in ("adapters", "activities", "workflows", "workers")
        for path in (ROOT / folder).rglob("*.py")
        if spelled.search(path.read_text())
    }
    migrations = "adapters/database/migrations/versions/"
    code = {path for path in named if path.endswith(".py") and not path.startswith("tests/")}
    assert code == {path for path in touched if not path.startswith(migrations)}


def module(path: str) -> str:
    """The name that a file is imported by."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def at_its_place(text: str) -> str:
    """Code of the example as it reads in the tree: names of modules are those of the places."""
    names = {module(example): module(place) for place, example in EXAMPLES.items()}
    names["tests.sixth.activities"] = "activities.parcels"
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, names[name])
    return text


@pytest.fixture(scope="module")
def parcels(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A copy of the tree in which the recipe of a pipeline was followed."""
    tree = Tree.copy(tmp_path_factory.mktemp("parcels"))
    packages, *further = blocks(PIPELINE, "sh")
    tree.follow(packages)
    for place, example in EXAMPLES.items():
        if place != "workers/catalogue.py" and "/test_" not in place:
            tree.write(place, at_its_place((ROOT / example).read_text()))
    for block in blocks(PIPELINE, "diff"):
        tree.apply(block)
    for block in further:
        tree.follow(block)
    return tree


def test_every_file_of_the_example_has_its_place() -> None:
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests/sixth").rglob("*.py")}
    assert sorted(EXAMPLES.values()) == sorted(files)


def test_what_the_recipe_shows_is_what_the_example_says() -> None:
    shown = blocks(PIPELINE, "python")
    assert "workers/parcels/register.py" in {block.path for block in shown}
    for block in shown:
        # A file that the example does without would be one that nothing loads.
        assert block.path in EXAMPLES
        assert block.body in at_its_place((ROOT / EXAMPLES[block.path]).read_text()), block.path


def test_the_recipe_names_the_fields_that_a_register_must_set() -> None:
    [sentence] = re.findall(r"These fields have no default: (.*?)\.\s", PIPELINE, re.DOTALL)
    [register] = [each for each in blocks(PIPELINE, "python") if "register" in each.path]
    needed = [
        field.name
        for field in dataclasses.fields(Pipeline)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    assert re.findall(r"`(\w+)`", sentence) == needed
    assert set(re.findall(r"^    (\w+)=", register.body, re.MULTILINE)) >= set(needed)


def test_a_pipeline_is_added_by_following_the_recipe(parcels: Tree) -> None:
    said = parcels.test(
        *("tests/unit/test_catalogue.py", "tests/unit/test_pipeline_names.py"),
        *("tests/unit/test_import_contracts.py", "tests/unit/test_contract_bounds.py"),
        *("tests/replay/test_contracts.py", "tests/unit/chart/test_kinds.py", "-rA"),
        *("-k", "parcels or Parcel or alone or differs or no_two or in_the_chart or kinds_are"),
    )
    for case in (
        "test_what_a_register_names_is_there[parcels]",
        "test_every_activity_of_a_pipeline_is_served[parcels]",
        "test_a_pipeline_is_named_in_its_own_packages_alone",
        "test_independence_is_asked_of_every_pipeline_alone",
        "test_no_contract_differs_from_the_lock",
        "test_the_largest_result_is_small[ParcelWeight]",
        "test_every_pipeline_has_a_worker_in_the_chart",
        "test_the_committed_kinds_are_those_of_the_code",
        "test_a_kind_gets_every_variable_that_it_reads[worker-parcels]",
    ):
        assert case in said
    parcels.check("lint-imports", "--no-cache")
    parcels.check("ruff", "check", "--no-cache", ".")
    parcels.check("ruff", "format", "--check", "--no-cache", ".")
    assert (parcels.root / "tests/replay/histories/ParcelDelivery/plain.json").is_file()
    assert parcels.run("workers.shared.cli", "parcels", "weigh", "box") == "3\n"


async def test_its_runs_are_listed_shown_and_answered(parcels: Tree, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "box").touch()
    async with temporal_server(tmp_path / "temporal", ui=False, in_memory=True) as temporal:
        settings = {
            **parcels.environment,
            "TEMPORAL_ADDRESS": temporal.address,
            "DATABASE_URL": fresh_url(),
            "DOCFLOW_BLOB_FOLDER": str(tmp_path / "blobs"),
            "DOCFLOW_SCRATCH": str(tmp_path / "scratch"),
            "PARCELS_GRAMS": "10",
            "PARCELS_FOLDER": str(tmp_path / "in"),
            "DOCFLOW_JWT_KEY": KEY,
            "DOCFLOW_ADDRESS": f"http://127.0.0.1:{(port := free_port())}",
            "DOCFLOW_TOKEN": token("olga", 1, "operator"),
        }
        await upgrade(settings["DATABASE_URL"])

        async def said(*arguments: str) -> tuple[bytes, bytes]:
            process = await parcels.docflow(settings, *arguments, "-o", "json")
            return await process.communicate()

        async def printed(*arguments: str) -> Any:
            # Not by exit code: a thread of the SDK can abort an interpreter that is ending.
            out, error = await said(*arguments)
            return json.loads(out) if out else pytest.fail(error.decode())

        async def parked() -> bool:
            listed = await printed("list", "--pipeline", "parcels", "--state", "parked")
            return [row["id"] for row in listed] == ["parcel/box"]

        worker = await parcels.docflow(settings, "worker", "parcels", "--with-bridge")
        gateway = await parcels.docflow(settings, "gateway", "--port", f"{port}")
        try:
            await says(worker, b"working on parcels")
            await says(gateway, b"listening on")
            await eventually(parked)
            assert (await printed("show", "parcel/box"))["details"] == {"state": "parked"}
            assert b"offered: retry" in (await said("skip", "parcel/box"))[1]
            assert (await printed("retry", "parcel/box"))["id"] == "parcel/box"
            assert (await printed("show", "parcel/box"))["details"] == {"state": "completed"}
        finally:
            for process in (gateway, worker):
                process.terminate()
                await process.communicate()


def test_the_test_of_the_recipe_passes(tmp_path: Path) -> None:
    [example] = blocks(TEST, "python")
    tree = Tree.copy(tmp_path)
    tree.write(example.path, example.body)
    assert "1 passed" in tree.test(example.path)
    assert example.path in blocks(TEST, "sh")[0].text


def test_the_folders_of_tests_are_named_with_their_fixtures() -> None:
    rows = re.findall(r"^\| .+? \| `(tests/[\w/<>]+)` \| (.*) \|$", TEST, re.MULTILINE)
    folders = {folder.split("/")[1] for folder, _ in rows}
    assert folders == {
        path.parent.relative_to(ROOT / "tests").parts[0]
        for path in (ROOT / "tests").rglob("test_*.py")
        if "sixth" not in path.parts
    }
    for folder, runs_on in rows:
        source = "".join(
            path.read_text() for path in (ROOT / folder.split("/<")[0]).rglob("conftest.py")
        )
        for name in re.findall(r"`([a-z_]+)`", runs_on):
            assert name in ("chaos", "docflow") or re.search(rf"def {name}\(", source), name
