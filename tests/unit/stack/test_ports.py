"""A stack takes the same ports at each start in its folder."""

import json
import socket
from pathlib import Path

import pytest

from stack.children import StackError, free_port
from stack.ports import take_ports

FREE = {"gateway": None, "health": None, "ui": None}


def test_the_next_start_takes_the_same_ports(tmp_path: Path) -> None:
    said: list[str] = []
    file = tmp_path / "new" / "ports.json"
    first = take_ports(file, FREE, said.append)
    assert len(set(first.values())) == 3
    assert take_ports(file, FREE, said.append) == first
    assert said == []


def test_a_port_that_was_asked_for_is_kept_too(tmp_path: Path) -> None:
    port = free_port()
    first = take_ports(tmp_path / "ports.json", {**FREE, "ui": port}, pytest.fail)
    assert first["ui"] == port
    assert take_ports(tmp_path / "ports.json", FREE, pytest.fail) == first


def test_a_first_start_takes_the_preferred_port_if_it_is_free(tmp_path: Path) -> None:
    said: list[str] = []
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        other = take_ports(tmp_path / "second" / "ports.json", FREE, said.append, {"ui": port})
    assert said == [f"port {port} (ui) is taken; using {other['ui']} instead"]
    first = take_ports(tmp_path / "ports.json", FREE, pytest.fail, {"ui": port})
    assert first["ui"] == port
    assert take_ports(tmp_path / "ports.json", FREE, pytest.fail, {"ui": free_port()}) == first


def test_a_kept_port_that_is_taken_is_named_and_replaced(tmp_path: Path) -> None:
    said: list[str] = []
    file = tmp_path / "ports.json"
    first = take_ports(file, FREE, said.append)
    with socket.create_server(("127.0.0.1", first["gateway"])):
        second = take_ports(file, FREE, said.append)
    assert second == {**first, "gateway": second["gateway"]}
    assert second["gateway"] != first["gateway"]
    assert said == [
        f"port {first['gateway']} (gateway) is taken; using {second['gateway']} instead"
    ]
    assert take_ports(file, FREE, said.append) == second


def test_a_kept_port_that_is_asked_for_under_another_name_is_replaced(tmp_path: Path) -> None:
    said: list[str] = []
    file = tmp_path / "ports.json"
    first = take_ports(file, FREE, said.append)
    second = take_ports(file, {**FREE, "ui": first["gateway"]}, said.append)
    assert second["ui"] == first["gateway"] != second["gateway"]
    assert len(said) == 1


def test_a_port_cannot_be_asked_for_twice(tmp_path: Path) -> None:
    port = free_port()
    with pytest.raises(StackError, match=f"^port {port} is asked for twice; choose another$"):
        take_ports(tmp_path / "ports.json", {"ui": port, "gateway": port}, pytest.fail)


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"ui": 0}', '{"ui": "x"}'])
def test_a_file_that_holds_no_ports_is_named(tmp_path: Path, text: str) -> None:
    said: list[str] = []
    file = tmp_path / "ports.json"
    file.write_text(text)
    ports = take_ports(file, FREE, said.append)
    assert said == [f"{file} does not hold the ports of a stack; choosing others"]
    assert json.loads(file.read_text()) == ports
