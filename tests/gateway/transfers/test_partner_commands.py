"""`docflow partner` at a gateway whose worker has secrets, and an SFTP server."""

import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import asyncssh
import pytest
import pytest_asyncio

from tests.gateway.test_commands import Terminal
from tests.gateway.transfers.conftest import TransferGateway, errands
from tests.support.cli import run_docflow_in_thread
from tests.support.transfers.openpgp import Forge, without_sub_key
from tests.support.transfers.sftp_server import PASSWORD, USER, SftpSite, sftp_site
from workers.shared.cli.context import CliContext

pytestmark = [pytest.mark.gnupg, pytest.mark.asyncio(loop_scope="session")]

Docflow = Callable[..., Any]
OLD = (
    *("--kind", "sftp", "--host", "h", "--user", "us", "--password", "env:P"),
    *("--algorithm", "ssh-rsa", "--algorithm", "3des-cbc"),
)


@pytest_asyncio.fixture(loop_scope="session")
async def site(tmp_path: Path) -> AsyncIterator[SftpSite]:
    async with sftp_site(tmp_path / "served") as served:
        yield served


@pytest_asyncio.fixture(loop_scope="session")
async def secrets(transfers: TransferGateway) -> AsyncIterator[dict[str, str]]:
    """The environment of a worker that does errands."""
    found = {"DOCFLOW_TRANSFERS_LOCAL": "true", "ACME_PASSWORD": PASSWORD}
    async with errands(transfers, found):
        yield found


@pytest.fixture
def docflow(olga: Terminal, secrets: dict[str, str]) -> Docflow:
    async def call(*arguments: str, code: int = 0) -> str:
        context = CliContext(olga.environment)
        done = await run_docflow_in_thread("partner", *arguments, context=context)
        assert done.exit_code == code, done.output
        assert "planted" not in done.output
        return done.output

    return call


@pytest.fixture
def recorded(olga: Terminal) -> Docflow:
    async def shown() -> Any:
        return (await olga.json("partner", "show", "acme"))["record"]

    return shown


def options(site: SftpSite) -> tuple[str, ...]:
    where = ("--kind", "sftp", "--host", "127.0.0.1", "--port", str(site.port))
    return (*where, "--user", USER, "--password", "env:ACME_PASSWORD")


async def test_a_partner_is_added_tested_and_its_key_accepted(
    docflow: Docflow, recorded: Docflow, site: SftpSite
) -> None:
    (site.folder / "inbox").mkdir()
    (site.folder / "inbox" / "theirs.csv").write_bytes(b"x")
    await docflow("add", "acme", *options(site))
    shown = site.host_key.get_fingerprint()
    untested = await docflow("test", "acme", code=1)
    assert shown in untested and "; none is pinned" in untested
    assert site.logins == []
    await docflow("key", "add", "acme", "--fingerprint", "SHA256:other", code=2)
    asked = await docflow("key", "add", "acme", code=2)
    assert f"--fingerprint {shown}" in asked
    await docflow("key", "add", "acme", "--fingerprint", shown)
    tested = await docflow("test", "acme", "--folder", "inbox")
    assert "inbox holds 1 files" in tested
    assert "replaces another in one step" in tested
    assert "acme works" in tested
    assert [path.name for path in (site.folder / "inbox").iterdir()] == ["theirs.csv"]
    kept = await recorded()
    assert kept["profile"]["rename"] == "atomic-replace"
    assert (kept["by"], kept["password"]) == ("olga", "env:ACME_PASSWORD")
    assert shown in await docflow("show", "acme")
    await docflow("key", "remove", "acme", shown)
    assert (await recorded())["host_keys"] == []


async def test_a_key_that_has_changed_is_accepted_beside_the_old_one(
    docflow: Docflow, site: SftpSite, tmp_path: Path
) -> None:
    await docflow("add", "acme", *options(site))
    await docflow("key", "add", "acme", "--fingerprint", site.host_key.get_fingerprint())
    other = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    async with sftp_site(tmp_path / "moved", host_key=other) as moved:
        await docflow("add", "acme", *options(moved), "--replace")
        tested = await docflow("test", "acme", code=1)
        for key in (site.host_key, other):
            assert key.get_fingerprint() in tested
        await docflow("key", "add", "acme", "--fingerprint", other.get_fingerprint(), "--retire")
        assert "one of 2 pinned host keys" in await docflow("test", "acme")


async def test_partners_are_listed_disabled_enabled_and_removed(
    docflow: Docflow, site: SftpSite
) -> None:
    assert "no partners" in await docflow("list")
    await docflow("add", "acme", *options(site))
    assert "already" in await docflow("add", "acme", *options(site), code=2)
    await docflow("change", "acme", "--disable")
    assert "disabled" in await docflow("list")
    await docflow("change", "acme", "--enable")
    assert "enabled" in await docflow("list")
    await docflow("remove", "acme")
    await docflow("remove", "acme", code=1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--kind", "sftp"), "needs `host`"),
        (("--kind", "folder"), "needs `container`"),
        (("--kind", "ftps", "--host", "h"), "kind"),
        (("--kind", "https", "--host", "u:p@h"), "neither user, password"),
        (("--kind", "https", "--host", "h", "--token", "planted-secret"), "never the secret"),
        (("--kind", "s3", "--container", "b", "--root", "../out"), "would leave its folder"),
        (("--kind", "folder", "--container", "/in", "--write", "append"), "write: "),
        (("--kind", "https", "--host", "h", "--algorithm", "ssh-rsa"), "is for SFTP"),
        ((*OLD, "--algorithm", "rot13"), "which rot13 isn't"),
    ],
)
async def test_a_record_that_is_wrong_is_refused_and_no_value_repeated(
    docflow: Docflow, given: tuple[str, ...], said: str
) -> None:
    assert said in await docflow("add", "acme", *given, code=2)


async def test_options_say_how_files_are_written_and_permit_old_algorithms(
    docflow: Docflow, recorded: Docflow
) -> None:
    await docflow("add", "acme", *OLD, "--write", "direct")
    shown = " ".join((await docflow("show", "acme")).split())
    assert "direct" in shown and "ssh-rsa" in shown and "3des-cbc" in shown
    # Another record of it keeps both.
    await docflow("add", "acme", *OLD[:-4], "--replace")
    kept = await recorded()
    assert (kept["write"], kept["algorithms"]) == ("direct", ["ssh-rsa", "3des-cbc"])


async def test_a_record_comes_from_a_file(docflow: Docflow, tmp_path: Path) -> None:
    file = tmp_path / "acme.json"
    record = {
        "kind": "folder",
        "container": str(tmp_path),
        "limits": {"sessions": 2},
        "windows": [{"weekdays": [0, 1], "opens": "22:00", "closes": "04:00"}],
        "zone": "Europe/Berlin",
    }
    file.write_text(json.dumps(record))
    await docflow("add", "acme", "--file", str(file))
    assert "opens 22:00" in await docflow("show", "acme")
    file.write_text(json.dumps({**record, "colour": "blue"}))
    wrong = await docflow("add", "acme", "--file", str(file), "--replace", code=2)
    assert "no field 'colour'" in wrong
    for field, value in (
        ("host_keys", [{"key": "ssh-ed25519 AAAA", "until": "2026-11-01"}]),
        ("limits", {"session": 2}),
        ("windows", [{"from": "22:00"}]),
        ("keys", [{"fingerprint": "A" * 40, "expires": "2026-11-01"}]),
    ):
        file.write_text(json.dumps({**record, field: value}))
        wrong = await docflow("add", "acme", "--file", str(file), "--replace", code=2)
        assert f"no field '{field}." in wrong


async def test_an_openpgp_key_is_added(docflow: Docflow, recorded: Docflow, tmp_path: Path) -> None:
    await docflow("add", "acme", "--kind", "folder", "--container", str(tmp_path))
    fingerprint = "AB" * 20
    await docflow("key", "add", "acme", "--fingerprint", fingerprint, "--private", "env:OURS")
    await docflow("key", "add", "acme", "--fingerprint", fingerprint, "--private", "env:NEW")
    keys = (await recorded())["keys"]
    assert [(key["private"], key["own"]) for key in keys] == [("env:NEW", True)]
    await docflow("key", "add", "acme", "--fingerprint", fingerprint, code=2)


async def test_a_private_key_that_could_not_be_used_is_refused_when_it_is_added(
    docflow: Docflow, recorded: Docflow, secrets: dict[str, str], tmp_path: Path
) -> None:
    homes = [Path(tempfile.mkdtemp(dir="/tmp")) for _ in range(2)]
    forge = Forge(homes[0])
    try:
        ours, other = forge.party("ours"), forge.party("other")
        signs = forge.call("--armor", "--export-secret-keys", f"{ours.fingerprint}!").decode()
        partial = without_sub_key(ours, homes[1])
    finally:
        forge.close()
        for home in homes:
            shutil.rmtree(home)
    secrets |= {
        "WHOLE": ours.private,
        "OTHER": other.private,
        "PUBLIC": ours.public,
        "PARTIAL": partial,
        "SIGNS": signs,
    }
    await docflow("add", "acme", "--kind", "folder", "--container", str(tmp_path))
    add = ("key", "add", "acme", "--fingerprint", ours.fingerprint, "--private")
    assert "it never expires" in await docflow(*add, "env:WHOLE")
    for name, reason in (
        ("PARTIAL", "lacks the private part of its sub-key for encryption"),
        ("OTHER", "holds another key"),
        ("PUBLIC", "is not a private key"),
    ):
        assert reason in await docflow(*add, f"env:{name}", code=2)
    keys = (await recorded())["keys"]
    assert [key["private"] for key in keys] == ["env:WHOLE"]
    # It may be on the machines of workers alone.
    assert "this worker cannot read it" in await docflow(*add, "env:MISSING")
    assert "decrypts nothing" in await docflow(*add, "env:SIGNS")


async def test_a_public_key_is_read_when_it_is_added(docflow: Docflow, tmp_path: Path) -> None:
    home = Path(tempfile.mkdtemp(dir="/tmp"))
    forge = Forge(home)
    try:
        valid, ended = forge.party("valid"), forge.party("ended", expired=True)
    finally:
        forge.close()
        shutil.rmtree(home)
    await docflow("add", "acme", "--kind", "folder", "--container", str(tmp_path))
    assert "no keys" in await docflow("show", "acme")
    files = {party.fingerprint: tmp_path / f"{party.fingerprint}.asc" for party in (valid, ended)}
    for party in (valid, ended):
        files[party.fingerprint].write_text(party.public)
    add = ("key", "add", "acme", "--public", str(files[valid.fingerprint]), "--fingerprint")
    other = await docflow(*add, ended.fingerprint, code=2)
    assert "holds another key" in other
    assert "it never expires" in await docflow(*add, valid.fingerprint)
    more = ("--public", str(files[ended.fingerprint]), "--fingerprint", ended.fingerprint)
    assert "it has expired on 2020-12-31" in await docflow("key", "add", "acme", *more)
    listed = " ".join((await docflow("show", "acme")).split())
    assert "never expires" in listed and "has expired" in listed


async def test_what_a_record_says_of_writing_is_kept_and_what_docflow_sets_is_refused(
    docflow: Docflow, recorded: Docflow, site: SftpSite, tmp_path: Path
) -> None:
    await docflow("add", "acme", *options(site))
    await docflow("key", "add", "acme", "--fingerprint", site.host_key.get_fingerprint())
    await docflow("test", "acme")
    file = tmp_path / "record.json"
    shown = await recorded()
    file.write_text(json.dumps({"write": "direct", "algorithms": ["ssh-rsa"]}))
    await docflow("add", "acme", "--file", str(file), *options(site), "--replace")
    await docflow("add", "acme", *options(site), "--replace")
    kept = await recorded()
    assert (kept["write"], kept["algorithms"]) == ("direct", ["ssh-rsa"])
    assert kept["profile"] == shown["profile"]
    for record, said in (
        ({"profile": {"rename": "direct"}}, "docflow sets 'profile' itself"),
        ({"wrote": "direct"}, "a partner has no field 'wrote'"),
        ({"algorithms": ["rot13"]}, "which rot13 isn't"),
        ({"write": "sideways"}, "write: "),
    ):
        file.write_text(json.dumps(record))
        refused = await docflow(
            "add", "acme", "--file", str(file), *options(site), "--replace", code=2
        )
        assert said in " ".join(refused.split())
