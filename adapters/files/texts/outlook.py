"""Messages of Outlook (MSG)."""

from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path
from typing import Final

from olefile import OleFileIO
from oxmsg.domain import constants as c
from oxmsg.storage import Storage

from adapters.files import limits
from adapters.files.failures import damage
from adapters.files.texts.findings import Findings
from adapters.files.texts.outlook_items import (
    body_of,
    has_rtf,
    keep_attached,
    moment_of,
)
from adapters.files.texts.outlook_properties import MESSAGE, RECIPIENT, TextProperties
from adapters.ports import UnreadableDocument

_DAMAGE: Final = (ValueError, OverflowError)
"""What the library raises about sizes and names that cannot be."""
_SEALED: Final = "IPM.Note.SMIME"
_CLEAR: Final = ".MultipartSigned"
_WITH_FIELDS: Final = ("IPM.Contact", "IPM.DistList", "IPM.Appointment", "IPM.Task", "IPM.Schedule")
"""Classes of messages that have fields of their own, such as numbers and places."""


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
    properties = TextProperties(storage, MESSAGE)
    headers = HeaderParser().parsestr(properties.text(c.PID_TRANSPORT_MESSAGE_HEADERS))
    into.title = properties.text(c.PID_SUBJECT)
    into.author = str(headers.get("From") or _sender(properties))
    into.created_at = moment_of(properties, c.PID_CLIENT_SUBMIT_TIME)
    into.modified_at = moment_of(properties, c.PID_LAST_MODIFICATION_TIME)
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
    body = body_of(properties)
    into.has_rtf_alone = not body and has_rtf(properties)
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
        keep_attached(attached, properties.encoding, into)


def _note_class(name: str, into: Findings) -> None:
    """Say what is not read of a message that is more, or less, than a mail."""
    if name.startswith(_SEALED) and not name.endswith(_CLEAR):
        into.note("the mail is encrypted or signed as a whole (S/MIME): its words are not read")
    elif name.startswith(_WITH_FIELDS):
        into.note(f"it is an item of Outlook ({name}): of its fields, title and text are read")


def _sender(properties: TextProperties) -> str:
    name = properties.text(c.PID_SENDER_NAME).strip()
    address = properties.text(c.PID_SENDER_EMAIL_ADDRESS) or properties.text(
        c.PID_SENDER_SMTP_ADDRESS
    )
    shown = f'"{name}" ' if name else ""
    return f"{shown}<{address}>" if address else properties.text(c.PID_SENT_REPRESENTING_NAME)


def _recipients(storage: Storage, encoding: str) -> Iterator[str]:
    for each in storage.iter_recipient_storages():
        recipient = TextProperties(each, RECIPIENT, encoding)
        address = recipient.text(c.PID_SMTP_ADDRESS) or recipient.text(c.PID_EMAIL_ADDRESS)
        if shown := f"{recipient.text(c.PID_DISPLAY_NAME)} <{address}>".strip():
            yield shown
