"""The commands of the page about spreadsheets, pasted one after the other."""

import asyncio
import os
import re
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from stack.temporal import temporal_binary
from tests.support.installation import Installation, running_installation
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT: Final = Path(__file__).parents[2]
SAMPLE: Final = ROOT / "samples" / "registrations.xlsx"
PAGE: Final = (ROOT / "docs" / "spreadsheets.md").read_text()
BLOCKS: Final = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
BY_HTTP: Final = next(block for block in BLOCKS if "curl" in block)
BY_TEMPORAL: Final = next(block for block in BLOCKS if "temporal workflow" in block)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fresh(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Installation]:
    """A new installation, as `make dev` makes one."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "samples").symlink_to(ROOT / "samples")
    async with running_installation(folder, gateways=1) as running:
        yield running


async def test_the_api_by_example(fresh: Installation) -> None:
    begin, *rest = BY_HTTP.replace("http://127.0.0.1:8080", fresh.addresses[0]).split("\n\n")
    upload, *then = rest
    # A person who reads an answer before they continue gives docflow the time to look at the file.
    look = (
        'until curl -s "$API/uploads/$UUID" -H "Authorization: Bearer $TOKEN" '
        "| grep -q COLUMN_MAPPING; do :; done"
    )
    said = await pasted(fresh, "\n".join((begin, upload, look, *then)))
    assert "ignored" not in said
    assert (fresh.folder / "errors.xlsx").read_bytes().startswith(b"PK")
    uuid = found(r'"uuid":"([0-9a-f-]{36})"', said)
    async with fresh.person() as ada:
        summary = (await ada.get(f"/api/imports/{uuid}/results/summary")).json()
        assert (summary["total"], summary["created"], summary["error"]) == (60, 58, 2)

        async def undone() -> bool:
            answer = await ada.get(f"/api/v1/uploads/{uuid}/undo")
            return answer.json()["state"] == "UNDONE"

        await eventually(undone)


async def test_answers_from_the_temporal_cli(fresh: Installation) -> None:
    (run, *lines) = BY_TEMPORAL.replace("\\\n", " ").splitlines()
    signal = next(line for line in lines if "workflow signal" in line)
    commands = {found(r"--name (\w+)", line): line for line in lines if line and line != signal}
    uuid = await imported(fresh)
    for name in ("status", "column_mappings", "update_column_mappings", "confirm_column_mappings"):
        await pasted(fresh, f"{run}\n{commands.pop(name)}", UUID=uuid)
    async with fresh.person() as ada:
        answer = await ada.get(f"/api/imports/{uuid}/cell-mappings", params={"size": 200})
        values = {each["sourceValue"]: str(each["id"]) for each in answer.json()}
    ids = {"ELITE": values["Elite"], "AGED": values["Golden age"]}
    for name in ("cell_mappings", "candidates", "update_cell_mappings", "confirm_cell_mappings"):
        await pasted(fresh, f"{run}\n{commands.pop(name)}", UUID=uuid, **ids)
    await comes_to(fresh, uuid, "COMPLETED")

    refused = await pasted(
        fresh, f"{run}\n{commands.pop('retry')}", UUID=await imported(fresh), fails=True
    )
    assert "this run is not parked" in refused
    assert commands.keys() == {"start", "change_layout", "reassign", "cancel"}
    for line in commands.values():
        await pasted(fresh, f"{run}\n{line}", UUID=await imported(fresh))
    started = await imported(fresh)
    await pasted(fresh, f"{run}\n{signal}", UUID=started)
    await comes_to(fresh, started, "COMPLETED")


async def imported(installation: Installation) -> str:
    """Uuid of an import of the sample that waits for its columns."""
    async with installation.person() as ada:
        answer = await ada.post(
            "/api/imports",
            data={
                "importType": "EVENT_PARTICIPANT",
                "contextId": str(installation.club.event_id),
            },
            files={"file": ("registrations.xlsx", SAMPLE.read_bytes())},
        )
    uuid = answer.json()["identifier"]
    await comes_to(installation, uuid, "COLUMN_MAPPING")
    return uuid


async def comes_to(installation: Installation, uuid: str, state: str) -> None:
    """Wait for a state."""
    async with installation.person() as ada:

        async def there() -> bool:
            return (await ada.get(f"/api/imports/{uuid}")).json()["status"] == state

        await eventually(there)


async def pasted(
    installation: Installation, script: str, *, fails: bool = False, **variables: str
) -> str:
    """What the commands print, in a shell with the settings of an installation."""
    programs = (Path(sys.executable).parent, Path(temporal_binary()).parent)
    environment: Mapping[str, str] = {
        **os.environ,
        **installation.settings,
        **variables,
        "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
    }
    # What curl shows of an error of the gateway is an error of the page.
    strict = 'set -euo pipefail; curl() { command curl --fail-with-body "$@"; }\n'
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", strict + script),
        stdout=PIPE,
        stderr=STDOUT,
        cwd=installation.folder,
        env=environment,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 120)
    assert (process.returncode != 0) is fails, output.decode()
    return output.decode()


def found(pattern: str, text: str) -> str:
    """The first group of the first match."""
    match = re.search(pattern, text)
    assert match is not None, text
    return match[1]
