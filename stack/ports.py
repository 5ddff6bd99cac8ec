"""The ports of a stack, the same ones at each start in its folder."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from stack.children import StackError, free_port, require_free

_PORTS = TypeAdapter(dict[str, Annotated[int, Field(ge=1, le=65535)]])


def take_ports(
    file: Path,
    asked: Mapping[str, int | None],
    announce: Callable[[str], None],
    preferred: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, int]:
    """Choose a port for each name, and write them down for the next start.

    Args:
        file: Keeps them, as JSON; its folder exists, unless a port that was asked for is taken.
        asked: The port that must be used for each name; None: that of the last start, or another
            one when it is taken.
        announce: Gets a line for each port that is not that of the last start, or preferred.
        preferred: Ports of a first start, if they are free.

    Raises:
        StackError: A port that was asked for is taken, or asked for twice.
    """
    ports: dict[str, int] = {}
    for name, port in asked.items():
        if port is not None:
            if port in ports.values():
                raise StackError(f"port {port} is asked for twice; choose another")
            require_free(port)
            ports[name] = port
    file.parent.mkdir(parents=True, exist_ok=True)
    earlier = {**preferred, **_earlier(file, announce)}
    for name in asked:
        if name not in ports and name in earlier and _is_usable(earlier[name], ports):
            ports[name] = earlier[name]
    for name in asked:
        if name not in ports:
            ports[name] = _new_port(ports)
            if name in earlier:
                announce(f"port {earlier[name]} ({name}) is taken; using {ports[name]} instead")
    _write(file, {name: ports[name] for name in asked})
    return ports


def _earlier(file: Path, announce: Callable[[str], None]) -> Mapping[str, int]:
    try:
        return _PORTS.validate_json(file.read_bytes())
    except FileNotFoundError:
        return {}
    except ValidationError:
        announce(f"{file} does not hold the ports of a stack; choosing others")
        return {}


def _is_usable(port: int, ports: Mapping[str, int]) -> bool:
    try:
        require_free(port)
    except StackError:
        return False
    return port not in ports.values()


def _new_port(ports: Mapping[str, int]) -> int:
    while (port := free_port()) in ports.values():
        pass
    return port


def _write(file: Path, ports: Mapping[str, int]) -> None:
    new = file.with_suffix(".new")
    new.write_text(json.dumps(ports, indent=2) + "\n")
    os.replace(new, file)
