"""Texts brought to UTF-8, which their readers know alone."""

import codecs
import re
from pathlib import Path
from typing import Final
from xml.parsers import expat

from adapters.files.vectors.layers import Refused, Unsure
from workflows.jobs.vectors import Encoding, UnknownEncoding, encoding_of

_BLOCK: Final = 1 << 20
_HEAD: Final = 1 << 10
_DECLARED: Final = re.compile(rb"""^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']""")
_NAMED: Final = re.compile(r"""(<\?xml[^>]*?\sencoding\s*=\s*["'])[\w.:-]+""")
_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8-sig",
    **dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), "utf-16"),
}
_UTF8: Final = frozenset({"utf-8", "ascii"})


def in_utf8(path: Path, copy: Path, parameter: str | None) -> tuple[Path, str]:
    """Bring a text to UTF-8.

    Args:
        path: The file.
        copy: Written, if it is in another encoding.
        parameter: Its encoding, in place of what it says.

    Returns:
        The file in UTF-8, and which encoding it was in, with what says so.

    Raises:
        Unsure: It is not valid in that encoding, or there is no such encoding.
    """
    found = _encoding(path, parameter)
    decoder = codecs.getincrementaldecoder(found.codec)()
    done = 0
    with path.open("rb") as source, copy.open("w", encoding="utf-8", newline="") as target:
        try:
            while block := source.read(_BLOCK):
                text = decoder.decode(block)
                if found.codec not in _UTF8:
                    target.write(text if done else _NAMED.sub(r"\1utf-8", text, count=1))
                done += len(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            place = max(done, 0) + error.start + 1
            raise Unsure(
                "encoding",
                f"the file is not valid in {found} (byte {place:,} or near it). Which encoding is"
                " it in?",
            ) from error
    return (path if found.codec in _UTF8 else copy), str(found)


def check_xml(path: Path) -> None:
    """Check that XML is complete: GDAL reads the features before the place where it ends.

    Raises:
        Refused: It is not.
    """
    parser = expat.ParserCreate()
    try:
        with path.open("rb") as file:
            parser.ParseFile(file)
    except expat.ExpatError as error:
        raise Refused(f"the file is damaged or cut off (XML: {error}); save it again") from error


def _encoding(path: Path, parameter: str | None) -> Encoding:
    with path.open("rb") as file:
        head = file.read(_HEAD)
    mark = next((codec for mark, codec in _MARKS.items() if head.startswith(mark)), None)
    declared = _DECLARED.match(head)
    said = None if declared is None else declared[1].decode("ascii")
    try:
        if given := encoding_of(parameter, None, None, 0):
            return given
        if mark is not None:
            return Encoding(mark, "its byte order mark")
        if found := encoding_of(said, None, None, 0):
            return Encoding(found.codec, "its XML says so")
    except UnknownEncoding as error:
        raise Unsure("encoding", f"{error}. Which encoding is the file in?") from error
    return Encoding("utf-8", "as nothing says another")
