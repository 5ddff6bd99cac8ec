"""MiniStack, which stands for AWS in tests and in the embedded stack."""

import os
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from adapters.aws.session import AwsSettings
from stack.children import StackError, free_port, listens
from stack.parts import Part

REGION: Final = "eu-central-1"
_COMMAND: Final = (sys.executable, "-m", "ministack")
_SETTINGS: Final = {
    "BIND_HOST": "127.0.0.1",
    "MINISTACK_HOST": "127.0.0.1",
    "MINISTACK_REGION": REGION,
    "SERVICES": "sqs,sns,iam,lambda,sts,secretsmanager",
    "LAMBDA_EXECUTOR": "local",
    "LOG_LEVEL": "WARNING",
    "PERSIST_STATE": "0",
    "LOCALSTACK_PERSISTENCE": "0",
    # It would listen on the ports of these two, which are always the same.
    "SFTP_ENABLED": "0",
    "IOT_MTLS_ENABLED": "0",
}


def ministack_part(folder: Path, port: int) -> Part:
    """MiniStack, with everything in memory; the way to it is `ministack_at`.

    Args:
        folder: Takes its log, and the packages of its functions while it runs.
        port: Where it listens.

    Raises:
        StackError: It is not installed, and how to get it.
    """
    if find_spec("ministack") is None:
        raise StackError("MiniStack is not installed; run `make install`")

    def prepare() -> None:
        remove_packages(folder)
        _packages(folder).mkdir(parents=True)

    return Part(
        "MiniStack",
        _COMMAND,
        [port],
        folder / "ministack.log",
        lambda: listens(port),
        _environment(port, _packages(folder)),
        prepare,
    )


def ministack_at(port: int) -> AwsSettings:
    """The way to a MiniStack on this machine."""
    return AwsSettings(
        region=REGION,
        endpoint_url=f"http://127.0.0.1:{port}",
        access_key_id="test",
        secret_access_key="test",  # noqa: S106 - the emulator takes any
    )


def remove_packages(folder: Path) -> None:
    """Remove the packages of functions.

    MiniStack unpacks them into temporary folders and leaves them behind when it is killed: they
    lie in a folder that is emptied before and after.
    """
    shutil.rmtree(_packages(folder), ignore_errors=True)


@asynccontextmanager
async def ministack(folder: Path) -> AsyncGenerator[AwsSettings]:
    """Run MiniStack on a free loopback port, with everything in memory.

    Args:
        folder: Takes its log, and the packages of its functions while it runs.

    Yields:
        The way to it.

    Raises:
        StackError: It is not installed, and how to get it; or it did not start, and where its log
            is.
    """
    port = free_port()
    try:
        async with ministack_part(folder, port).ready():
            yield ministack_at(port)
    finally:
        remove_packages(folder)


def _packages(folder: Path) -> Path:
    return folder / "ministack"


def _environment(port: int, packages: Path) -> dict[str, str]:
    # Functions inherit it: with an AWS_ variable of ours they might talk to AWS itself.
    ours = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**ours, **_SETTINGS, "GATEWAY_PORT": str(port), "TMPDIR": str(packages.absolute())}
