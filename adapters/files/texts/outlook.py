"""Messages of Outlook (MSG)."""

import re
from collections.abc import Iterator
from datetime import datetime
from email.message import EmailMessage
from email.parser import HeaderParser
from email.utils import format_datetime
from functools import cached_property
from pathlib import Path
from typing import Final

from olefile import OleFileIO
from oxmsg.attachment import Attachment
from oxmsg.domain import constants as c
from oxmsg.domain import encodings
from oxmsg.domain import model as m
from oxmsg.properties import Properties
from oxmsg.storage import Storage

from adapters.files import limits
from adapters.files.encodings import encoding_of
from adapters.files.failures import damage
from adapters.files.texts.findings import Findings
from adapters.files.texts.html import as_utc, clean_line, clean_text, html_text, safe_filename
from adapters.ports.errors import UnreadableDocument

_DAMAGE: Final = (ValueError, OverflowError)
"""What the library raises about sizes and names that cannot be."""
_SEALED: Final = "IPM.Note.SMIME"
_CLEAR: Final = ".MultipartSigned"
_WITH_FIELDS: Final = ("IPM.Contact", "IPM.DistList", "IPM.Appointment", "IPM.Task", "IPM.Schedule")
"""Classes of messages that have fields of their own, such as numbers and places."""
_EMBEDDED: Final = "__substg1.0_3701000D"
"""Storage of an attached item; a file's bytes are a stream of another name."""
_DEPTH: Final = 8
"""Items within items that are taken out."""
_HEADER_CHARACTERS: Final = 1_000
_MESSAGE_ID: Final = re.compile(r"<[!-;=?-~]{1,500}>")
_MESSAGE: Final = m.MSG_HDR_OFFSET
_RECIPIENT: Final = m.RECIP_HDR_OFFSET
_ATTACHED: Final = m.ATTACH_HDR_OFFSET
_ITEM: Final = 24
"""Bytes before the properties of an attached item."""
_PROPERTIES: Final = "__properties_version1.0"
_TEXTS: Final = (c.PTYP_STRING, c.PTYP_STRING8)


class _TextProperties(Properties):
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


def read_outlook(path: Path, into: Findings) -> None:
    """Read properties, recipients, body and attached files.

    Raises:
        UnreadableDocument: It is too large.
    """
    size = path.stat().st_size
    if size > limits.MAIL_BYTES:
        raise UnreadableDocument(
            f"the Outlook message has {size:,} bytes; at most {limits.MAIL_BYTES:,} are read: send"
            " its attachments as documents of their own"
        )
    with damage("Outlook message", *_DAMAGE), OleFileIO(str(path)) as compound:
        storage = Storage.from_ole(compound)
        damaged = bool(getattr(compound, "parsing_issues", ()))
    properties = _TextProperties(storage, _MESSAGE)
    headers = HeaderParser().parsestr(properties.text(c.PID_TRANSPORT_MESSAGE_HEADERS))
    into.title = properties.text(c.PID_SUBJECT)
    into.author = str(headers.get("From") or _sender(properties))
    into.created_at = _moment_of(properties, c.PID_CLIENT_SUBMIT_TIME)
    into.modified_at = _moment_of(properties, c.PID_LAST_MODIFICATION_TIME)
    into.describe(
        "To",
        "; ".join(_recipients(storage, properties.encoding)) or properties.text(c.PID_DISPLAY_TO),
    )
    into.describe("Cc", properties.text(c.PID_DISPLAY_CC))
    into.describe("Bcc", properties.text(c.PID_DISPLAY_BCC))
    name = properties.text(c.PID_MESSAGE_CLASS)
    into.describe("Message class", name)
    own = properties.text(c.PID_INTERNET_MESSAGE_ID) or headers.get("Message-ID", "")
    into.describe("Message-ID", own)
    references = properties.text(c.PID_INTERNET_REFERENCES).split()
    into.belongs_to_thread(
        own,
        [properties.text(c.PID_IN_REPLY_TO_ID), " ".join(references[::-1])],
        path,
    )
    body = _body_of(properties)
    into.has_rtf_alone = not body and _has_rtf(properties)
    if not (into.has_rtf_alone or name or into.title or body):
        raise UnreadableDocument(
            "the Outlook message is damaged: nothing in it can be read; save it again as MSG or EML"
        )
    if damaged:
        into.note("the Outlook message is damaged in places: something in it may be missing")
    _note_class(name, into)
    if properties.is_guessed:
        into.note(
            "letters of the message are in no code page that it names:"
            f" read as {properties.encoding}"
        )
    into.add_text(body)
    for attached in storage.iter_attachment_storages():
        if into.is_late:
            into.note("not all attached files were taken out: time was over")
            break
        _keep_attached(attached, properties.encoding, into)


def _note_class(name: str, into: Findings) -> None:
    """Say what is not read of a message that is more, or less, than a mail."""
    if name.startswith(_SEALED) and not name.endswith(_CLEAR):
        into.note(
            "the mail is encrypted or signed as a whole (S/MIME): its words are in the file inside"
        )
    elif name.startswith(_WITH_FIELDS):
        into.note(f"it is an item of Outlook ({name}): of its fields, title and text are read")


def _sender(properties: _TextProperties) -> str:
    name = properties.text(c.PID_SENDER_NAME).strip()
    address = properties.text(c.PID_SENDER_EMAIL_ADDRESS) or properties.text(
        c.PID_SENDER_SMTP_ADDRESS
    )
    shown = f'"{name}" ' if name else ""
    return f"{shown}<{address}>" if address else properties.text(c.PID_SENT_REPRESENTING_NAME)


def _recipients(storage: Storage, encoding: str) -> Iterator[str]:
    for each in storage.iter_recipient_storages():
        recipient = _TextProperties(each, _RECIPIENT, encoding)
        address = recipient.text(c.PID_SMTP_ADDRESS) or recipient.text(c.PID_EMAIL_ADDRESS)
        if shown := f"{recipient.text(c.PID_DISPLAY_NAME)} <{address}>".strip():
            yield shown


def _moment_of(properties: _TextProperties, pid: int) -> datetime | None:
    """A property that is a time, in UTC; None where it is none."""
    try:
        value = properties.date_prop_value(pid)
    except OverflowError:
        return None
    # What stands there may be of any type.
    return value if isinstance(value, datetime) else None  # pyright: ignore[reportUnnecessaryIsInstance]


def _has_rtf(properties: _TextProperties) -> bool:
    """Whether the text is there as RTF."""
    return any(found.pid == c.PID_RTF_COMPRESSED for found in properties)


def _body_of(properties: _TextProperties) -> str:
    """The text; "" where it is there as RTF alone, or not at all."""
    if text := properties.text(c.PID_BODY):
        return text
    try:
        page = properties.binary_prop_value(c.PID_HTML)
    except KeyError:
        page = None
    if page:
        encoding, _ = encoding_of(page, properties.page)
        return html_text(page.decode(encoding, "replace"))
    if page := properties.text(c.PID_BODY_HTML):
        return html_text(page)
    return ""


def _keep_attached(attached: Storage, encoding: str, into: Findings) -> None:
    """Keep an attached file, or an attached item of Outlook as a mail with its own files.

    Args:
        attached: The file or item.
        encoding: Of texts of eight bits of the message.
        into: Takes it.
    """
    content, item = _content(attached), _item(attached)
    if content is not None:
        into.keep(_name(attached, encoding), content)
    elif item is not None:
        mail = _as_mail(item, into, _DEPTH)
        into.keep(_mail_name(mail), mail.as_bytes())
    else:
        into.note("an attached file is only named in the message, and not in it")


def _as_mail(item: Storage, into: Findings, depth: int) -> EmailMessage:
    properties = _TextProperties(item, _ITEM)
    body = _body_of(properties)
    if not body and _has_rtf(properties):
        into.note("the text of an attached Outlook item is there as RTF alone, and is not read")
    mail = EmailMessage()
    for name, value in _head(properties):
        mail[name] = clean_line(value, _HEADER_CHARACTERS)
    mail.set_content(clean_text(body))
    for attached in item.iter_attachment_storages():
        content, inner = _content(attached), _item(attached)
        if content is not None:
            mail.add_attachment(
                content,
                maintype="application",
                subtype="octet-stream",
                filename=safe_filename(_name(attached, properties.encoding), "file"),
            )
        elif inner is not None and depth > 1 and not into.is_late:
            mail.add_attachment(_as_mail(inner, into, depth - 1))
        else:
            into.note("not everything was taken out of an attached Outlook item")
    return mail


def _head(item: _TextProperties) -> Iterator[tuple[str, str]]:
    sent = as_utc(_moment_of(item, c.PID_CLIENT_SUBMIT_TIME))
    sender = item.text(c.PID_SENDER_NAME) or item.text(c.PID_SENT_REPRESENTING_NAME)
    yield "Subject", item.text(c.PID_SUBJECT)
    yield "From", sender
    yield "To", item.text(c.PID_DISPLAY_TO)
    if sent is not None:
        yield "Date", format_datetime(sent)
    if own := _MESSAGE_ID.search(item.text(c.PID_INTERNET_MESSAGE_ID)):
        yield "Message-ID", own[0]


def _mail_name(mail: EmailMessage) -> str:
    return f"{str(mail['Subject'] or '').replace('/', '_') or 'message'}.eml"


def _name(attached: Storage, encoding: str) -> str:
    properties = _TextProperties(attached, _ATTACHED, encoding)
    return properties.text(c.PID_ATTACH_LONG_FILENAME) or properties.text(c.PID_ATTACH_FILENAME)


def _content(attached: Storage) -> bytes | None:
    try:
        return Attachment(attached).file_bytes
    except KeyError:
        return None


def _item(attached: Storage) -> Storage | None:
    return next((each for each in attached.storages if each.name == _EMBEDDED), None)
