"""What is inside messages of Outlook: properties, bodies, attached files and items."""

import re
from collections.abc import Iterator
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Final

from oxmsg.attachment import Attachment
from oxmsg.domain import constants as c
from oxmsg.storage import Storage

from adapters.files.encodings import encoding_of
from adapters.files.texts.findings import Findings
from adapters.files.texts.html import as_utc, clean_line, clean_text, html_text, safe_filename
from adapters.files.texts.outlook_properties import ATTACHED, ITEM, TextProperties

_EMBEDDED: Final = "__substg1.0_3701000D"
"""Storage of an attached item; a file's bytes are a stream of another name."""
_DEPTH: Final = 8
"""Items within items that are taken out."""
_HEADER_CHARACTERS: Final = 1_000
_MESSAGE_ID: Final = re.compile(r"<[!-;=?-~]{1,500}>")


def moment_of(properties: TextProperties, pid: int) -> datetime | None:
    """A property that is a time, in UTC; None where it is none."""
    try:
        value = properties.date_prop_value(pid)
    except OverflowError:
        return None
    # What stands there may be of any type.
    return value if isinstance(value, datetime) else None  # pyright: ignore[reportUnnecessaryIsInstance]


def has_rtf(properties: TextProperties) -> bool:
    """Whether the text is there as RTF."""
    return any(found.pid == c.PID_RTF_COMPRESSED for found in properties)


def body_of(properties: TextProperties) -> str:
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


def keep_attached(attached: Storage, encoding: str, into: Findings) -> None:
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
    properties = TextProperties(item, ITEM)
    body = body_of(properties)
    if not body and has_rtf(properties):
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


def _head(item: TextProperties) -> Iterator[tuple[str, str]]:
    sent = as_utc(moment_of(item, c.PID_CLIENT_SUBMIT_TIME))
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
    properties = TextProperties(attached, ATTACHED, encoding)
    return properties.text(c.PID_ATTACH_LONG_FILENAME) or properties.text(c.PID_ATTACH_FILENAME)


def _content(attached: Storage) -> bytes | None:
    try:
        return Attachment(attached).file_bytes
    except KeyError:
        return None


def _item(attached: Storage) -> Storage | None:
    return next((each for each in attached.storages if each.name == _EMBEDDED), None)
