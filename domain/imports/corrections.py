"""What a person changes of the message of a parked import."""

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from contracts.base import problem_text
from contracts.imports import IMPORT_MESSAGE, ImportMessage
from domain.errors import RuleViolation

FIXED: Final = ("project_id", "task_id", "document_type")
"""Fields that name the work: they stay."""
BLOBS: Final = ("blob_name", "temp_blob_name", "target_blob_name")
SHOWN: Final = 120
"""Characters of a new value in the trail of corrections."""
LONGEST: Final = 300
"""Characters of all of them."""


def changed(message: ImportMessage, changes: Mapping[str, Any]) -> ImportMessage:
    """The message with some of its fields changed.

    Args:
        message: As it was.
        changes: Field to its new value; of a mapping only the entries that are named change.

    Raises:
        RuleViolation: A field is not one of this type of document, stays as it is, or cannot have
            this value.
    """
    if not changes:
        return message
    fields = message.model_dump(mode="json", exclude_unset=True)
    for name, value in changes.items():
        if name in FIXED:
            raise RuleViolation(f"a corrected message keeps its {name}")
        if name not in type(message).model_fields:
            raise RuleViolation(f"{message.document_type.value} has no field {name}")
        old = fields.get(name)
        fields[name] = (
            {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
        )
    try:
        return IMPORT_MESSAGE.validate_python(fields)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = ".".join(str(part) for part in problem["loc"][1:])
        raise RuleViolation(f"{field or 'the message'}: {problem_text(problem)}") from error


def changes_of(old: ImportMessage, new: ImportMessage) -> str:
    """Fields whose values differ, with the new value; those that people know best come first."""
    before, after = old.model_dump(mode="json"), new.model_dump(mode="json")
    differing = [name for name, value in after.items() if value != before.get(name)]
    differing.sort(key=lambda name: name in BLOBS)
    return _cut("; ".join(f"{name}: {_shown(after[name])}" for name in differing), LONGEST)


def _shown(value: Any) -> str:
    return _cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), SHOWN)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"
