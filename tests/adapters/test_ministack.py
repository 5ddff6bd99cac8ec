"""The stand-in for AWS leaves nothing behind, however it ends."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from adapters.aws.session import AwsSettings, open_aws
from stack import ministack as ministack_module
from stack.children import StackError
from stack.loader_function import install, loader_zip
from stack.ministack import ministack
from tests.support.aws import PLAIN_HANDLER
from tests.support.waiting import eventually


async def invoke(settings: AwsSettings) -> None:
    """Make a function and let it work, so that it is unpacked and has a process."""
    async with open_aws(settings) as clients:
        installed = await install(clients, {}, loader_zip(PLAIN_HANDLER))
        answer = await clients.lambda_.invoke(FunctionName=installed.source_function, Payload=b"{}")
        assert await answer["Payload"].read() == b'{"batchItemFailures": []}'


def processes(folder: Path) -> list[psutil.Process]:
    """MiniStack and its functions, by the folder that they were given."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR", "").startswith(str(folder)):
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.mark.parametrize("killed", [False, True])
async def test_nothing_is_left_of_it(tmp_path: Path, killed: bool) -> None:
    async with ministack(tmp_path) as settings:
        await invoke(settings)
        assert list((tmp_path / "ministack").glob("ministack-lambda-*"))
        server, *functions = sorted(processes(tmp_path), key=lambda one: one.pid)
        assert functions
        if killed:
            os.kill(server.pid, signal.SIGKILL)
    assert [path.name for path in tmp_path.iterdir()] == ["ministack.log"]

    async def nothing_runs() -> bool:
        return not processes(tmp_path)

    await eventually(nothing_runs)


async def test_what_a_killed_parent_left_is_removed_at_the_next_start(tmp_path: Path) -> None:
    (tmp_path / "ministack" / "ministack-lambda-old").mkdir(parents=True)
    async with ministack(tmp_path):
        assert not list((tmp_path / "ministack").glob("ministack-lambda-*"))


async def test_functions_do_not_inherit_the_way_to_aws_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ROLE_SESSION_NAME", "production")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://sqs.example.com")
    async with ministack(tmp_path) as settings:
        await invoke(settings)
        has = [process.environ() for process in processes(tmp_path)]
        assert len(has) > 1
        assert not any("AWS_ROLE_SESSION_NAME" in environment for environment in has)
        assert {environment.get("AWS_ENDPOINT_URL") for environment in has} == {
            None,
            settings.endpoint_url,
        }


async def test_a_missing_installation_is_reported_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ministack_module, "find_spec", lambda name: None)
    with pytest.raises(StackError, match="run `make install`"):
        async with ministack(tmp_path):
            pass
