"""MiniStack, which stands for AWS in tests and in the embedded stack: SQS, SNS, IAM and Lambda."""

import os
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from adapters.aws.session import AwsSettings
from workers.stack.children import child, free_port, wait_for_port

REGION: Final = "eu-central-1"
SERVICES: Final = "sqs,sns,iam,lambda,sts"


@asynccontextmanager
async def ministack(folder: Path) -> AsyncGenerator[AwsSettings]:
    """Run MiniStack on a free loopback port, with everything in memory.

    Args:
        folder: Takes its log, and the packages of its functions while it runs.

    Yields:
        The way to it.

    Raises:
        StackError: It did not start.
    """
    port, log = free_port(), folder / "ministack.log"
    # It leaves the folders of its functions behind when it is killed: they lie in one that is
    # removed before and after.
    packages = folder / "ministack"
    shutil.rmtree(packages, ignore_errors=True)
    packages.mkdir(parents=True)
    environment = {
        **os.environ,
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "MINISTACK_HOST": "127.0.0.1",
        "MINISTACK_REGION": REGION,
        "SERVICES": SERVICES,
        "LAMBDA_EXECUTOR": "local",
        "LOG_LEVEL": "WARNING",
        "TMPDIR": str(packages),
    }
    try:
        async with child([sys.executable, "-m", "ministack"], log, environment) as process:
            await wait_for_port(process, port, "MiniStack", log)
            yield AwsSettings(
                region=REGION,
                endpoint_url=f"http://127.0.0.1:{port}",
                access_key_id="test",
                secret_access_key="test",  # noqa: S106 - the emulator takes any
            )
    finally:
        shutil.rmtree(packages, ignore_errors=True)
