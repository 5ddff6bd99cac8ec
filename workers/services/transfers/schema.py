"""The JSON Schema of `jobsettings.json`, for editors and for other programs.

`python -m workers.services.transfers.schema > docs/reference/jobsettings.schema.json` writes it.
"""

import json
import sys

from domain.transfers.job_settings import schema


def main() -> None:
    """Write the schema to standard output."""
    sys.stdout.write(json.dumps(schema(), indent=2) + "\n")


if __name__ == "__main__":
    main()
