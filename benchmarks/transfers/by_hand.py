"""A large file carried by the tools that a person would chain in a shell."""

import os
import subprocess
from time import perf_counter
from typing import Final

from benchmarks.transfers.far_ends import FarEnds
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
if grep -q 'OK$' shell.verdict; then
  curl -sS --fail -X PUT -H 'x-ms-blob-type: BlockBlob' -T shell.plain "$URL"
fi
since
rm -f shell.pgp shell.plain
"""


def by_hand(at: FarEnds, name: str, upload: str) -> tuple[float, list[float]]:
    """Seconds of the whole, and of fetching, decrypting, scanning and uploading.

    Args:
        at: The far ends.
        name: Of the message on the SFTP server.
        upload: URL that the plain file is sent to, if it is clean.
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
        "URL": upload,
    }
    began = perf_counter()
    done = subprocess.run(
        ["bash", "-c", _SHELL], env=environment, check=True, capture_output=True, text=True
    )
    return perf_counter() - began, [int(each) / 1e6 for each in done.stdout.split()]
