"""`docflow type check` does what an import of the same file would do."""

import asyncio
import json
from pathlib import Path

import pytest

from adapters.database.engine import open_database
from adapters.types.files import read_type
from adapters.types.store import SqlDeclaredTypes
from tests.support.cli import run_docflow
from tests.support.fresh_database import fresh_url
from workers.shared.cli.context import CliContext

HEAD = """
name: tools
title: Tools
key: [code]
fields:
  code: {kind: code, required: true}
"""
SUPPLIERS = "name: suppliers\ntitle: Suppliers\nkey: [number]\nscope: [SCOPE]\n"
FIELDS = "fields: {number: {kind: code, required: true, pattern: 'S-[0-9]+'}}\n"

CASES = [
    pytest.param(
        "  day: {kind: date}\n",
        "code,day\nA,03/04/2025\nB,05/06/2025\n",
        "--date-order dmy",
        ["2025-04-03", "2 rows: 2 accepted, 0 rejected"],
        id="the order of dates is given",
    ),
    pytest.param(
        "  price: {kind: money}\n",
        'code,price\nA,"1,234"\n',
        "--decimal ,",
        ["1.234", "1 row: 1 accepted, 0 rejected"],
        id="the decimal mark is given",
    ),
    pytest.param(
        "  name: {}\n",
        "code,what\nA,Drill\n",
        "--map what=name",
        ["Drill", "1 row: 1 accepted"],
        id="the meaning of a column is given",
    ),
    pytest.param(
        "  name: {}\n",
        "code,name\nA,Drill\n",
        "--sheet 2025",
        ["1 row: 1 accepted"],
        id="a text has no sheets",
    ),
    pytest.param(
        "  born: {kind: date, past: true}\n  due: {kind: date}\n",
        "code,born,due\nA,01.02.63,01.02.63\n",
        "",
        ["1963-02-01", "2063-02-01"],
        id="two digits are a year of the past",
    ),
    pytest.param(
        "  lap: {kind: duration}\n",
        "code,lap\nA,26:05:07.5\n",
        "",
        ["26:05:07.5", "1 row: 1 accepted"],
        id="durations are shown as people write them",
    ),
    pytest.param(
        "unmapped: keep\n",
        "code,Colour\nA,red\nB,\n",
        "",
        ['{"Colour": "red"}', "Columns kept in 'other': 'Colour' (1 value)."],
        id="columns are kept",
    ),
    pytest.param(
        "left_out: keep\n",
        "code\nA\nTotal\n",
        "",
        ["2 rows: 2 accepted, 0 rejected"],
        id="rows that are no data are kept by the type",
    ),
    pytest.param(
        "  price: {kind: money, minimum: 0}\n",
        "code,price\nA,-1\nB,-2\nC,x\nD,1\n",
        "",
        [
            "4 rows: 1 accepted, 3 rejected",
            "2 x price is negative: lines 2, 3",
            "1 x price is not an amount of money; write it as 1250.00: line 4",
        ],
        id="the sum says why rows are rejected",
    ),
    pytest.param(
        "  price: {kind: money, minimum: 0}\n",
        "code,price\n" + "".join(f"A{n},1\n" for n in range(60)) + "Z,-1\n" * 12,
        "--rows 1",
        [
            "62                    price is negative",
            "12 x price is negative: lines 62, 63, 64, 65, 66, 67, 68, 69, 70, 71 and 2 more",
            "71 rows are not shown",
        ],
        id="rejected rows come first, and the sum names their lines",
    ),
    pytest.param(
        "  price: {kind: money, minimum: 0}\n",
        "code,price,name\nTotal A,-1,\n,,x\nB,1,b\n",
        "",
        ["1 accepted"],
        id="no note tells of a rejected row that it was taken",
    ),
    pytest.param(
        "  part_of: {kind: reference, to: tools, unknown: refuse}\n",
        "code,part_of\nA,B\nB,\nC,X\nD,C\n",
        "",
        [
            "4 rows: 2 accepted, 2 rejected",
            "2 x part_of is not in tools",
            "part_of was checked against rows of the file alone: no database (",
        ],
        id="rows of the file",
    ),
    pytest.param(
        "  supplier: {kind: reference, to: suppliers}\n",
        "code,supplier\nA,S-1\n",
        "",
        ["1 row: 1 accepted", "supplier was not checked: no database ("],
        id="rows of another table without a database",
    ),
]


def checked(folder: Path, text: str, sample: str, options: str, context: CliContext) -> str:
    """What the command prints."""
    file, table = folder / "tools.yaml", folder / "tools.csv"
    file.write_text(text, encoding="utf-8")
    table.write_text(sample, encoding="utf-8")
    done = run_docflow("type", "check", str(file), str(table), *options.split(), context=context)
    assert done.exit_code == (0 if " 0 rejected" in done.output else 1), done.output
    return done.output


@pytest.mark.parametrize(("more", "sample", "options", "said"), CASES)
def test_a_check_shows_what_an_import_would_do(
    tmp_path: Path, more: str, sample: str, options: str, said: list[str]
) -> None:
    output = checked(tmp_path, HEAD + more, sample, options, CliContext({}))
    assert [text for text in said if text not in output] == [], output
    assert "'Total A'" not in output, output


def test_a_wrong_option_is_refused_as_an_import_refuses_it(tmp_path: Path) -> None:
    for option, said in (
        ("--date-order=ymd", "--date-order: "),
        ("--scope=site=1", "scope: site is not known"),
    ):
        (tmp_path / "t.yaml").write_text(HEAD)
        (tmp_path / "t.csv").write_text("code\nA\n")
        files = (str(tmp_path / "t.yaml"), str(tmp_path / "t.csv"))
        done = run_docflow("type", "check", *files, option, context=CliContext({}))
        assert done.exit_code != 0 and said in done.output, done.output


@pytest.mark.parametrize(
    ("unknown", "options", "accepted", "said"),
    [
        ("refuse", "--project P1", 1, "is not in suppliers"),
        ("ask", "--project P1", 1, "An import waits at values of supplier until suppliers has"),
        ("create", "--project P1", 2, "cannot be created there: number does not match"),
        ("refuse", "", 3, "supplier was not checked: give --project."),
    ],
)
def test_references_are_checked_in_the_database(
    tmp_path: Path, unknown: str, options: str, accepted: int, said: str
) -> None:
    url = fresh_url()
    suppliers = read_type(SUPPLIERS.replace("SCOPE", "project_id") + FIELDS, "suppliers.yaml")

    async def prepare() -> None:
        async with open_database(url) as database:
            await SqlDeclaredTypes(database).apply(suppliers)
            async with database.transaction() as connection:
                await connection.exec_driver_sql(
                    "INSERT INTO docflow_types.suppliers VALUES"
                    " ('P1', 'S-1', 1, 'T0', 1, now(), now())"
                )

    asyncio.run(prepare())
    text = f"{HEAD}  supplier: {{kind: reference, to: suppliers, unknown: {unknown}}}\n"
    context = CliContext({"DATABASE_URL": url})
    rows = "code,supplier\nA,S-1\nB,S-2\nC,x\n"
    output = checked(tmp_path, text, rows, options, context)
    assert said in output and f"{accepted} accepted" in output, output
    as_json = run_docflow(
        *("type", "check", str(tmp_path / "tools.yaml"), str(tmp_path / "tools.csv")),
        *(*options.split(), "--json"),
        context=context,
    )
    found = json.loads(as_json.stdout)
    assert (found["accepted"], found["rejected"]) == (accepted, 3 - accepted)
