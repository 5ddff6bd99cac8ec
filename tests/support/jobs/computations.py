"""What tasks of tests compute in processes of their own."""

from pathlib import Path
from typing import Any

from workflows.shared.errors import RuleViolation


def doubled(argument: dict[str, Any]) -> dict[str, Any]:
    """Twice the number, which is written into the folder too."""
    Path("doubled").write_text(str(2 * argument["number"]))
    return {"number": 2 * argument["number"]}


def swollen(argument: dict[str, Any]) -> dict[str, Any]:
    """The length of as many bytes as are asked for."""
    return {"bytes": len(bytearray(argument["bytes"]))}


def refused(argument: dict[str, Any]) -> dict[str, Any]:
    """What a rule refuses."""
    raise RuleViolation(f"{argument['number']} is odd")


def surprised(argument: dict[str, Any]) -> dict[str, Any]:
    """What the function did not foresee."""
    return {"number": 1 / argument["number"]}


def stolen(argument: dict[str, Any]) -> dict[str, Any]:
    """A file of others."""
    return {"text": Path(argument["path"]).read_text()}
