"""Mails as they travel (EML)."""

import contextlib
import email.errors
import email.policy
from collections.abc import Iterator
from datetime import datetime
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final

from adapters.files import limits
from adapters.files.formats import BYTE_ORDER_MARK
from adapters.files.texts.findings import Findings
from adapters.files.texts.html import html_text
from adapters.ports import UnreadableDocument

_AS_IT_CAME: Final = email.policy.default.clone(refold_source="none", max_line_length=0)
_CUT_OFF: Final = (
    email.errors.CloseBoundaryNotFoundDefect,
    email.errors.StartBoundaryNotFoundDefect,
)
_PARSED_CHARACTERS: Final = 10_000
_DESCRIBED: Final = ("To", "Cc", "Bcc", "Reply-To", "Sender", "Message-ID", "X-Mailer")
_SEALED: Final = {
    "application/pkcs7-mime": "S/MIME",
    "application/x-pkcs7-mime": "S/MIME",
    "multipart/encrypted": "OpenPGP",
}
_EXTENSIONS: Final = {"text/plain": ".txt", "text/html": ".html", "text/calendar": ".ics"}


def read_mail(path: Path, into: Findings) -> None:
    """Read header, body and attached files; an attached mail is a file of its own.

    Raises:
        UnreadableDocument: It is too large.
    """
    size = path.stat().st_size
    if size > limits.MAIL_BYTES:
        raise UnreadableDocument(
            f"the mail has {size:,} bytes; at most {limits.MAIL_BYTES:,} are read: send its"
            " attachments as documents of their own"
        )
    try:
        with path.open("rb") as file:
            if file.read(len(BYTE_ORDER_MARK)) != BYTE_ORDER_MARK:
                file.seek(0)
            mail = BytesParser(EmailMessage, policy=email.policy.default).parse(file)
    except RecursionError as error:
        raise UnreadableDocument(
            "the mail nests mails and parts so deeply that it cannot be read; send the inner mails"
            " as documents of their own"
        ) from error
    _describe(mail, into)
    into.belongs_to_thread(
        header(mail, "Message-ID"),
        [header(mail, "In-Reply-To"), " ".join(header(mail, "References").split()[::-1])],
        path,
    )
    bodies = _bodies(mail)
    into.add_text(_text(bodies, into))
    if mail.is_multipart() and any(isinstance(found, _CUT_OFF) for found in mail.defects):
        into.note("the mail is cut off: its last part does not end")
    for part in mail.walk():
        if how := _SEALED.get(part.get_content_type()):
            into.note(f"the mail is encrypted or signed as a whole ({how}): its words are not read")
    for part in _parts(mail):
        if into.is_late:
            into.note("not all attached files were taken out: time was over")
            break
        if part not in bodies:
            _keep(part, into)


def header(mail: MIMEPart, name: str) -> str:
    """A field of a mail's header; "" when it is missing.

    Very long fields come as they stand, since the library takes a time for them that grows with
    the square of their length; and so do some malformed ones that it stumbles over.
    """
    raw = next((value for field, value in mail.raw_items() if field.lower() == name.lower()), "")
    if len(raw) > _PARSED_CHARACTERS:
        return raw
    try:
        return str(mail.get(name, ""))
    except (email.errors.MessageError, ValueError, LookupError, AttributeError, TypeError):
        return raw


def mail_date(text: str) -> datetime | None:
    """A date of a mail's header; None where it is not one."""
    try:
        return parsedate_to_datetime(text)
    except (ValueError, OverflowError, TypeError):
        return None


def _describe(mail: MIMEPart, into: Findings) -> None:
    into.title, into.author = header(mail, "Subject"), header(mail, "From")
    into.created_at = mail_date(header(mail, "Date"))
    for name in _DESCRIBED:
        into.describe(name, header(mail, name))


def _bodies(mail: MIMEPart) -> list[MIMEPart]:
    """What a reader sees: the plain text, then the same as a page; each may be missing."""
    found = (mail.get_body((kind,)) for kind in ("plain", "html"))
    return [body for body in found if body is not None]


def _text(bodies: list[MIMEPart], into: Findings) -> str:
    for body in bodies:
        text = _decoded(body, into)
        if body.get_content_subtype() == "html":
            text = html_text(text)
        if text.strip():
            return text
    return ""


def _decoded(body: MIMEPart, into: Findings) -> str:
    try:
        return str(body.get_content())
    except LookupError:
        into.note("the mail's text is in an encoding that is not known: read as Western European")
        return _content(body).decode("cp1252", "replace")


def _parts(mail: MIMEPart) -> Iterator[MIMEPart]:
    """Every part that holds no other parts; an attached mail is one."""
    waiting = [mail]
    while waiting:
        part = waiting.pop()
        if part.get_content_maintype() == "multipart" and part.is_multipart():
            waiting += reversed(list(part.iter_parts()))
        else:
            yield part


def _keep(part: MIMEPart, into: Findings) -> None:
    content = _content(part)
    if not content.strip() and part.get_filename() is None:
        return
    into.keep(_filename(part), content)


def _content(part: MIMEPart) -> bytes:
    if part.is_multipart():
        # A mail within the mail, or the blocks of a delivery report.
        return b"\n".join(inner.as_bytes(policy=_AS_IT_CAME) for inner in part.iter_parts())
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def _filename(part: MIMEPart) -> str:
    with contextlib.suppress(email.errors.MessageError, ValueError, LookupError, AttributeError):
        if name := part.get_filename():
            return name
    if part.get_content_type() == "message/rfc822":
        inner = next(part.iter_parts(), None)
        subject = header(inner, "Subject") if isinstance(inner, MIMEPart) else ""
        return f"{subject.replace('/', '_') or 'mail'}.eml"
    return f"part{_EXTENSIONS.get(part.get_content_type(), '')}"
