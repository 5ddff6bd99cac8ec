"""Names of failures as they stand in a workflow's history (`ApplicationError.type`).

Transient            the world may be well again in a moment
Throttling           the world asked us to slow down, and often says for how long
Permanent            trying again cannot help
  UnreadableDocument   the file is not what it says, damaged, encrypted or hostile
  InvalidDocument      the file can be read but lacks what its type requires
  MissingBlob          the file is not in the blob store
"""

from typing import Final

TRANSIENT: Final = "Transient"
THROTTLING: Final = "Throttling"
PERMANENT: Final = "Permanent"
UNREADABLE_DOCUMENT: Final = "UnreadableDocument"
INVALID_DOCUMENT: Final = "InvalidDocument"
MISSING_BLOB: Final = "MissingBlob"
IMPORT_FAILED: Final = "ImportFailed"
