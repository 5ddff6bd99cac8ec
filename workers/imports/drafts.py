"""Import messages as the options of commands make them."""

import json
import re
import secrets
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from workers.imports.messages import upload_name
from workers.shared.cli.errors import UsageError
from workers.shared.text import one_line
from workflows.imports import findings
from workflows.imports.messages import (
    IMPORT_MESSAGE,
    DeclaredMessage,
    ImportMessage,
    Key,
    Message,
    OwnMessage,
    checked,
)
from workflows.shared.contracts import problem_text
from workflows.shared.errors import RuleViolation

OPTIONS: Mapping[str, str] = {
    "document_type": "--type",
    "project_id": "--project",
    "task_id": "--task",
    "service_id": "--service",
    "scope": "--scope",
    "strategy": "--strategy",
    "all_or_nothing": "--all-or-nothing",
    "idempotency_key": "--idempotency-key",
    "sheet": "--sheet",
    "encoding": "--encoding",
    "map": "--map",
    "date_order": "--date-order",
    "decimal": "--decimal",
    "leading_zeros": "--leading-zeros",
    "left_out": "--left-out",
    "keep_lines": "--keep-line",
    "max_rejected_share": "--max-rejected-share",
    "primavera_project_id": "--primavera-project",
    "extraction_id": "--extraction",
    "target_blob_name": "--target-blob",
    "payload": "--payload",
    "filters": "--filters",
    "activity_ids": "--activity-id",
    "filename": "FILE",
    "original_filename": "FILE",
}
"""Field of a message to the option that sets it."""

_JSON_FIELDS = ("payload", "filters")
_FILE_FIELDS = ("temp_blob_name", "blob_name")
_NAME_FIELDS = ("original_filename", "filename")


def _message_classes() -> dict[str, type[Message]]:
    union, _ = get_args(OwnMessage)
    return {
        document_type: message_class
        for message_class in get_args(union)
        for document_type in get_args(message_class.model_fields["document_type"].annotation)
    }


MESSAGE_CLASSES: Mapping[str, type[Message]] = _message_classes()
"""The contract of each of docflow's own document types."""


def contract_of(document_type: str) -> type[Message]:
    """The contract of a document type, of docflow's own or a declared one."""
    return MESSAGE_CLASSES.get(document_type, DeclaredMessage)


def _first_field(document_type: str, names: tuple[str, ...]) -> str | None:
    fields = contract_of(document_type).model_fields
    return next((name for name in names if name in fields), None)


def new_task_id(document_type: str, now: datetime) -> str:
    """A task id that is readable and unique."""
    return f"{document_type.replace('_', '-')}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def _parse_json(option: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{option} is not JSON: {error}; quote it like '{{\"level\": 3}}'"
        ) from None


def build_message(
    document_type: str,
    project_id: str,
    task_id: str,
    file: Path | None,
    given: Mapping[str, Any],
) -> ImportMessage:
    """Build the message and check it, before anything is uploaded or sent.

    Args:
        document_type: What the document is.
        project_id: Project it belongs to.
        task_id: Names the import.
        file: The file, for types that work from one.
        given: The other fields as typed, by their name in the message; None: not given.

    Raises:
        UsageError: Options do not fit the type, are missing or wrong; the message names them.
    """
    fields = contract_of(document_type).model_fields
    wanted = {name: value for name, value in given.items() if value is not None}
    if unknown := [OPTIONS[name] for name in wanted if name not in fields]:
        takes = sorted(OPTIONS[name] for name in fields if OPTIONS.get(name, "F")[:2] == "--")
        raise UsageError(
            f"{document_type} does not take {', '.join(unknown)}; it takes {', '.join(takes)}"
        )
    for field, option in (("project_id", project_id), ("task_id", task_id)):
        _check_key(OPTIONS[field], option)
    raw: dict[str, Any] = {
        "document_type": document_type,
        "project_id": project_id,
        "task_id": task_id,
        **_file_fields(document_type, project_id, task_id, file),
        **wanted,
        **{
            name: _parse_json(OPTIONS[name], wanted[name])
            for name in _JSON_FIELDS
            if name in wanted
        },
    }
    try:
        return checked(json.dumps(raw), IMPORT_MESSAGE)
    except ValidationError as error:
        if any(each["loc"][-1:] == ("document_type",) for each in error.errors(include_url=False)):
            raise UsageError(f"there is no type {document_type!r}") from None
        raise UsageError(f"{document_type}: {describe(error)}") from None


def changed(message: ImportMessage, changes: Mapping[str, Any]) -> ImportMessage:
    """The message with other fields as they were given by name.

    Raises:
        UsageError: It has no such field, or not with this value, or docflow itself sets it.
    """
    if own := sorted(changes.keys() & {*_FILE_FIELDS, "unknown_fields"}):
        raise UsageError(f"{own[0]} follows from FILE and --task")
    try:
        return findings.changed(message, changes)
    except RuleViolation as error:
        raise UsageError(str(error)) from None


def _check_key(option: str, value: str) -> None:
    try:
        TypeAdapter[str](Key).validate_python(value)
    except ValidationError:
        raise UsageError(
            f"{option} {value!r}: use up to 128 letters, digits, blanks, slashes and "
            ". _ : @ + -, beginning with a letter or digit"
        ) from None


def _file_fields(
    document_type: str, project_id: str, task_id: str, file: Path | None
) -> dict[str, str]:
    blob_field = _first_field(document_type, _FILE_FIELDS)
    if blob_field is None:
        if file is not None:
            raise UsageError(f"{document_type} works on what is stored and takes no FILE")
        return {}
    if file is None:
        raise UsageError(f"{document_type} needs a FILE")
    name_field = _first_field(document_type, _NAME_FIELDS)
    assert name_field is not None
    return {
        blob_field: upload_name(project_id, task_id, file.name),
        name_field: file.name[-255:],
    }


def describe(error: ValidationError) -> str:
    """What is wrong with a message, in one line that names options."""
    missing: list[str] = []
    wrong: list[str] = []
    for problem in error.errors(include_url=False, include_input=False, include_context=False):
        # The first parts choose the contract: `own` and the document type, or `declared`.
        path = [str(part) for part in problem["loc"]]
        path = path[2 if path[:1] == ["own"] else 1 :]
        text = one_line(problem_text(problem))
        if not path:
            wrong.append(_in_options(text))
            continue
        name = ".".join([OPTIONS.get(path[0], path[0]), *path[1:]])
        if problem["type"] == "missing":
            missing.append(name)
        else:
            wrong.append(f"{name}: {text}")
    needs = [f"needs {', '.join(missing)}"] if missing else []
    return "; ".join(needs + wrong)[:2000]


def _in_options(text: str) -> str:
    return re.sub(
        r"\b(needs an? )(\w+)",
        lambda found: found[1] + OPTIONS.get(found[2], found[2]),
        text,
    )
