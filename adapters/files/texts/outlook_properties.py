"""Properties of Outlook messages, with texts of eight bits in the code page of their message."""

from functools import cached_property
from typing import Final

from oxmsg.domain import constants as c
from oxmsg.domain import encodings
from oxmsg.domain import model as m
from oxmsg.properties import Properties
from oxmsg.storage import Storage

from adapters.files.encodings import encoding_of
from adapters.ports import UnreadableDocument

MESSAGE: Final = m.MSG_HDR_OFFSET
RECIPIENT: Final = m.RECIP_HDR_OFFSET
ATTACHED: Final = m.ATTACH_HDR_OFFSET
ITEM: Final = 24
"""Bytes before the properties of an attached item."""
_PROPERTIES: Final = "__properties_version1.0"
_TEXTS: Final = (c.PTYP_STRING, c.PTYP_STRING8)


class TextProperties(Properties):
    """Properties of a message, or of what is in it.

    Args:
        storage: Where they are.
        offset: Bytes before them.
        encoding: Of the message that they are in, for texts of eight bits; None: their own.

    Raises:
        UnreadableDocument: They are missing.
    """

    def __init__(self, storage: Storage, offset: int, encoding: str | None = None) -> None:
        if not any(stream.name == _PROPERTIES for stream in storage.streams):
            raise UnreadableDocument(
                f"the Outlook message is damaged: {storage.path or 'it'} has no properties; save"
                " it again as MSG or EML"
            )
        super().__init__(storage, offset)
        self._outer = encoding

    @property
    def body_encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """One that keeps every byte."""
        return "latin-1"

    @property
    def _str_prop_encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "latin-1"

    def text(self, pid: int) -> str:
        """A property that is text; "" when it is missing, or only its name is there."""
        for found in self:
            if found.pid == pid and found.ptyp in _TEXTS:
                try:
                    value = self.str_prop_value(pid) or ""
                except (KeyError, UnicodeError):
                    return ""
                if found.ptyp == c.PTYP_STRING:
                    return value
                return value.encode("latin-1").decode(self.encoding, "replace")
        return ""

    @property
    def encoding(self) -> str:
        """Of texts of eight bits."""
        return self._found[0]

    @property
    def is_guessed(self) -> bool:
        """The message names no code page, or one in which its texts are not valid."""
        return not self._found[1]

    @property
    def page(self) -> str | None:
        """The code page that pages of HTML are in, by a name; None: it is not named."""
        return self._named(c.PID_INTERNET_CODEPAGE) or self._named(c.PID_MESSAGE_CODEPAGE)

    @cached_property
    def _found(self) -> tuple[str, bool]:
        if self._outer is not None:
            return self._outer, True
        content = b"\n".join(self._bytes())
        named = self._named(c.PID_MESSAGE_CODEPAGE) or self._named(c.PID_INTERNET_CODEPAGE)
        encoding, is_meant = encoding_of(content, named)
        return encoding, content.isascii() or (is_meant and named is not None)

    def _bytes(self) -> list[bytes]:
        found: list[bytes] = []
        for each in self:
            if each.ptyp == c.PTYP_STRING8:
                try:
                    found.append((self.str_prop_value(each.pid) or "").encode("latin-1"))
                except (KeyError, UnicodeError):
                    continue
        return found

    def _named(self, pid: int) -> str | None:
        page = self.int_prop_value(pid)
        if not isinstance(page, int):
            return None
        try:
            return encodings.encoding_from_codepage(page)
        except (m.UnrecognizedCodePageError, m.UnsupportedEncodingError):
            return f"cp{page}"
