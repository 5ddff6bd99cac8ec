"""The key of an import, project and task, and how it stands in workflow ids and blob names."""

from typing import Annotated, Final
from urllib.parse import quote, unquote

from pydantic import AfterValidator, StringConstraints

_PLAIN: Final = "._:@+-"
"""What an id may hold beside letters and digits and stands in a workflow id as it is."""
_ENCODED_CHARACTERS: Final = 384


def encoded(key: str) -> str:
    """An identifier as it stands in workflow ids and blob names: one segment, never read wrongly.

    ASCII letters, digits and `. _ : @ + -` stay as they are, other characters become `%XX`.
    """
    return quote(key, safe=_PLAIN).replace("~", "%7E")


def _check_encoded(key: str) -> str:
    if len(encoded(key)) > _ENCODED_CHARACTERS:
        raise ValueError(
            f"is longer than {_ENCODED_CHARACTERS} characters when it is encoded for a workflow id"
        )
    return key


Key = Annotated[
    str,
    StringConstraints(max_length=128, pattern=r"^[^\W_][\w.:@+ /\\#&(),'%!~*\[\]-]{0,127}$"),
    AfterValidator(_check_encoded),
]
"""An identifier chosen by a caller; `encoded`, it becomes part of workflow ids and blob names."""


def workflow_id(project_id: str, task_id: str) -> str:
    """The business key: one task is one workflow, however often it is delivered."""
    return f"import/{encoded(project_id)}/{encoded(task_id)}"


def key_in(workflow_id: str) -> tuple[str, str]:
    """Project and task of an import, as its message has them.

    Args:
        workflow_id: As `workflow_id` makes it.
    """
    _, project_id, task_id = workflow_id.split("/")
    return unquote(project_id), unquote(task_id)
