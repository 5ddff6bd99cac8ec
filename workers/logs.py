"""The log of a process: one line for each event, in text or JSON, that says what it is about.

Facts come from where work begins: an activity or workflow of Temporal, or `bound` of
`workers.log_context`. Whatever is logged meanwhile has them, by whichever library.
"""

import json
import logging
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError, FailureError

from adapters.ports import PortError
from domain.errors import InvalidDocument, RuleViolation
from workers import catalogue, log_context
from workers.redaction import Redaction
from workers.settings.common import LogSettings
from workers.text import visible

_QUIET: Final = (
    # They log every link and retry, and every look at the schema, at INFO.
    *("azure", "alembic", "botocore", "boto3", "aiobotocore"),
    # They log every address that is called, with what is secret in it.
    *("httpx", "httpcore", "urllib3"),
)
_EXPECTED: Final = (PortError, InvalidDocument, RuleViolation)


def configure_logs(environment: Mapping[str, str]) -> None:
    """Log what this process does to stderr, as `DOCFLOW_LOG_FORMAT` says, without secrets.

    Raises:
        SettingsError: The format is unknown.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(environment))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    _quieten()


def configure_host_logs(environment: Mapping[str, str]) -> None:
    """As `configure_logs`, in a process of a host that has brought handlers of its own.

    They stay, because they know where the lines go (AWS Lambda, Azure Functions); what they write
    becomes the same lines. Nothing happens where they write them already.

    Raises:
        SettingsError: The format is unknown.
    """
    root = logging.getLogger()
    if not root.handlers:
        configure_logs(environment)
        return
    foreign = [each for each in root.handlers if not isinstance(each.formatter, _Lines)]
    if not foreign:
        return
    formatter = _formatter(environment)
    for handler in foreign:
        handler.setFormatter(formatter)
    root.setLevel(logging.INFO)
    _quieten()


def _formatter(environment: Mapping[str, str]) -> "_Lines":
    lines = JsonLines if LogSettings.read(environment).format == "json" else TextLines
    return lines(Redaction.of(environment))


def _quieten() -> None:
    """Leave out what is logged elsewhere, or says too much."""
    logging.captureWarnings(True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    # What the SDK would append to messages stands in every line.
    workflow.logger.workflow_info_on_message = False
    activity.logger.activity_info_on_message = False


def facts() -> Mapping[str, Any]:
    """What the line that is logged now is about."""
    if activity.in_activity():
        now = activity.info()
        return {
            **_run(now.workflow_id, now.workflow_run_id, now.task_queue),
            "activity": now.activity_type,
            "attempt": now.attempt,
            **log_context.current(),
        }
    if workflow.in_workflow():
        run = workflow.info()
        return {
            **_run(run.workflow_id, run.run_id, run.task_queue),
            **log_context.current(),
        }
    return log_context.current()


def _run(workflow_id: str | None, run_id: str | None, task_queue: str) -> Mapping[str, Any]:
    found = (each.name for each in catalogue.PIPELINES if each.task_queue == task_queue)
    return {
        "pipeline": next(found, task_queue),
        "workflow_id": workflow_id,
        "run_id": run_id,
    }


class _Lines(logging.Formatter):
    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def _failure(self, record: logging.LogRecord) -> str | None:
        """What was raised, in one line where it is a document's or user's fault; else in full."""
        if not record.exc_info or record.exc_info[1] is None:
            return None
        error = record.exc_info[1]
        if _is_expected(error):
            return _sentence(error)
        return self.formatException(record.exc_info)


def _is_expected(error: BaseException) -> bool:
    """Whether it was raised on purpose: its sentence says all, and nothing of ours is broken."""
    if isinstance(error, ApplicationError):
        return error.__cause__ is None or isinstance(error.__cause__, _EXPECTED)
    # Any other failure of Temporal's says how a step or child has ended, and has it as its cause.
    return isinstance(error, (*_EXPECTED, FailureError))


def _sentence(error: BaseException) -> str:
    """What was raised, with what lies beneath it where that is Temporal's."""
    # The SDK puts the type of its errors before their message.
    is_typed = isinstance(error, ApplicationError) and error.type is not None
    text = str(error) if is_typed else f"{type(error).__name__}: {error}"
    beneath = error.cause if isinstance(error, FailureError) else None
    return f"{text}; {_sentence(beneath)}" if isinstance(beneath, FailureError) else text


def _moment(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"


def _shown(value: Any, redact: Callable[[str], str]) -> Any:
    return redact(value) if isinstance(value, str) else value


class JsonLines(_Lines):
    """One JSON object for each event: `time`, `level`, `logger`, `message`, facts, `error`."""

    def format(self, record: logging.LogRecord) -> str:
        """The object, in one line."""
        failure = self._failure(record)
        fields: dict[str, Any] = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._redact(record.getMessage()),
            **{name: _shown(value, self._redact) for name, value in facts().items()},
            "error": failure and self._redact(failure),
        }
        return json.dumps({name: value for name, value in fields.items() if value is not None})


class TextLines(_Lines):
    """Time, level, logger, message, and facts in brackets."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; a defect's traceback stands below it."""
        known = facts()
        about = " ".join(f"{name}={value}" for name, value in known.items() if value is not None)
        line = record.getMessage()
        if about:
            line += f" [{about}]"
        failure = self._failure(record)
        if failure is not None:
            line += f"\n{failure}" if "\n" in failure else f": {failure}"
        begin = f"{_moment(record)} {record.levelname} {record.name}"
        return visible(f"{begin}: {self._redact(line)}")
