"""Messages of Outlook (MSG)."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from olefile import OleFileIO
from oxmsg import Message
from oxmsg.attachment import Attachment
from oxmsg.domain import constants as c
from oxmsg.properties import Properties
from oxmsg.storage import Storage

from adapters.files import limits
from adapters.files.texts.findings import Findings
from adapters.files.texts.html import clean_text, html_text
from adapters.ports import UnreadableDocument

_EMBEDDED: Final = "__substg1.0_3701000D"
"""Storage of an attached item; a file's bytes are a stream of another name."""
_EMBEDDED_HEADER_BYTES: Final = 24
_RECIPIENTS: Final = 100


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
    into.title, into.author = _text_of(properties, c.PID_SUBJECT), message.sender
    into.created_at = _moment(properties, c.PID_CLIENT_SUBMIT_TIME)
    into.modified_at = _moment(properties, c.PID_LAST_MODIFICATION_TIME)
    into.describe("To", "; ".join(_recipients(message)) or _text_of(properties, c.PID_DISPLAY_TO))
    into.describe("Cc", _text_of(properties, c.PID_DISPLAY_CC))
    into.describe("Bcc", _text_of(properties, c.PID_DISPLAY_BCC))
    into.describe("Message class", message.message_class)
    own = _text_of(properties, c.PID_INTERNET_MESSAGE_ID) or headers.get("Message-ID", "")
    into.describe("Message-ID", own)
    references = _text_of(properties, c.PID_INTERNET_REFERENCES).split()
    into.belongs_to_thread(
        own,
        [_text_of(properties, c.PID_IN_REPLY_TO_ID), " ".join(references[::-1])],
        path,
    )
    body = _body(properties, into)
    if not (message.message_class or into.title or body):
        raise UnreadableDocument(
            "the Outlook message is damaged: nothing in it can be read; save it again as MSG or EML"
        )
    if damaged:
        into.note("the Outlook message is damaged in places: something in it may be missing")
    into.add_text(body)
    for attached in storage.iter_attachment_storages():
        if into.is_late:
            into.note("not all attached files were taken out: time was over")
            break
        _keep(attached, into)


def _text_of(properties: Properties, pid: int) -> str:
    """A property that is text; "" when it is missing, or only its name is there."""
    try:
        return properties.str_prop_value(pid) or ""
    except (KeyError, UnicodeError):
        return ""


def _moment(properties: Properties, pid: int) -> datetime | None:
    try:
        value = properties.date_prop_value(pid)
    except OverflowError:
        return None
    # What stands there may be of any type.
    return value if isinstance(value, datetime) else None  # pyright: ignore[reportUnnecessaryIsInstance]


def _recipients(message: Message) -> Iterator[str]:
    for recipient in message.recipients[:_RECIPIENTS]:
        try:
            yield f"{recipient.name} <{recipient.email_address}>".strip()
        except (KeyError, UnicodeError):
            continue


def _body(properties: Properties, into: Findings) -> str:
    if text := _text_of(properties, c.PID_BODY):
        return text
    try:
        page = properties.binary_prop_value(c.PID_HTML)
    except KeyError:
        page = None
    if page:
        return html_text(page.decode(properties.body_encoding, "replace"))
    if page := _text_of(properties, c.PID_BODY_HTML):
        return html_text(page)
    if any(found.pid == c.PID_RTF_COMPRESSED for found in properties):
        into.note("the message's text is there as RTF only, which is not read")
    return ""


def _keep(attached: Storage, into: Findings) -> None:
    attachment = Attachment(attached)
    properties = attachment.properties
    name = _text_of(properties, c.PID_ATTACH_LONG_FILENAME) or _text_of(
        properties, c.PID_ATTACH_FILENAME
    )
    try:
        content = attachment.file_bytes
    except KeyError:
        content = None
    if content is not None:
        into.keep(name, content)
        return
    item = _embedded(attached)
    if item is None:
        into.note("an attached file is only named in the message, and not in it")
        return
    # An item of Outlook is not a file by itself: what can be read in it is kept.
    subject = _text_of(item, c.PID_SUBJECT)
    into.keep(f"{subject.replace('/', '_') or 'message'}.txt", _as_text(item, into).encode())
    into.note("an attached Outlook item is kept as text; files in it stay in the message")


def _embedded(attached: Storage) -> Properties | None:
    for storage in attached.storages:
        if storage.name == _EMBEDDED:
            return Properties(storage, properties_header_offset=_EMBEDDED_HEADER_BYTES)
    return None


def _as_text(item: Properties, into: Findings) -> str:
    sent = _moment(item, c.PID_CLIENT_SUBMIT_TIME)
    head = {
        "From": _text_of(item, c.PID_SENDER_NAME) or _text_of(item, c.PID_SENT_REPRESENTING_NAME),
        "To": _text_of(item, c.PID_DISPLAY_TO),
        "Date": sent.isoformat() if sent else "",
        "Subject": _text_of(item, c.PID_SUBJECT),
    }
    lines = [f"{name}: {value}" for name, value in head.items() if value]
    return "\n".join([*lines, "", clean_text(_body(item, into))])
