"""The process that calls functions: `python -m adapters.files.computation_child`.

An order is a `Call`; its answer is one piece, a `Returned`.
"""

import sys
from functools import reduce
from importlib import import_module
from typing import Any

from adapters.files import forks, sandbox
from adapters.files.computation import Call, Returned
from workflows.shared.errors import RuleViolation


def _handle(body: str, send: forks.Send) -> None:
    call = Call.model_validate_json(body)
    sys.path += [each for each in call.path if each not in sys.path]
    try:
        function: Any = reduce(getattr, call.function.split("."), import_module(call.module))
        returned = Returned(result=function(call.argument))
    except RuleViolation as error:
        returned = Returned(violated=str(error))
    except MemoryError:
        raise
    except Exception as error:
        # What the function did not foresee is the task's own failure, and no crash.
        returned = Returned(violated=f"{call.function} failed: {type(error).__name__}: {error}")
    send(returned.model_dump_json().encode())


if __name__ == "__main__":
    forks.serve(_handle, (sandbox.ROOT / "activities",))
