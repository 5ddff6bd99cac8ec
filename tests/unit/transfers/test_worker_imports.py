"""What a worker of transfers loads before it knows what its jobs do."""

import subprocess
import sys
from typing import Final

CODE: Final = """
import sys
import workers.shared.process
from workers.transfers.register import TRANSFERS
import workers.transfers.resources, workers.transfers.resources, workers.transfers.resources
TRANSFERS.workflows()
try:
    TRANSFERS.activities(None, None)
except AttributeError:
    pass
print(*sys.modules)
"""
UNUSED: Final = {
    "aiosmtplib",
    "asyncssh",
    "chardet",
    "httpx",
    "stream_unzip",
    "stream_zip",
    "xlsxwriter",
}
"""Of partners, actions and pipelines that this worker may never meet: 24 MB of memory."""


def test_libraries_of_single_protocols_and_formats_are_loaded_when_they_are_used() -> None:
    asked = subprocess.run([sys.executable, "-c", CODE], capture_output=True, check=True, text=True)
    loaded = set(asked.stdout.split())
    assert {"activities.transfers.write_file", "adapters.places.partner_places"} <= loaded
    assert not loaded & UNUSED
