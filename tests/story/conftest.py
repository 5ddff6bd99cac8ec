"""What the story shares with other tests."""

from tests.e2e.conftest import open_folder
from tests.extend.conftest import site as package

__all__ = ["open_folder", "package"]
