"""Tables of the `batches` pipeline."""

from adapters.database.batches.document_loads import SqlLoadStore
from adapters.database.batches.store import SqlBatchStore

__all__ = ["SqlBatchStore", "SqlLoadStore"]
