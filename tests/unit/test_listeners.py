"""Every listening port takes the same hosts, and messages name what is at fault."""

import re
import socket

import pytest

from workers.shared.errors import SettingsError
from workers.shared.health_server import authority, listener


@pytest.mark.parametrize(
    ("host", "address"), [("localhost", "127.0.0.1"), ("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")]
)
def test_names_and_addresses_of_both_families_are_listened_on(host: str, address: str) -> None:
    with listener(host, 0, "health port") as listening:
        port = listening.getsockname()[1]
        assert authority(listening) == f"{address}:{port}"
        socket.create_connection((host, port)).close()


@pytest.mark.parametrize("host", ["nosuch.invalid", "[::1]", "192.0.2.1", "a..b"])
def test_a_host_that_cannot_be_used_is_blamed_and_not_the_port(host: str) -> None:
    says = rf"^DOCFLOW_HTTP_HOST: cannot listen at '{re.escape(host)}': [^;]+$"
    with pytest.raises(SettingsError, match=says), listener(host, 0, "health port"):
        pytest.fail("it listens")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_taken_port_is_blamed_and_not_the_host(host: str) -> None:
    with listener(host, 0, "port") as taken:
        port = taken.getsockname()[1]
        says = f"^health port {port} cannot be used: Address already in use; choose another$"
        with pytest.raises(SettingsError, match=says), listener(host, port, "health port"):
            pytest.fail("it listens")
