"""Files that are embedded in Word documents and workbooks of 1997 to 2003.

Source: [MS-DOC] 2.1.10 (object pool), [MS-XLS] 2.1.7.4 (embedding storages), of Microsoft's open
specifications.
"""

import re
from pathlib import Path
from types import MappingProxyType
from typing import Final

from adapters.files import limits
from adapters.files.compound import CompoundObjects, DamagedCompound, Streams
from adapters.files.texts.embedded import NATIVE, WHOLE_FILES, keep_native
from adapters.files.texts.findings import Findings
from adapters.files.texts.kinds import TextKind

_PLACES: Final = MappingProxyType(
    {
        TextKind.DOC: ("objectpool", re.compile(".*")),
        TextKind.XLS: (None, re.compile("mbd.*")),
    }
)
"""The storage that holds the objects, and how theirs are called."""
_NOT_TAKEN: Final = "not taken out: send them as documents"


def take_out_of_old_office(path: Path, kind: TextKind, into: Findings) -> None:
    """Keep the files that are embedded; how many cannot be taken out is noted.

    What an object of another program is made of is taken out where it is one file: that of a
    package, or the one that the program has written. An object that is spread over several streams,
    as those of old Office programs are, is a part of this file and no file of its own.
    """
    left = damaged = 0
    pool, name = _PLACES[kind]
    with path.open("rb") as file:
        try:
            objects = CompoundObjects(file)
            for number, streams in enumerate(objects.within(pool, name), start=1):
                try:
                    left += not _take_out(objects, streams, f"oleObject{number}.bin", into)
                except DamagedCompound:
                    damaged += 1
        except DamagedCompound:
            into.note(f"files that are embedded in it are {_NOT_TAKEN}: it is damaged there")
    if damaged:
        into.note(f"{damaged:,} files that are embedded in it are damaged, and {_NOT_TAKEN}")
    if left:
        into.note(f"{left:,} objects of other programs that are embedded in it are {_NOT_TAKEN}")


def _take_out(objects: CompoundObjects, streams: Streams, name: str, into: Findings) -> bool:
    """Whether the object was one file."""
    if NATIVE in streams:
        keep_native(name, objects.content(streams[NATIVE], limits.ATTACHED_BYTES), into)
        return True
    whole = next((streams[each] for each in WHOLE_FILES if each in streams), None)
    if whole is not None:
        into.keep(name, objects.content(whole, limits.ATTACHED_BYTES))
    return whole is not None
