"""One large file from SFTP through decrypt and scan to a blob, beside the same tools in a shell.

`python -m benchmarks.transfers.files [--megabytes 1024] [--rounds 3]`. It prints markdown and
asserts nothing.

The shell does what a person would chain by hand: `sftp` fetches, `gpg` decrypts and verifies, clamd
scans the file where it lies, `curl` uploads. docflow's actions run as activities in a process of
their own, whose memory is looked at while they do.
"""

import argparse
import asyncio
import base64
import hashlib
import hmac
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any, Final
from urllib.parse import urlencode

import asyncssh
import gnupg
import psutil

from adapters.azure.blobs import AzureBlobs
from adapters.azure.storage_account import StorageAccount
from benchmarks import machine
from benchmarks.report import Table, at_most, middle
from stack.azurite import azurite
from stack.children import child, free_port, wait_for_port
from stack.clamd import PLANTED, PLANTED_NAME, clamd

RATIO: Final = 1.3
MEGABYTES_OF_MEMORY: Final = 200
_CONTAINER: Final = "written"
_BLOCK: Final = 1 << 20
_PAUSE: Final = 0.05
_SERVE: Final = """
import asyncio, sys
import asyncssh
folder, port, key, login = sys.argv[1:]
async def main():
    factory = lambda channel: asyncssh.SFTPServer(channel, chroot=folder.encode())
    await asyncssh.listen("127.0.0.1", int(port), server_host_keys=[key],
        authorized_client_keys=login, sftp_factory=factory)
    await asyncio.Event().wait()
asyncio.run(main())
"""
_SHELL: Final = """
set -euo pipefail
cd "$FOLDER"
printf 'get %s shell.pgp\\n' "$NAME" | sftp -q -b - -P "$PORT" -i "$LOGIN" \
  -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null docflow@127.0.0.1 >/dev/null 2>&1
gpg --homedir "$HOMEDIR" --batch --yes --quiet --trust-model always -o shell.plain -d shell.pgp
exec 3<>"/dev/tcp/127.0.0.1/$CLAMD"
printf 'zSCAN %s/shell.plain\\0' "$FOLDER" >&3
tr -d '\\0' <&3 | tee shell.verdict
if grep -q 'OK$' shell.verdict; then
  curl -sS --fail -X PUT -H 'x-ms-blob-type: BlockBlob' -T shell.plain "$URL"
fi
rm -f shell.pgp shell.plain
"""


@dataclass(frozen=True)
class Servers:
    """What both ways use."""

    folder: Path
    sftp_port: int
    host_key: str
    login: Path
    clamd: str
    storage: str
    home: Path
    fingerprint: str
    public: str
    private: str


@asynccontextmanager
async def servers(folder: Path) -> AsyncGenerator[Servers]:
    """An SFTP server, clamd, Azurite, and a key."""
    served = folder / "served"
    served.mkdir()
    host, login = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    for key, name in ((host, "host"), (login, "login")):
        key.write_private_key(str(folder / name))
        key.write_public_key(str(folder / f"{name}.pub"))
        (folder / name).chmod(0o600)
    port = free_port()
    command = [sys.executable, "-c", _SERVE, str(served), str(port)]
    command += [str(folder / "host"), str(folder / "login.pub")]
    home = Path(tempfile.mkdtemp(prefix="docflow-bench-", dir="/dev/shm"))
    log = folder / "sftp.log"
    async with (
        child(command, log) as process,
        clamd(folder / "clamd") as address,
        azurite(folder) as storage,
    ):
        await wait_for_port(process, port, "SFTP", log)
        await AzureBlobs(storage, _CONTAINER).create_container()
        gpg: Any = gnupg.GPG(gnupghome=str(home))
        made = gpg.gen_key(
            "Key-Type: EDDSA\nKey-Curve: ed25519\nSubkey-Type: ECDH\nSubkey-Curve: cv25519\n"
            "Name-Real: bench\n%no-protection\n%commit\n"
        )
        try:
            yield Servers(
                folder=folder,
                sftp_port=port,
                host_key=" ".join((folder / "host.pub").read_text().split()[:2]),
                login=folder / "login",
                clamd=address,
                storage=storage,
                home=home,
                fingerprint=made.fingerprint,
                public=gpg.export_keys(made.fingerprint),
                private=gpg.export_keys(made.fingerprint, secret=True, expect_passphrase=False),
            )
        finally:
            kill = ("gpgconf", "--homedir", str(home), "--kill", "gpg-agent")
            await asyncio.to_thread(subprocess.run, kill, check=False)
            await asyncio.to_thread(subprocess.run, ("rm", "-rf", str(home)), check=False)


def make_message(at: Servers, name: str, megabytes: int, *, planted: bool) -> None:
    """A file that is encrypted and signed, as a partner would send it."""
    plain = at.folder / "plain"
    with plain.open("wb") as sink:
        for _ in range(megabytes):
            sink.write(os.urandom(_BLOCK))
        if planted:
            sink.seek(-_BLOCK // 2, os.SEEK_END)
            sink.write(PLANTED)
    subprocess.run(
        [
            *("gpg", "--homedir", str(at.home), "--batch", "--yes", "--trust-model", "always"),
            *("-z", "0", "--sign", "--encrypt", "-r", at.fingerprint),
            *("-o", str(at.folder / "served" / name), str(plain)),
        ],
        check=True,
        capture_output=True,
    )
    plain.unlink()


def signed_url(storage: str, path: str) -> str:
    """A URL that whoever has it may write to for a day.

    Source: "Create an account SAS" of the Azure Storage REST reference.
    """
    account = StorageAccount.from_connection_string(storage)
    expiry = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    values = {"sp": "rwc", "ss": "b", "srt": "o", "se": expiry, "sv": "2020-10-02"}
    signed = [account.name, values["sp"], values["ss"], values["srt"], "", expiry, "", ""]
    text = "\n".join([*signed, values["sv"], ""]).encode()
    digest = hmac.digest(base64.b64decode(account.key or ""), text, "sha256")
    query = urlencode({**values, "sig": base64.b64encode(digest).decode()})
    return f"{account.endpoint}/{path}?{query}"


def by_hand(at: Servers, name: str, upload: str) -> tuple[float, str]:
    """Seconds of the shell, and what clamd said."""
    environment = {
        **os.environ,
        "FOLDER": str(at.folder),
        "NAME": name,
        "PORT": str(at.sftp_port),
        "LOGIN": str(at.login),
        "HOMEDIR": str(at.home),
        "CLAMD": at.clamd.rpartition(":")[2],
        "URL": upload,
    }
    began = perf_counter()
    done = subprocess.run(
        ["bash", "-c", _SHELL], env=environment, check=True, capture_output=True, text=True
    )
    return perf_counter() - began, done.stdout.strip()


def by_docflow(at: Servers, name: str, key: str | None) -> tuple[float, float, Mapping[str, Any]]:
    """Seconds, megabytes of memory at most, and what became of the file."""
    order = {
        "folder": str(at.folder),
        "name": name,
        "port": at.sftp_port,
        "host_key": at.host_key,
        "login": at.login.read_text(),
        "clamd": at.clamd,
        "storage": at.storage,
        "account": StorageAccount.from_connection_string(at.storage).endpoint,
        "fingerprint": at.fingerprint,
        "public": at.public,
        "private": at.private,
        "key": key,
        "container": _CONTAINER,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.transfers.actions"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(order))
    process.stdin.close()
    seen = psutil.Process(process.pid)
    most = 0
    while process.poll() is None:
        most = max(most, seen.memory_info().rss)
        try:
            process.wait(_PAUSE)
        except subprocess.TimeoutExpired:
            continue
    assert process.stdout is not None
    result: Mapping[str, Any] = json.loads(process.stdout.read())
    return float(result["seconds"]), most / 1e6, result


async def measure(megabytes: int, rounds: int) -> Table:
    """Both ways in turn, and a file with a signature in its last megabyte."""
    table = Table(
        f"{megabytes:,} MB: SFTP, decrypt and verify, scan, blob",
        ("by", "seconds", "to the shell", "MB of memory at most"),
    )
    with tempfile.TemporaryDirectory(prefix="docflow-bench-") as name:
        async with servers(Path(name)) as at:
            make = asyncio.to_thread(make_message, at, "file.pgp", megabytes, planted=False)
            await make
            url = signed_url(at.storage, f"{_CONTAINER}/by-hand")
            shell: list[float] = []
            plain: list[tuple[float, float]] = []
            steps: list[Sequence[float]] = []
            sealed: list[tuple[float, float]] = []
            for _ in range(rounds):
                seconds, _ = await asyncio.to_thread(by_hand, at, "file.pgp", url)
                shell.append(seconds)
                seconds, memory, done = await asyncio.to_thread(by_docflow, at, "file.pgp", None)
                plain.append((seconds, memory))
                steps.append(done["steps"])
                key = hashlib.sha256(b"bench").hexdigest()
                seconds, memory, _ = await asyncio.to_thread(by_docflow, at, "file.pgp", key)
                sealed.append((seconds, memory))
            base = middle(shell)
            table.add("shell", f"{base:.1f}", "1", "")
            for title, found in (("docflow", plain), ("docflow, staging encrypted", sealed)):
                seconds = middle([each for each, _ in found])
                memory = max(each for _, each in found)
                table.add(title, f"{seconds:.1f}", f"{seconds / base:.2f}", f"{memory:.0f}")
            parts = [f"{middle(each):.1f}" for each in zip(*steps, strict=True)]
            table.notes.append(f"seconds to read, decrypt, scan, write: {', '.join(parts)}")
            ratio = middle([each for each, _ in plain]) / base
            table.notes.append(f"docflow to the shell: {at_most(ratio, RATIO)}")
            memory = max(each for _, each in (*plain, *sealed))
            table.notes.append(f"memory: {at_most(memory, MEGABYTES_OF_MEMORY, ' MB')}")
            await asyncio.to_thread(make_message, at, "planted.pgp", megabytes, planted=True)
            _, _, result = await asyncio.to_thread(by_docflow, at, "planted.pgp", None)
            is_found = PLANTED_NAME in (result["infected"] or "")
            said = "found" if is_found else "**not found**"
            table.notes.append(f"a signature in the last megabyte: {said}, nothing was written")
    return table


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.transfers.files")
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    print(f"## A large file\n\n{machine.describe()}", flush=True)
    print(asyncio.run(measure(given.megabytes, given.rounds)).markdown(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
