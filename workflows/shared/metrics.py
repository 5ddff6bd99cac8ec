"""Names of metrics that several layers count."""

from typing import Final

DOCUMENTS: Final = "docflow_documents_total"
DOCUMENTS_DESCRIPTION: Final = "Runs of documents that have ended"
IS_DOCUMENT: Final = "docflow.is_document"
"""What workflows ask their worker: whether a workflow type stands for documents, and is counted."""
