"""A pipeline is named in its own packages and its register, and nowhere else.

Whatever has to know all pipelines loops over the catalogue. A file names a pipeline where it
imports one of its modules, and where a string holds its name as an item of a list, a module or
activity, a command of `docflow` or a literal of a query, holds the beginning of one of its
workflow ids, or is the type of one of its workflows. Prose and paths of the published HTTP API do
not count.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from adapters.database.schema import MIGRATIONS
from workers import catalogue
from workers.shared.register import Pipeline

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("adapters", "activities", "workflows", "workers"),
    *("stack", "emulators", "benchmarks"),
)

OWN: Mapping[str, str] = {
    "adapters/aws": "batches",
    "adapters/clamd.py": "transfers",
    "adapters/files/archives.py": "transfers",
    "adapters/files/footprints.py": "jobs",
    "adapters/files/openpgp": "transfers",
    "adapters/files/rasters": "jobs",
    "adapters/files/schedules": "imports",
    "adapters/files/vectors": "jobs",
    "adapters/azure/route_table.py": "transfers",
    "activities/transfers/settings_files.py": "transfers",
    "adapters/ports/batches.py": "batches",
    "activities/jobs/ports.py": "jobs",
    "adapters/ports/places.py": "transfers",
    "adapters/ports/spatial.py": "jobs",
    "adapters/ports/transfers.py": "transfers",
    "adapters/places": "transfers",
    "adapters/staging.py": "transfers",
    "stack/sample_club.py": "spreadsheets",
    "stack/sample_documents.py": "batches",
    "workers/imports/bridge.py": "imports",
    "workers/batches/bridges.py": "batches",
    "workers/batches/loader_lambda.py": "batches",
    "workers/transfers/register.py": "transfers",
    "workers/transfers/resources.py": "transfers",
    "workers/batches/settings.py": "batches",
    "workers/transfers/settings.py": "transfers",
    "workers/jobs/factory.py": "jobs",
    "workers/transfers/bridge.py": "transfers",
    "benchmarks/peers": "imports",
    "benchmarks/status": "imports",
}
"""File or folder that is named after its technology to the one pipeline that it serves."""

_SCHEDULES = "schedules are documents of imports"
_MESSAGE_FILES = "commands read import messages from files"
_ROWS = "status rows of two pipelines are read by the million"
_DEMO = "the demo shows each pipeline by samples of its own"

IMPORTS: Mapping[tuple[str, str], str] = {
    ("adapters/database/records.py", "adapters.database.models.imports"): "its table is there",
    ("adapters/ports/documents.py", "workflows.imports"): _SCHEDULES,
    ("adapters/ports/documents.py", "workflows.batches"): "what is read of a file, and stored",
    ("adapters/database/records.py", "adapters.ports.batches"): "leases are theirs alone",
    ("adapters/temporal.py", "workflows.batches"): "open runs of a batch",
    ("stack/demo/run.py", "workflows.batches"): _DEMO,
    ("stack/demo/run.py", "workflows.imports"): _DEMO,
    ("stack/demo/run.py", "stack.demo.batches"): _DEMO,
    ("stack/demo/run.py", "stack.demo.jobs"): _DEMO,
    ("stack/demo/run.py", "stack.demo.spreadsheets"): _DEMO,
    ("stack/demo/run.py", "stack.demo.transfers"): _DEMO,
    ("stack/demo/run.py", "workers.batches"): _DEMO,
    ("stack/demo/run.py", "workers.imports"): _DEMO,
    ("stack/demo/samples.py", "workflows.imports"): _DEMO,
    ("stack/demo/samples.py", "workflows.jobs"): _DEMO,
    ("stack/demo/samples.py", "workflows.spreadsheets"): _DEMO,
    ("stack/demo/samples.py", "workflows.transfers"): _DEMO,
    ("stack/demo/samples.py", "stack.demo.batches"): _DEMO,
    ("stack/demo/samples.py", "stack.demo.jobs"): _DEMO,
    ("stack/demo/samples.py", "stack.demo.spreadsheets"): _DEMO,
    ("stack/demo/samples.py", "stack.demo.transfers"): _DEMO,
    ("stack/demo/table.py", "workflows.batches"): _DEMO,
    ("stack/demo/table.py", "workflows.imports"): _DEMO,
    ("stack/demo/spreadsheets.py", "workflows.imports"): _DEMO,
    ("workers/shared/cli/output.py", "workflows.imports"): "states of imports have colours",
}
"""File and imported package to the reason for which it may import that."""

_CONTAINER = "the default of AZURE_STORAGE_CONTAINER_NAME"
_QUEUE = "a queue of another pipeline has that name"
_EXAMPLE = "an example in the help of commands that all pipelines share"

TEXTS: Mapping[tuple[str, str], str] = {
    ("benchmarks/spreadsheets/stack.py", "imports"): _CONTAINER,
    ("benchmarks/stack.py", "imports"): _CONTAINER,
    ("benchmarks/status/rows.py", "app.jobs"): _ROWS,
    ("benchmarks/status/rows.py", "transfers"): _ROWS,
    ("benchmarks/status/rows.py", "transfer/"): _ROWS,
    ("stack/embedded.py", "imports"): "the container and the worker of the smallest stack",
    ("workers/shared/cli/answers.py", "batch/"): _EXAMPLE,
    ("workers/shared/cli/runs.py", "batch/"): _EXAMPLE,
    ("workers/transfers/route_commands.py", "docflow route add jobs"): _QUEUE,
    ("workers/transfers/route_commands.py", "docflow route change jobs"): _QUEUE,
    ("workers/transfers/route_commands.py", "docflow route remove jobs"): _QUEUE,
    ("workers/shared/cli/runs.py", "docflow list --pipeline batches"): _EXAMPLE,
    ("workers/shared/cli/runs.py", "import/"): _EXAMPLE,
    ("workers/spreadsheets/api.py", "imports"): "a tag of the published HTTP API",
    ("workers/shared/services/bodies.py", "docflow imports"): "a verb",
    ("workers/shared/settings/common.py", "imports"): _CONTAINER,
    ("workers/spreadsheets/pages/import_pages.py", "imports.html"): "a template",
    ("stack/loader_function.py", "workers.batches.loader_lambda"): "the handler that is packed",
}
"""File and text to the reason for which a pipeline may be named in it."""

BORROWED: Mapping[tuple[str, str], str] = {
    ("workers/transfers/resources.py", "adapters/aws"): "partners have their secrets in AWS too",
}
"""File, and what serves another pipeline (`OWN`), to the reason for which it may import that."""

Found = tuple[int, str]
"""Line, and the imported package or the text that names a pipeline."""


def is_own(path: Path, name: str) -> bool:
    """Whether a file is a pipeline's own: by a part of its path, or by what it serves."""
    served = {OWN.get(each.as_posix()) for each in (path, *path.parents)}
    return name in (*path.parts[:-1], path.stem) or name in served


def imports_of(module: ast.Module, pipeline: Pipeline) -> Iterator[Found]:
    """Every import of a module of a pipeline, by the package that has its name."""
    for node in _nodes(module):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found = {_package(name, pipeline.name) for name in _imported(node)} - {""}
            yield from ((node.lineno, package) for package in sorted(found))


def borrowed(path: Path, module: ast.Module) -> Iterator[Found]:
    """What a file of one pipeline imports that serves another one, by its path."""
    pipelines = {each.name for each in catalogue.PIPELINES if is_own(path, each.name)}
    for node in _nodes(module):
        if not pipelines or isinstance(node, ast.Constant):
            continue
        for name in _imported(node):
            served = _serving(Path(*name.split(".")))
            if served is not None and OWN[served] not in pipelines:
                yield node.lineno, served


def _serving(module: Path) -> str | None:
    """The narrowest file or folder that serves a pipeline and that a module is in."""
    inside = (each.as_posix() for each in (module, *module.parents))
    return next((key for each in inside for key in (each, f"{each}.py") if key in OWN), None)


def texts_of(module: ast.Module, pipeline: Pipeline) -> Iterator[Found]:
    """Every text in a string that names a pipeline; docstrings too: some of them are help."""
    pattern = _pattern(pipeline)
    workflows = {kind.workflow for kind in pipeline.runs}
    for node in _nodes(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if pipeline.name in re.split(", ?", node.value):
                yield node.lineno, pipeline.name
            if node.value in workflows:
                yield node.lineno, node.value
            yield from ((node.lineno, found) for found in pattern.findall(node.value))


@cache
def _nodes(module: ast.Module) -> Sequence[ast.Import | ast.ImportFrom | ast.Constant]:
    """What may name a pipeline; looked for once, and not for each of them."""
    wanted = (ast.Import, ast.ImportFrom, ast.Constant)
    return [node for node in ast.walk(module) if isinstance(node, wanted)]


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text())


def _imported(node: ast.Import | ast.ImportFrom) -> Iterable[str]:
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    return [f"{node.module}.{each.name}" for each in node.names]


def _package(module: str, name: str) -> str:
    """The part of a module's path that ends in a name; empty: it is not part of it."""
    parts = module.split(".")
    return ".".join(parts[: parts.index(name) + 1]) if name in parts else ""


def _pattern(pipeline: Pipeline) -> re.Pattern[str]:
    """Matches modules, activities, commands, literals of queries, and beginnings of ids."""
    name = re.escape(pipeline.name)
    # Ids of scheduled runs begin alike in every pipeline.
    kinds = (kind for kind in pipeline.runs if not kind.scheduled)
    ids = (re.match(r"[\w-]+/", kind.pattern.pattern) for kind in kinds)
    return re.compile(
        "|".join(
            (
                rf"(?:\w+\.)+{name}\b(?:[.:]\w+)*",
                rf"\b{name}[.:]\w+",
                rf"docflow [^`\n]*?\b{name}\b",
                rf"'{name}'",
                *(rf"(?<![\w/-]){re.escape(found.group())}" for found in ids if found),
            )
        )
    )


def is_list(path: Path, package: str) -> bool:
    """Whether an import is one of the catalogue, or of a package that exports its own modules."""
    if path.as_posix() in ("workers/catalogue.py", "workers/commands.py"):
        return package.startswith("workers.")
    return path.stem == "__init__" and package.startswith(".".join(path.parent.parts) + ".")


def foreign(path: Path, module: ast.Module) -> list[str]:
    """Where a file names pipelines that it does not belong to, beyond what is exempt."""
    file = path.as_posix()
    return [
        f"{path}:{line} names {pipeline.name} by {found!r}: loop over the catalogue"
        for pipeline in catalogue.PIPELINES
        if not is_own(path, pipeline.name)
        for exempt, of in ((IMPORTS, imports_of), (TEXTS, texts_of))
        for line, found in of(module, pipeline)
        if (file, found) not in exempt and not is_list(path, found)
    ]


def _files() -> Iterator[Path]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            # Migrations are written by a tool.
            if path.parent != MIGRATIONS / "versions":
                yield path.relative_to(ROOT)


def test_a_pipeline_is_named_in_its_own_packages_alone() -> None:
    assert [said for path in _files() for said in foreign(path, _parsed(path))] == []


def test_what_serves_one_pipeline_is_not_imported_by_another() -> None:
    found = {
        (path.as_posix(), served)
        for path in _files()
        for _, served in borrowed(path, _parsed(path))
    }
    assert found == BORROWED.keys()


@pytest.mark.parametrize(
    ("path", "source", "found"),
    [
        ("workers/jobs/factory.py", "import workers.transfers.bridge", 1),
        ("adapters/files/vectors/report.py", "from adapters.files.schedules import xer", 1),
        ("activities/jobs/ports.py", "from adapters.ports.batches import Claim", 1),
        ("adapters/files/rasters/cog.py", "from adapters.files.vectors.report import a", 0),
        ("adapters/files/documents.py", "from adapters.files.schedules import xer", 0),
        ("workers/batches/service.py", "import adapters.ports.documents", 0),
    ],
)
def test_an_import_of_what_serves_another_pipeline_is_found(
    path: str, source: str, found: int
) -> None:
    assert len(list(borrowed(Path(path), ast.parse(source)))) == found


@pytest.mark.parametrize(("exempt", "of"), [(IMPORTS, imports_of), (TEXTS, texts_of)])
def test_no_exemption_is_kept_for_nothing(
    exempt: Mapping[tuple[str, str], str],
    of: Callable[[ast.Module, Pipeline], Iterator[Found]],
) -> None:
    used = {
        (file, found)
        for file in {file for file, _ in exempt}
        for pipeline in catalogue.PIPELINES
        if not is_own(Path(file), pipeline.name)
        for _, found in of(_parsed(Path(file)), pipeline)
    }
    assert exempt.keys() - used == set()


def test_no_file_is_listed_for_a_pipeline_without_need() -> None:
    files = list(_files())
    for file, name in OWN.items():
        [pipeline] = [each for each in catalogue.PIPELINES if each.name == name]
        modules = [_parsed(path) for path in files if path.is_relative_to(file)]
        assert any(list(imports_of(module, pipeline)) for module in modules), file


@pytest.mark.parametrize(
    ("path", "source", "lines"),
    [
        ("workers/shared/process.py", 'if "imports" in pipelines:\n    pass', [1]),
        ("workers/shared/cli/status.py", 'OTHERS = {"spreadsheets": 1, "batches": 2}', [1, 1]),
        ("workers/shared/health.py", "from workers.imports.register import IMPORTS", [1]),
        ("workers/shared/health.py", "from workers import batches", [1]),
        ("workers/shared/health.py", "import workflows.batches.events", [1]),
        ("workers/catalogue.py", "from workers.batches.register import BATCHES", []),
        ("workers/catalogue.py", "from workflows.batches.names import BatchKey", [1]),
        ("adapters/ports/__init__.py", "from adapters.ports.batches import Queues", []),
        ("adapters/ports/__init__.py", "from workflows.batches.names import BatchKey", [1]),
        ("workers/shared/settings/common.py", "from workers.batches.settings import A", [1]),
        ("workers/spreadsheets/api.py", "import workers.imports.runs", [1]),
        ("workers/shared/health.py", 'COMMAND = "docflow worker imports"', [1]),
        ("workers/shared/health.py", 'load("workers.imports.register:IMPORTS")', [1]),
        ("workers/shared/health.py", 'NAMES = "imports,batches".split(",")', [1, 1]),
        ("workers/shared/health.py", '\nid.startswith("batch/")', [2]),
        ("workers/shared/health.py", 'f"case/{case}"', [1]),
        ("workers/shared/health.py", "query = \"Pipeline = 'batches'\"", [1]),
        ("workers/shared/health.py", 'run("imports.prepare")', [1]),
        ("workers/shared/health.py", 'LONG = {"BatchLifecycle", "CaseQueue"}', [1, 1]),
        ("benchmarks/stack.py", 'NAME = "batches"', [1]),
        ("stack/embedded.py", 'NAMES = ["imports", "batches"]', [1]),
        ("workers/batches/register.py", 'NAME = "batches"', []),
        ("workers/batches/register.py", 'NAME = "imports"', [1]),
        ("workers/batches/bridges.py", "from workflows.batches.names import BatchKey", []),
        ("workers/batches/bridges.py", "from workflows.imports.runs import ImportInput", [1]),
        ("workflows/batches/sweeper.py", 'start("batches")', []),
        ("workers/shared/process.py", '"""Runs imports."""\nname = "import"', []),
        (
            "workers/shared/health.py",
            'text = "Work on imports, or download/load; see /api/imports"',
            [],
        ),
    ],
)
def test_a_name_that_stands_elsewhere_is_found(path: str, source: str, lines: list[int]) -> None:
    found = [int(said.split(":")[1].split()[0]) for said in foreign(Path(path), ast.parse(source))]
    assert found == lines
