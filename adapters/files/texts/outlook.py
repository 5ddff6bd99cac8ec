"""Messages of Outlook (MSG)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from olefile import OleFileIO
from oxmsg import Message
from oxmsg.domain import constants as c
from oxmsg.storage import Storage

from adapters.files import limits
from adapters.files.texts.findings import Findings
from adapters.files.texts.outlook_items import (
    body_of,
    has_rtf,
    keep_attached,
    moment_of,
    text_of,
)
from adapters.ports import UnreadableDocument

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
    with OleFileIO(str(path)) as compound:
        storage = Storage.from_ole(compound)
        damaged = bool(getattr(compound, "parsing_issues", ()))
    message = Message(storage)
    properties = message.properties
    headers = message.message_headers
    into.title, into.author = text_of(properties, c.PID_SUBJECT), message.sender
    into.created_at = moment_of(properties, c.PID_CLIENT_SUBMIT_TIME)
    into.modified_at = moment_of(properties, c.PID_LAST_MODIFICATION_TIME)
    into.describe("To", "; ".join(_recipients(message)) or text_of(properties, c.PID_DISPLAY_TO))
    into.describe("Cc", text_of(properties, c.PID_DISPLAY_CC))
    into.describe("Bcc", text_of(properties, c.PID_DISPLAY_BCC))
    into.describe("Message class", message.message_class)
    own = text_of(properties, c.PID_INTERNET_MESSAGE_ID) or headers.get("Message-ID", "")
    into.describe("Message-ID", own)
    references = text_of(properties, c.PID_INTERNET_REFERENCES).split()
    into.belongs_to_thread(
        own,
        [text_of(properties, c.PID_IN_REPLY_TO_ID), " ".join(references[::-1])],
        path,
    )
    body = body_of(properties)
    into.has_rtf_alone = not body and has_rtf(properties)
    if not (into.has_rtf_alone or message.message_class or into.title or body):
        raise UnreadableDocument(
            "the Outlook message is damaged: nothing in it can be read; save it again as MSG or EML"
        )
    if damaged:
        into.note("the Outlook message is damaged in places: something in it may be missing")
    _note_class(message.message_class or "", into)
    into.add_text(body)
    for attached in storage.iter_attachment_storages():
        if into.is_late:
            into.note("not all attached files were taken out: time was over")
            break
        keep_attached(attached, into)


def _note_class(name: str, into: Findings) -> None:
    """Say what is not read of a message that is more, or less, than a mail."""
    if name.startswith(_SEALED) and not name.endswith(_CLEAR):
        into.note("the mail is encrypted or signed as a whole (S/MIME): its words are not read")
    elif name.startswith(_WITH_FIELDS):
        into.note(f"it is an item of Outlook ({name}): of its fields, title and text are read")


def _recipients(message: Message) -> Iterator[str]:
    for recipient in message.recipients:
        try:
            yield f"{recipient.name} <{recipient.email_address}>".strip()
        except (KeyError, UnicodeError):
            continue
