"""Where the bytes of a document are: in a file, or in memory, as those of a small text are."""

import io
from pathlib import Path
from typing import BinaryIO

Content = Path | bytes


def opened(content: Content) -> BinaryIO:
    """The bytes from the first on."""
    return content.open("rb") if isinstance(content, Path) else io.BytesIO(content)
