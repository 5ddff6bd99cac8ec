"""Mails as they travel (EML), and what programs write around them and into them.

Files that old programs wrote into the text of a mail.

Source: POSIX.1-2017, uuencode.

How files of mails begin and end: what programs write around a mail, and lines that are no field.

Source: RFC 4155 (mbox); the files of Apple Mail (EMLX) are described nowhere.
"""

import base64
import binascii
import contextlib
import email.errors
import email.policy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage, MIMEPart
from email.parser import BytesFeedParser
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final, cast

from adapters.files import limits
from adapters.files.encodings import encoding_of, label_of, page_encoding
from adapters.files.formats import BYTE_ORDER_MARK
from adapters.files.texts.findings import Findings
from adapters.files.texts.html import html_text
from adapters.files.texts.plain import entry_lines
from adapters.files.texts.signed import is_signed
from adapters.ports.errors import UnreadableDocument

_BEGIN: Final = re.compile(r"begin [0-7]{3,4} (\S.*)")
_END: Final = ("end", "END")


def take_out_uuencoded(text: str, into: Findings) -> str:
    """Keep the files, and give back the text without them; what is cut off stays in it."""
    if "begin " not in text:
        return text
    lines = text.split("\n")
    kept: list[str] = []
    place = 0
    while place < len(lines):
        begin = _BEGIN.fullmatch(lines[place].rstrip())
        found = _file(lines, place + 1) if begin else None
        if begin is None or found is None:
            kept.append(lines[place])
            place += 1
            continue
        content, place = found
        into.keep(begin[1], content)
    return "\n".join(kept)


def _file(lines: list[str], place: int) -> tuple[bytes, int] | None:
    """Bytes of a file and the line behind it; None: it does not end, or is none."""
    pieces: list[bytes] = []
    for number in range(place, len(lines)):
        line = lines[number].rstrip("\r")
        if line.strip() in _END:
            return b"".join(pieces), number + 1
        try:
            pieces.append(binascii.a2b_uu(line))
        except (binascii.Error, ValueError):
            return None
    return None


HEAD_BYTES: Final = 1 << 16
"""Mails may begin with many fields about the way they came."""
_BEFORE: Final = 1024
"""Bytes in which the header has to begin."""
_COUNT: Final = re.compile(rb"\s*(\d{1,12})[ \t]*\r?\n")
"""Of the bytes of a mail, which Apple Mail writes before it."""
_APPLE_END: Final = re.compile(rb"\s*(<\?xml\b|<plist\b|\Z)")
_FROM_LINE: Final = re.compile(rb">?From [^\n]*\n(?=[!-9;-~]{1,100}:)")
"""What programs that keep mails in one file write before each."""
_ANOTHER: Final = re.compile(
    rb"\n\r?\nFrom \S{1,320} [^\n]{0,60}\d:\d\d[^\n]{0,40}\d{4}[^\n]{0,12}\r?\n[!-9;-~]{1,100}:"
)
_BLOCK: Final = 1 << 20
_OVERLAP: Final = 1 << 12
_FIELD: Final = re.compile(rb"([!-9;-~]{1,100})([ \t]*):")
_PARTS_LINE: Final = re.compile(rb"content-type:\s*multipart/", re.IGNORECASE)
_HEADERS: Final = frozenset(
    {b"from", b"to", b"subject", b"date", b"message-id", b"received", b"mime-version"}
    | {b"return-path", b"content-type", b"delivered-to", b"cc", b"reply-to"}
)
_NAMES: Final = (".eml", ".emlx")


@dataclass(frozen=True, slots=True)
class MailBounds:
    """Where in its file a mail is."""

    start: int
    end: int | None
    """None: the file ends with it."""
    is_wrapped: bool
    """A program has written before it what only stands before mails."""


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a mail."""

    fields: bytes
    """Without the lines that are no field."""
    size: int
    """Bytes in the file."""
    known: frozenset[bytes]
    """Names of usual fields, in lower case."""
    others: tuple[bytes, ...] = ()
    """Lines between fields that are no field."""
    has_parts: bool = False
    runs_into_text: bool = False
    """No empty line ends it."""


def bounds_of(path: Path) -> MailBounds:
    """Where a mail begins and ends in its file."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        start = len(head) - len(head.removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n"))
        begin, end = start, None
        if counted := _COUNT.match(head):
            file.seek(counted.end() + int(counted[1]))
            if _APPLE_END.match(file.read(_BEFORE)):
                start, end = counted.end(), counted.end() + int(counted[1])
        if line := _FROM_LINE.match(head, start):
            start = line.end()
    return MailBounds(start, end, start > begin)


def holds_many(path: Path, start: int) -> bool:
    """Whether a file holds mails one after the other.

    Args:
        path: The file.
        start: Where its first mail begins.
    """
    with path.open("rb") as file:
        before = file.read(start)[-_BEFORE:]
        if b"From " not in before:
            return False
        while block := file.read(_BLOCK):
            if _ANOTHER.search(before + block):
                return True
            before = (before + block)[-_OVERLAP:]
    return False


def header_of(content: bytes) -> Header:
    """The header at the beginning of a mail, as far as it is there.

    Lines that are no field belong to the header when a usual field follows; else the text begins.
    """
    lines = _lines(content)
    names = [_name(line) for line in lines]
    last = max((place for place, name in enumerate(names) if name in _HEADERS), default=-1)
    fields: list[bytes] = []
    others: list[bytes] = []
    size = 0
    is_field, runs_into_text = False, False
    for place, (line, name) in enumerate(zip(lines, names, strict=True)):
        if not (line[:1] in b" \t" and fields):
            is_field = name is not None
        if not is_field and place > last:
            runs_into_text = True
            break
        size += len(line)
        if not is_field:
            others.append(line.strip())
        else:
            fields.append(line if name is None else _FIELD.sub(rb"\1:", line, count=1))
    return Header(
        b"".join(fields),
        size,
        frozenset(name for name in names[: last + 1] if name in _HEADERS),
        tuple(filter(None, others)),
        any(map(_PARTS_LINE.match, fields)),
        runs_into_text,
    )


def is_mail(head: bytes, bounds: MailBounds, filename: str | None) -> bool:
    """Whether a file begins with the header of a mail.

    Args:
        head: Its first bytes.
        bounds: Where the mail is, if it is one.
        filename: With the name of a mail one usual field is enough, else two are.
    """
    header = header_of(head[bounds.start :])
    is_named = bounds.is_wrapped or (filename or "").lower().endswith(_NAMES)
    if len(header.others) >= max(len(header.known), 1) or (header.runs_into_text and not is_named):
        return False
    if header.has_parts and not header.others:
        # A mail that was signed, as programs keep it, without the header that was not.
        return True
    return len(header.known) >= (1 if is_named else 2)


def _lines(content: bytes) -> list[bytes]:
    """Lines up to one that is empty or begins a part; the last one may be cut off."""
    lines = content.splitlines(keepends=True)
    if len(content) >= HEAD_BYTES - _BEFORE:
        lines.pop()
    # Some programs leave out the empty line before the first part.
    ends = (
        place
        for place, line in enumerate(lines)
        if not line.strip(b"\r\n") or line.startswith(b"--")
    )
    return lines[: next(ends, len(lines))]


def _name(line: bytes) -> bytes | None:
    """The name of a field, in lower case; None: the line is none, or continues one."""
    found = _FIELD.match(line)
    return found[1].lower() if found else None


_AS_IT_CAME: Final = email.policy.default.clone(refold_source="none", max_line_length=0)
_CUT_OFF: Final = (
    email.errors.CloseBoundaryNotFoundDefect,
    email.errors.StartBoundaryNotFoundDefect,
)
_DAMAGED: Final = (
    email.errors.InvalidBase64CharactersDefect,
    email.errors.InvalidBase64LengthDefect,
    email.errors.InvalidBase64PaddingDefect,
)
_STUMBLES: Final = (
    *(email.errors.MessageError, ValueError, LookupError),
    *(AttributeError, TypeError, OverflowError, RecursionError),
)
"""What the library raises about malformed fields."""
_BODY_BLOCK: Final = 1 << 16
_PARSED_CHARACTERS: Final = 10_000
"""Of a field; for longer ones the library takes a time that grows with the square of it."""
_DESCRIBED: Final = ("To", "Cc", "Bcc", "Reply-To", "Sender", "Message-ID", "X-Mailer")
_SEALED: Final = {
    "application/pkcs7-mime": "S/MIME",
    "application/x-pkcs7-mime": "S/MIME",
    "multipart/encrypted": "OpenPGP",
}
_ELSEWHERE: Final = "message/external-body"
_ARMOURED: Final = "-----BEGIN PGP MESSAGE-----"
_FOR_OLD_PROGRAMS: Final = "mime"
_BASE64_LINE: Final = re.compile(r"\s*[A-Za-z0-9+/]+={0,2}\s*")
_ENCODED_WORD: Final = re.compile(r"=\?([\w.:-]{1,40})\?(?=[bBqQ]\?)")
_WORD: Final = re.compile(r"\w+")
_HEADER_NAMES: Final = (("Content-Disposition", "filename"), ("Content-Type", "name"))
_EXTENSIONS: Final = {"text/plain": ".txt", "text/html": ".html", "text/calendar": ".ics"}


class _Bounded(email.policy.EmailPolicy):
    """Reads fields as far as that takes little time."""

    def header_fetch_parse(self, name: str, value: str) -> object:  # type: ignore[override]
        return super().header_fetch_parse(name, value[:_PARSED_CHARACTERS])


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
        _read(path, into)
    except RecursionError as error:
        raise UnreadableDocument(
            "the mail nests mails and parts so deeply that it cannot be read; send the inner mails"
            " as documents of their own"
        ) from error


def _read(path: Path, into: Findings) -> None:
    mail = _parsed_file(path, into)
    _describe(mail, into)
    into.belongs_to_thread(
        header(mail, "Message-ID"),
        [header(mail, "In-Reply-To"), " ".join(header(mail, "References").split()[::-1])],
        path,
    )
    bodies = _bodies(mail)
    into.add_text(_text(bodies, into))
    for words in _around_parts(mail):
        into.note("its text ends with words around its parts, which mail programs do not show")
        into.add_text(f"\n\n{words}")
    if mail.is_multipart() and any(isinstance(found, _CUT_OFF) for found in mail.defects):
        into.note("the mail is cut off: its last part does not end")
    for part in mail.walk():
        if how := _SEALED.get(part.get_content_type()):
            into.note(_sealed(part, how))
    for part in _parts(mail):
        if into.is_late:
            into.note("not all attached files were taken out: time was over")
            break
        if part not in bodies:
            _keep(part, into)


def _sealed(part: MIMEPart, how: str) -> str:
    if is_signed(_content(part)):
        return f"the mail is signed as a whole ({how}): its words are in a mail that is inside"
    return f"the mail is encrypted ({how}): its words are not read"


def _parsed_file(path: Path, into: Findings) -> EmailMessage:
    """Read the mail alone: programs write more around it, and bad lines into its header."""
    parser = BytesFeedParser(EmailMessage, policy=_Bounded())
    bounds = bounds_of(path)
    with path.open("rb") as file:
        file.seek(bounds.start)
        header = header_of(file.read(HEAD_BYTES))
        parser.feed(header.fields)
        file.seek(bounds.start + header.size)
        left = (path.stat().st_size if bounds.end is None else bounds.end) - file.tell()
        while left > 0 and (block := file.read(min(_BODY_BLOCK, left))):
            parser.feed(block)
            left -= len(block)
    for line in header.others:
        text = line.decode(encoding_of(line, None)[0], "replace")
        into.note(f"a line of the mail's header is no field, and stands in its text: {text}")
        into.add_text(f"{text}\n")
    return cast("EmailMessage", parser.close())


def header(mail: MIMEPart, name: str) -> str:
    """A field of a mail's header; "" when it is missing.

    Very long fields come as they stand, and so do some malformed ones that the library stumbles
    over.
    """
    raw = _raw(mail, name)
    repaired = _repaired(mail, raw)
    if len(raw) > _PARSED_CHARACTERS:
        return repaired
    try:
        return str(mail.get(name, "") if repaired == raw else _parsed(mail, name, repaired))
    except _STUMBLES:
        return repaired


def _raw(mail: MIMEPart, name: str) -> str:
    return next((value for field, value in mail.raw_items() if field.lower() == name.lower()), "")


def _repaired(mail: MIMEPart, raw: str) -> str:
    """A field with the letters that its bytes stand for, where they are not encoded as they have to
    be; and its encodings by the names that are known."""
    raw = _ENCODED_WORD.sub(lambda found: f"=?{label_of(found[1])}?", raw)
    content = raw.encode("utf-8", "surrogateescape")
    if content.isascii():
        return raw
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode(_header_encoding(mail)[0], "replace")


def _header_encoding(mail: MIMEPart) -> tuple[str, bool]:
    """The encoding of letters in a header, and whether its text names it: or else it is guessed."""
    values = (value.encode("utf-8", "surrogateescape") for _, value in mail.raw_items())
    content = b"\n".join(value for value in values if not value.isascii())
    if not content:
        return "ascii", True
    named = next(filter(None, (part.get_content_charset() for part in _parts(mail))), None)
    encoding, is_meant = encoding_of(content, named)
    return encoding, (is_meant and named is not None) or encoding == "utf-8"


def _parsed(mail: MIMEPart, name: str, raw: str) -> object:
    return mail.policy.header_fetch_parse(name, raw)


def mail_date(text: str) -> datetime | None:
    """A date of a mail's header; None where it is not one."""
    try:
        return parsedate_to_datetime(text)
    except (ValueError, OverflowError, TypeError):
        return None


def _describe(mail: MIMEPart, into: Findings) -> None:
    into.title, into.author = header(mail, "Subject"), header(mail, "From")
    into.created_at = mail_date(header(mail, "Date"))
    encoding, is_sure = _header_encoding(mail)
    if not is_sure:
        into.note(
            f"letters of the mail's header are in no encoding that it names: read as {encoding}"
        )
    for name in _DESCRIBED:
        into.describe(name, header(mail, name))


def _bodies(mail: MIMEPart) -> list[MIMEPart]:
    """What a reader sees: the plain text, then the same as a page; each may be missing."""
    found = (mail.get_body((kind,)) for kind in ("plain", "html"))
    bodies = [body for body in found if body is not None]
    if not bodies:
        # An invitation, for one, or a text in another form.
        bodies = [part for part in _parts(mail) if _is_shown(part)][:1]
    return bodies


def _around_parts(mail: MIMEPart) -> Iterator[str]:
    """Text before the first part and behind the last one, but for what programs write there."""
    for part in mail.walk():
        before, behind = part.preamble, part.epilogue
        if before and before.strip() and _FOR_OLD_PROGRAMS not in before.casefold():
            yield before.strip()
        if behind and behind.strip():
            yield behind.strip()


def _is_shown(part: MIMEPart) -> bool:
    return part.get_content_maintype() == "text" and not part.is_attachment()


def _text(bodies: list[MIMEPart], into: Findings) -> str:
    """The text, and the page behind it where that has words of its own."""
    texts: list[str] = []
    known: set[str] = set()
    for body in bodies:
        text = _decoded(body, into)
        if body.get_content_subtype() == "html":
            text = html_text(text)
        elif body.get_content_subtype() == "calendar":
            text = "\n".join(entry_lines(text.encode(), into))
        else:
            text = take_out_uuencoded(text, into)
            if _ARMOURED in text:
                into.note("a part of the text is encrypted (OpenPGP): its words are not read")
        words = set(_WORD.findall(text.casefold()))
        if text.strip() and (not texts or words - known):
            texts.append(text.strip())
            known |= words
    return "\n\n".join(texts)


def _decoded(body: MIMEPart, into: Findings) -> str:
    content = _content(body)
    declared = body.get_content_charset()
    if body.get_content_subtype() == "html" and declared in (None, "us-ascii"):
        declared = page_encoding(content) or declared
    encoding, is_meant = encoding_of(content, declared)
    further = ""
    if _is_damaged(body):
        into.note("the mail's text is damaged: not all of it is the base64 that it should be")
        further = "\n".join(("", *_split(body)[1]))
    if not is_meant:
        into.note(f"the mail's text is not in the encoding that it names: read as {encoding}")
    return content.decode(encoding, "replace").replace("\r\n", "\n") + further


def _is_damaged(part: MIMEPart) -> bool:
    return any(isinstance(found, _DAMAGED) for found in part.defects)


def _split(part: MIMEPart) -> tuple[list[str], list[str]]:
    """Lines of base64, and those behind them: mailing lists write their own there."""
    lines = str(part.get_payload()).splitlines()
    count = max((n for n, line in enumerate(lines, 1) if _BASE64_LINE.fullmatch(line)), default=0)
    return lines[:count], lines[count:]


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
    if part.get_content_type() == _ELSEWHERE:
        place = header(part, "Content-Type")
        into.note(f"an attached file is elsewhere, and is not read: {place}")
        into.add_text(f"\n\n{place}")
        return
    content = _content(part)
    if not content.strip() and part.get_filename() is None:
        return
    if _is_damaged(part):
        into.note(f"an attached file is damaged, not all of it is base64: {_filename(part)}")
    # To read a name takes a while, and those that are only counted need none.
    into.keep(None if into.is_full else _filename(part), content)


def _content(part: MIMEPart) -> bytes:
    if part.is_multipart():
        # A mail within the mail, or the blocks of a delivery report.
        content = b"\n".join(inner.as_bytes(policy=_AS_IT_CAME) for inner in part.iter_parts())
        return _unwrapped(part, content)
    content = part.get_payload(decode=True)
    if _is_damaged(part):
        with contextlib.suppress(binascii.Error):
            lines = "".join(_split(part)[0]).encode("ascii", "ignore")
            return binascii.a2b_base64(lines + b"===")
    return content if isinstance(content, bytes) else b""


def _unwrapped(part: MIMEPart, content: bytes) -> bytes:
    """A mail within the mail, also where it was encoded, which the standard forbids."""
    if header(part, "Content-Transfer-Encoding").strip().lower() == "base64":
        with contextlib.suppress(binascii.Error):
            # Nothing of a mail that was not encoded can be read in this way: it holds a colon.
            return base64.b64decode(b"".join(content.split()), validate=True)
    return content


def _filename(part: MIMEPart) -> str:
    with contextlib.suppress(*_STUMBLES):
        if name := _given_name(part):
            return name
    if part.get_content_type() == "message/rfc822":
        inner = next(part.iter_parts(), None)
        subject = header(inner, "Subject") if isinstance(inner, MIMEPart) else ""
        return f"{subject.replace('/', '_') or 'mail'}.eml"
    return f"part{_EXTENSIONS.get(part.get_content_type(), '')}"


def _given_name(part: MIMEPart) -> str | None:
    name = part.get_filename()
    if name is None or "\ufffd" not in name:
        return name
    for field, parameter in _HEADER_NAMES:
        repaired = _repaired(part, _raw(part, field))
        params: Mapping[str, str] = getattr(_parsed(part, field, repaired), "params", {})
        if found := params.get(parameter):
            return found
    return name
