"""A large file carried by the tools that a person would chain in a shell."""

import os
import subprocess
from time import perf_counter
from typing import Final

from benchmarks.transfers.endpoints import CONTAINER, Endpoints, signed_url
from stack.sftp import USER

_SHELL: Final = """
set -euo pipefail
cd "$FOLDER"
now() { echo "${EPOCHREALTIME/[.,]/}"; }
since() { local end; end=$(now); printf '%s ' $((end - began)); began=$end; }
began=$(now)
printf 'get %s shell.pgp\\n' "$NAME" | sftp -q -b - -P "$PORT" -i "$LOGIN" \
  -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "$SFTP_USER@127.0.0.1" >/dev/null 2>&1
since
gpg --homedir "$HOMEDIR" --batch --yes --quiet --trust-model always -o shell.plain -d shell.pgp \
  2>/dev/null
since
exec 3<>"/dev/tcp/127.0.0.1/$CLAMD"
printf 'zSCAN %s/shell.plain\\0' "$FOLDER" >&3
tr -d '\\0' <&3 > shell.verdict
since
grep -q 'OK$' shell.verdict
put() { curl -sS --fail -X PUT -H 'content-type: application/octet-stream' "$@"; }
list=
for ((number = 0; number << 25 < $(stat -c %s shell.plain); number++)); do
  id=$(printf %09d $number | base64)
  dd if=shell.plain bs=32M skip=$number count=1 status=none |
    put --data-binary @- "$URL&comp=block&blockid=$id"
  list+="<Latest>$id</Latest>"
done
put --data-binary "<?xml version='1.0'?><BlockList>$list</BlockList>" "$URL&comp=blocklist"
since
rm -f shell.pgp shell.plain
"""
"""Large blobs are uploaded in blocks, as tools for it do."""


def by_hand(at: Endpoints, name: str, storage: str) -> list[float]:
    """Seconds of fetching, decrypting, scanning and uploading.

    Args:
        at: The endpoints.
        name: Of the message on the SFTP server.
        storage: Connection string of the account that the plain file is sent to, if it is clean.
    """
    environment = {
        **os.environ,
        "FOLDER": str(at.folder),
        "NAME": name,
        "PORT": str(at.sftp.port),
        "LOGIN": str(at.sftp.login),
        "SFTP_USER": USER,
        "HOMEDIR": str(at.home),
        "CLAMD": at.clamd.rpartition(":")[2],
        "URL": signed_url(storage, f"{CONTAINER}/by-hand"),
    }
    done = subprocess.run(
        ["bash", "-c", _SHELL], env=environment, check=True, capture_output=True, text=True
    )
    return [int(each) / 1e6 for each in done.stdout.split()]


def in_one_request(at: Endpoints, megabytes: int, storage: str) -> float:
    """Seconds of an upload without blocks, of a file of zeros."""
    plain = at.folder / "zeros"
    with plain.open("wb") as sink:
        sink.truncate(megabytes << 20)
    url = signed_url(storage, f"{CONTAINER}/whole")
    began = perf_counter()
    subprocess.run(
        [
            *("curl", "-sS", "--fail", "-X", "PUT", "-H", "x-ms-blob-type: BlockBlob"),
            *("-T", str(plain), url),
        ],
        check=True,
    )
    seconds = perf_counter() - began
    plain.unlink()
    return seconds
