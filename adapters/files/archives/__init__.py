"""Archives are made and taken apart file by file, within limits."""

from adapters.files.archives.files import ArchiveFiles

__all__ = ["ArchiveFiles"]
