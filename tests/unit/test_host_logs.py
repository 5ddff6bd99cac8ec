"""Whatever hosts docflow, its lines hide secrets and say what they are about."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
SHORT: Final = "plan-7"
"""A password of fewer characters than are hidden within words."""
SETTINGS: Final[Mapping[str, str]] = {
    "DATABASE_URL": f"postgresql://ada:{SHORT}@db/docflow",
    "AZURE_STORAGE_CONNECTION_STRING": "AccountName=a;AccountKey=planted-storage==",
    "AZURE_SERVICE_BUS_CONNECTION_STRING": "Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=pl1",
    "AZURE_SERVICE_BUS_QUEUE_NAME": "imports",
    "DOCFLOW_JWT_KEY": "planted-key-of-thirty-two-characters",
    "TEMPORAL_API_KEY": "planted-api-key",
    "DOCFLOW_BATCH_PREFIX": "t",
    "DOCFLOW_CASE_ID": "7",
    "DOCFLOW_BATCH_ID": "1",
    "DOCFLOW_LOG_FORMAT": "json",
}
LOGGED: Final = f"password {SHORT} of db, planted-storage==, pl1 and planted-api-key; explan-78"
SHOWN: Final = "password *** of db, ***, *** and ***; explan-78"

_COMMAND: Final = """
import importlib, logging, sys
from workers.shared.cli.app import app

async def log(*arguments, **options):
    logging.getLogger("tests").warning({logged!r})
    raise SystemExit

module = importlib.import_module({module!r})
setattr(module, {function!r}, log)
app({command!r}.split())
"""
_FUNCTION: Final = """
import logging, sys

# Hosts bring a handler and a format of their own.
logging.basicConfig(format="HOST %(message)s", stream=sys.stderr)

class Intake:
    def __init__(self, *arguments, **options):
        pass

    async def accept(self, raw, earlier, message_id, sent_at=None):
        from workers.shared.services.bodies import Settle
        logging.getLogger("tests").warning({logged!r})
        return Settle("run")
"""
_LAMBDA: Final = """
from types import SimpleNamespace
from workers.batches import loader_lambda as host

async def connect(api_key):
    return None

host.connect, host.DocumentIntake = connect, Intake
context = SimpleNamespace(aws_request_id="r1", get_remaining_time_in_millis=lambda: 30_000)
host.handler({"Records": [{"messageId": "m1", "body": "{}"}]}, context)
"""
_AZURE: Final = """
import asyncio
from tests.adapters.test_bridge_parity import function_of, trigger
from workers.imports import function_app as host

host._HANDLER = Intake()
asyncio.run(function_of(host.app)(trigger(b"{}", "m1")))
"""


def _command(command: str, module: str, function: str) -> str:
    return _COMMAND.format(logged=LOGGED, command=command, module=module, function=function)


HOSTS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "worker": (_command("worker all", "workers.shared.process", "run_worker"), {}),
    "bridge": (_command("bridge service-bus", "workers.shared.process", "run_bridge"), {}),
    "gateway": (_command("gateway", "workers.shared.gateway.process", "run_gateway"), {}),
    "lambda": (
        _FUNCTION.format(logged=LOGGED) + _LAMBDA,
        {"message_id": "m1", "request_id": "r1"},
    ),
    "azure": (_FUNCTION.format(logged=LOGGED) + _AZURE, {"message_id": "m1"}),
}


@pytest.mark.parametrize("host", HOSTS)
def test_no_host_shows_a_secret(host: str) -> None:
    code, facts = HOSTS[host]
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=dict(SETTINGS),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    # A host may log before the first message comes.
    [logged] = [line for line in done.stderr.splitlines() if "explan-78" in line]
    line: dict[str, Any] = json.loads(logged)
    assert (line["message"], {name: line.get(name) for name in facts}) == (SHOWN, facts)
