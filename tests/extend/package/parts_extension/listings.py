"""A reader of listings: lines of text whose columns begin where their titles do."""

import re
from collections.abc import Iterator

from docflow.extend import InvalidDocument, TableReader


class Listings(TableReader):
    """Listings of a warehouse: titles, a line of dashes below each, then rows."""

    suffixes = (".lst",)

    def rows(self, sheet: str | None) -> Iterator[list[str]]:
        """Read the titles, then each row."""
        with self.path.open(encoding="ascii") as lines:
            titles, dashes = next(lines, ""), next(lines, "")
            columns = [found.span() for found in re.finditer("-+", dashes)]
            if not columns:
                raise InvalidDocument("line 2 has no dashes; send the listing as it was printed")
            yield [titles[begin:end].strip() for begin, end in columns]
            # So that rows have the line numbers of the file.
            yield []
            for line in lines:
                yield [line[begin:end].strip() for begin, end in columns]
