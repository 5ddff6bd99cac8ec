"""MiniStack, which stands for AWS in tests and in the embedded stack: SQS, SNS, IAM and Lambda."""

import os
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from adapters.aws.session import AwsSettings
from stack.children import StackError, child, free_port, wait_for_port

REGION: Final = "eu-central-1"
_COMMAND: Final = (sys.executable, "-m", "ministack")
_SETTINGS: Final = {
    "BIND_HOST": "127.0.0.1",
    "MINISTACK_HOST": "127.0.0.1",
    "MINISTACK_REGION": REGION,
    "SERVICES": "sqs,sns,iam,lambda,sts",
    "LAMBDA_EXECUTOR": "local",
    "LOG_LEVEL": "WARNING",
    "PERSIST_STATE": "0",
    "LOCALSTACK_PERSISTENCE": "0",
    # It would listen on the ports of these two, which are always the same.
    "SFTP_ENABLED": "0",
    "IOT_MTLS_ENABLED": "0",
}


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
    if find_spec("ministack") is None:
        raise StackError("MiniStack is not installed; run `make install`")
    port, log = free_port(), folder / "ministack.log"
    # It unpacks functions into temporary folders and leaves them behind when it is killed: they
    # lie in one that is emptied before and after.
    packages = folder / "ministack"
    shutil.rmtree(packages, ignore_errors=True)
    packages.mkdir(parents=True)
    try:
        async with child(_COMMAND, log, _environment(port, packages)) as process:
            await wait_for_port(process, port, "MiniStack", log)
            yield AwsSettings(
                region=REGION,
                endpoint_url=f"http://127.0.0.1:{port}",
                access_key_id="test",
                secret_access_key="test",  # noqa: S106 - the emulator takes any
            )
    finally:
        shutil.rmtree(packages, ignore_errors=True)


def _environment(port: int, packages: Path) -> dict[str, str]:
    # Functions inherit it: with an AWS_ variable of ours they might talk to AWS itself.
    ours = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**ours, **_SETTINGS, "GATEWAY_PORT": str(port), "TMPDIR": str(packages.absolute())}
