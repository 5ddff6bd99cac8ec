"""Where the documents stand that docflow itself uploads."""

import re
import unicodedata

from domain.imports.places import uploads_of


def upload_name(project_id: str, task_id: str, filename: str, part: str = "") -> str:
    """Blob name of a document: plain ASCII, whatever the user's file is called.

    Args:
        project_id: Project of the import.
        task_id: Its task.
        filename: As the user knows the file.
        part: Folder below the task, where it has several documents.
    """
    ascii_name = unicodedata.normalize("NFKD", filename).encode("ascii", "ignore").decode("ascii")
    safe = re.sub(r"[^A-Za-z0-9._-]+", "_", ascii_name).strip("._")[-100:]
    return uploads_of(project_id, task_id) + "/".join(filter(None, (part, safe or "file")))
