"""XML parts of a package, parsed as a stream; no document type, no entities, bounded depth."""

from collections.abc import Callable, Iterable
from typing import NoReturn
from xml.parsers import expat

from adapters.files import limits
from adapters.files.package import damaged
from adapters.ports import UnreadableDocument


class XmlStream:
    """An expat parser that refuses what no office program writes."""

    def __init__(
        self,
        start: Callable[[str, dict[str, str]], None],
        end: Callable[[str], None],
        text: Callable[[str], None] | None = None,
        what: str = "workbook",
    ) -> None:
        """Set the handlers; names come without their namespace prefix.

        Args:
            start: Called with name and attributes of an element.
            end: Called with its name.
            text: Called with pieces of text.
            what: What people call the file.
        """
        self._what = what
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.buffer_size = 1 << 16
        self.parser.StartDoctypeDeclHandler = self._refuse_doctype
        self.parser.XmlDeclHandler = self._declared
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        if text is not None:
            self.parser.CharacterDataHandler = text
        self._on_start = start
        self._on_end = end
        self.fed = 0
        """Bytes given to the parser so far."""
        self.depth = 0
        """Open elements; within a start handler the element itself counts."""
        self.encoding = "utf-8"
        """As declared, lower case."""

    def feed(self, data: bytes, final: bool = False) -> None:
        """Parse some more.

        Raises:
            UnreadableDocument: It is not well-formed XML, or hostile.
        """
        self.fed += len(data)
        try:
            self.parser.Parse(data, final)
        except expat.ExpatError as error:
            raise UnreadableDocument(f"{damaged(self._what)} (XML: {error})") from error
        except (LookupError, ValueError) as error:  # what an odd declared encoding raises
            raise UnreadableDocument(f"{damaged(self._what)} (XML encoding: {error})") from error
        if self.fed - max(self.parser.CurrentByteIndex, 0) > limits.XML_TOKEN_BYTES and not final:
            raise UnreadableDocument(
                f"the {self._what} holds an XML tag of more than {limits.XML_TOKEN_BYTES:,} bytes"
            )

    def _declared(self, version: str, encoding: str | None, standalone: int) -> None:
        self.encoding = (encoding or "utf-8").lower()

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > limits.XML_DEPTH:
            raise UnreadableDocument(
                f"the {self._what} nests XML elements more than {limits.XML_DEPTH} deep"
            )
        self._on_start(name if ":" not in name else name.rpartition(":")[2], attributes)

    def _end(self, name: str) -> None:
        self._on_end(name if ":" not in name else name.rpartition(":")[2])
        self.depth -= 1

    def _refuse_doctype(self, *_: object) -> NoReturn:
        raise UnreadableDocument(
            f"the {self._what} holds an XML document type, which is not read;"
            " save it again with the program that it comes from"
        )


def parse(blocks: Iterable[bytes], stream: XmlStream) -> None:
    """Parse all of a part."""
    for block in blocks:
        stream.feed(block)
    stream.feed(b"", final=True)
