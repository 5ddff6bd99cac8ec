"""The verification samples of the page about jobs accept what docflow signs, and nothing else."""

import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from adapters.http import signed_headers

PAGE = Path(__file__).parents[3] / "docs" / "jobs.md"
SECRET = b"a secret of both"
BODY = '{"status":"completed","text":"Größe"}'.encode()


def sample(language: str) -> str:
    part = PAGE.read_text().partition("\n## Webhooks\n")[2]
    found = re.search(rf"^```{language}\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def headers(*secrets: bytes, at: float | None = None) -> dict[str, str]:
    return dict(signed_headers(secrets, "msg_1", int(at or time.time()), BODY))


@pytest.mark.parametrize("secrets", [(SECRET,), (b"new", SECRET)])
def test_the_sample_in_python_accepts_a_genuine_message(secrets: tuple[bytes, ...]) -> None:
    names: dict[str, Any] = {}
    exec(sample("python"), names)
    is_genuine = names["is_genuine"]
    given = headers(*secrets)
    assert is_genuine(SECRET, given, BODY)
    assert not is_genuine(SECRET, given, BODY + b" ")
    assert not is_genuine(b"another", given, BODY)
    assert not is_genuine(SECRET, headers(*secrets, at=time.time() - 3600), BODY)


@pytest.mark.parametrize(
    ("secret", "body", "answer"),
    [(SECRET, BODY, "genuine"), (b"another", BODY, "forged"), (SECRET, BODY + b" ", "forged")],
)
def test_the_sample_in_a_shell_does_too(
    tmp_path: Path, secret: bytes, body: bytes, answer: str
) -> None:
    (tmp_path / "body.json").write_bytes(body)
    given = headers(b"new", SECRET)
    done = subprocess.run(
        ["bash", "-c", sample("bash")],
        cwd=tmp_path,
        env={
            "PATH": "/usr/bin:/bin",
            "SECRET": secret.decode(),
            "WEBHOOK_ID": given["webhook-id"],
            "WEBHOOK_TIMESTAMP": given["webhook-timestamp"],
            "WEBHOOK_SIGNATURE": given["webhook-signature"],
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == answer, done.stderr
