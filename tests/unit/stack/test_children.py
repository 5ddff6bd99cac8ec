"""A server that answers on a port is not taken for one that did not start."""

import socket
import sys
from pathlib import Path

import pytest

from stack.children import StackError, child, free_port, require_free, wait_for_port, wait_until
from stack.embedded import gateway_part
from tests.support.cli import run_docflow

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_taken_port_is_refused(address: str) -> None:
    with socket.create_server((address, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StackError, match=f"^port {port} is taken; choose another$"):
            require_free(port)


def test_connections_of_a_server_that_has_ended_do_not_take_its_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address):
            accepted, _ = server.accept()
            # The side that closes first keeps the connection for a minute.
            accepted.close()
    require_free(address[1])


async def test_a_child_that_has_ended_is_not_up_though_its_port_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        async with child([sys.executable, "-c", "raise SystemExit(3)"], tmp_path / "log") as ended:
            await ended.wait()
            with pytest.raises(StackError, match=r"^the server ended with 3; see .*log$"):
                await wait_for_port(ended, taken.getsockname()[1], "the server", tmp_path / "log")


async def test_a_slow_child_is_waited_for_and_reported(tmp_path: Path) -> None:
    said: list[str] = []

    async def is_up() -> bool:
        return len(said) == 2

    async with child(["sleep", "60"], tmp_path / "log") as slow:
        await wait_until(is_up, slow, "the server", tmp_path / "log", said.append, 0.01)
        assert slow.returncode is None
    assert all("the server is not up after 0 s; still waiting, its log is" in each for each in said)


async def test_a_part_does_not_start_on_the_port_of_another(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StackError, match=f"^port {port} is taken"):
            gateway_part(tmp_path, {}, port).started()


@pytest.mark.parametrize("option", ["--temporal-port", "--ui-port", "--gateway-port"])
def test_a_stack_does_not_start_on_the_port_of_another(option: str, tmp_path: Path) -> None:
    folder = tmp_path / "dev"
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        port = taken.getsockname()[1]
        done = run_docflow("dev", "--folder", str(folder), option, str(port))
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"docflow: port {port} is taken; choose another\n"
    assert [file.name for file in folder.iterdir()] == ["stack.lock"]
