"""The log of a process: one line for each event that says what it is about, without secrets.

Secrets kept out of logs: those that settings name, and what looks like one.

What is hidden:

1. The value of every secret setting, and of every key in it that is named like a secret
   (`AccountKey=`, `password` of an address, `"LOADER_PASSWORD": ` in JSON), whatever its length.
   One of fewer than 8 characters is hidden where it stands by itself, not within a longer word.
   Not hidden is a short one that the same setting also has in public, as a password or key that is
   its own user's name: it protects nothing, and the word would be missing from every sentence.
2. Other parts of a secret setting from 8 characters on, such as the values of a JSON object; parts
   of the path of an address from 16 on.
3. What looks like a secret in any text: queries and passwords of addresses, values of keys with
   secret names, authorisation headers, web tokens.

The log of a process: one line for each event, in text or JSON, that says what it is about.

Facts come from where work begins: an activity or workflow of Temporal, or `bound` of
`workers.shared.logs`. Whatever is logged meanwhile has them, by whichever library.
"""

import json
import logging
import re
import sys
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError, FailureError

from adapters.ports.errors import PortError
from workers import catalogue
from workers.shared.settings.base import SecretFiles
from workers.shared.settings.check import declared_groups
from workers.shared.settings.common import LogSettings
from workers.shared.text import visible
from workflows.shared.errors import InvalidDocument, RuleViolation

HIDDEN: Final = "***"
SHORT: Final = 8
"""Shorter values are found within words that hold no secret."""
_TOKEN: Final = 16
"""Shorter parts of a path are words."""
_ELSEWHERE: Final = ("TEMPORAL_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
"""Secrets that no group of settings declares, because an SDK reads them."""
_KEYED: Final = r"[\w-]*(?:key|secret|signature|password|token|credential|\bsig)"
_LOOKS_SECRET: Final = (
    # What a presigned address or a webhook's token consists of stands behind the question mark.
    (re.compile(r"(\bhttps?://[^\s?\"'<>]+)\?[^\s\"'<>]+"), rf"\1?{HIDDEN}"),
    (re.compile(r"(\b[\w+.-]+://[^\s/:@]*):[^\s/@]+@"), rf"\1:{HIDDEN}@"),
    (re.compile(rf"(?i)\b({_KEYED}|pwd)=[^\s;&\"']+"), rf"\1={HIDDEN}"),
    (re.compile(rf"(?i)(\"(?:{_KEYED}|pwd)\"\s*:\s*)\"[^\"]+\""), rf'\1"{HIDDEN}"'),
    (re.compile(r"(?i)\b(password|pwd): [^\s;&\"']+"), rf"\1: {HIDDEN}"),
    (re.compile(r"(?i)\b(bearer|basic) [\w.~+/=-]{8,}"), rf"\1 {HIDDEN}"),
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*"), HIDDEN),
)


class Redaction:
    """Replaces secrets in texts.

    Args:
        secrets: Values that are never shown.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        parts = set[str]().union(*map(_hidden_of, secrets))
        # The longest first: one may be a part of another.
        ordered = sorted(parts, key=len, reverse=True)
        self._known = re.compile("|".join(map(_pattern, ordered))) if ordered else None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Redaction":
        """For the secrets of every setting that an environment has, from files too."""
        return cls(_secrets(environment))

    def __call__(self, text: str) -> str:
        """The text without secrets."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        for pattern, replacement in _LOOKS_SECRET:
            text = pattern.sub(replacement, text)
        return text


def _secrets(environment: Mapping[str, str]) -> Iterator[str]:
    declared = (each for group in declared_groups() for each in group.declared())
    names = {each.name for each in declared if each.setting.secret}
    files = SecretFiles(environment)
    for name in sorted(names.union(_ELSEWHERE)):
        try:
            value = files.value(name, environment.get(name, "").strip() or None)
        except ValueError:
            # Reported by what needs the setting.
            continue
        if value is not None:
            yield value


def _pattern(part: str) -> str:
    """Finds a part of a secret; a short one only where it stands by itself."""
    found = re.escape(part)
    return found if len(part) >= SHORT else rf"(?<!\w){found}(?!\w)"


def _hidden_of(secret: str) -> set[str]:
    """What of a secret setting is never shown."""
    named = {value for value in (secret, *_named_secrets(secret)) if value}
    shown = {value for value in named.intersection(_public(secret)) if len(value) < SHORT}
    return (named - shown).union(part for part in _other_parts(secret) if len(part) >= SHORT)


def _named_secrets(secret: str) -> Iterator[str]:
    """The values in a secret setting that its form names as secret."""
    if (address := _address(secret)) is not None and address.password:
        yield from (address.password, unquote(address.password))
    query = parse_qsl(address.query) if address is not None else ()
    for name, value in (*_texts_of(secret), *_pairs(secret), *query):
        if _is_named_secret(name):
            yield value


def _is_named_secret(name: str) -> bool:
    return re.fullmatch(f"(?i){_KEYED}|pwd", name) is not None


def _public(secret: str) -> Iterator[str]:
    """The words of an address or a connection string that are no secret."""
    if (address := _address(secret)) is not None:
        yield from (address.username or "", address.hostname or "", *address.path.split("/"))
    yield from (value for name, value in _pairs(secret) if not _is_named_secret(name))


def _other_parts(secret: str) -> Iterator[str]:
    if (address := _address(secret)) is not None:
        # Tokens of webhooks stand in the path.
        yield from (each for each in address.path.split("/") if len(each) >= _TOKEN)
        yield address.query
    yield from (value for _, value in _texts_of(secret))


def _address(secret: str) -> SplitResult | None:
    try:
        return urlsplit(secret) if "://" in secret else None
    except ValueError:
        return None


def _pairs(secret: str) -> Iterator[tuple[str, str]]:
    """Names and values of a connection string."""
    for part in secret.split(";"):
        name, _, value = part.partition("=")
        yield name.strip(), value


def _texts_of(secret: str) -> Iterator[tuple[str, str]]:
    """Names and values of a JSON object of texts."""
    if not secret.startswith("{"):
        return
    try:
        values = json.loads(secret)
    except ValueError:
        return
    yield from ((name, value) for name, value in values.items() if isinstance(value, str))


T = TypeVar("T")
_CONTEXT: ContextVar[Mapping[str, str]] = ContextVar("log_context")


@contextmanager
def bound(**facts: str | None) -> Generator[None]:
    """Add facts to every line that is logged inside the block, tasks of it included."""
    known = {name: value for name, value in facts.items() if value is not None}
    token = _CONTEXT.set({**current(), **known})
    try:
        yield
    finally:
        _CONTEXT.reset(token)


def bind(**facts: str | None) -> None:
    """Add facts to every line that is logged by the rest of this task, tasks of it included.

    For runs and activities, each of which has a task of its own: the SDK logs how they failed after
    them, and may close a run that leaves the cache outside of its task, where no block ends.
    """
    known = {name: value for name, value in facts.items() if value is not None}
    _CONTEXT.set({**current(), **known})


async def about(work: Callable[[], Awaitable[T]], **facts: str | None) -> T:
    """Do something; every line that is logged meanwhile has the facts.

    A task of it that is cancelled before it begins leaves no coroutine that was never awaited.
    """
    with bound(**facts):
        return await work()


def current() -> Mapping[str, str]:
    """The facts of the block that this is called in."""
    return _CONTEXT.get({})


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
            **current(),
        }
    if workflow.in_workflow():
        run = workflow.info()
        return {
            **_run(run.workflow_id, run.run_id, run.task_queue),
            **current(),
        }
    return current()


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
