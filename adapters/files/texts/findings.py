"""What is found in a document while it is read; every part of it has a bound."""

import hashlib
import re
import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from adapters.files import limits
from adapters.files.forks import Bounds
from adapters.files.texts.html import as_utc, clean_line, clean_text, safe_filename
from adapters.ports.documents import Extracted, ExtractedFile

_NOTE_CHARACTERS = 300
_NAME_CHARACTERS = 100
_MESSAGE_ID: Final = re.compile(r"<([^<>\s]+)>")


class Findings:
    """Takes what a reader finds, cleans it, and stops taking where a bound is.

    Args:
        folder: Takes the files found inside.
        cpu_seconds: Processor time of this process after which reading should end.
    """

    def __init__(self, folder: Path, cpu_seconds: float) -> None:
        self._folder = folder
        self._cpu_seconds = cpu_seconds
        self._pieces: list[str] = []
        self._room = limits.TEXT_BYTES
        self._truncated = False
        self._metadata: dict[str, str] = {}
        self._thread: dict[str, None] = {}
        self._files: list[ExtractedFile] = []
        self._left_out = 0
        self._files_room = limits.ATTACHED_BYTES
        self._notes: dict[str, None] = {}
        self._further_notes: set[str] = set()
        self.title: str | None = None
        self.author: str | None = None
        self.created_at: datetime | None = None
        self.modified_at: datetime | None = None
        self.pages: int | None = None
        self.has_rtf_alone = False
        """Its text is there as RTF and in no other form, and is not read yet."""

    @property
    def is_cut_off(self) -> bool:
        """Whether further text is dropped."""
        return self._truncated

    @property
    def is_late(self) -> bool:
        """Whether it is time to end."""
        return time.process_time() > self._cpu_seconds

    @property
    def is_full(self) -> bool:
        """Whether further files are only counted."""
        return len(self._files) >= limits.ATTACHED_FILES

    def add_text(self, piece: str) -> None:
        """Keep some more text, as far as there is room."""
        encoded = clean_text(piece).encode()
        if len(encoded) > self._room:
            self.cut_off(f"only the first {limits.TEXT_BYTES // limits.MB} MB of its text are kept")
        kept = encoded[: self._room]
        self._room -= len(kept)
        self._pieces.append(kept.decode(errors="ignore"))

    def cut_off(self, why: str) -> None:
        """Note that the document has more text than is kept."""
        self._truncated = True
        self.note(why)

    def describe(self, name: str, value: str | None) -> None:
        """Keep an entry of the document's metadata; blank ones are left out.

        What there is no room for is cut or left out, and stands in the text as a whole.
        """
        name = clean_line(name, _NAME_CHARACTERS)
        whole = " ".join(clean_text(value or "").split())
        cleaned = whole[: limits.METADATA_CHARACTERS]
        has_room = len(self._metadata) < limits.METADATA_ENTRIES
        if name and cleaned and (cleaned != whole or not has_room):
            self.add_text(f"{name}: {whole}\n\n")
        if name and cleaned and has_room:
            self._metadata.setdefault(name, cleaned)

    def belongs_to_thread(self, own: str, answered: Iterable[str], path: Path) -> None:
        """Keep the message ids of a mail.

        Args:
            own: Its header `Message-ID`.
            answered: Headers that name what it answers, the nearest first.
            path: Of its file, whose hash stands for an id that is missing.
        """
        ids = _MESSAGE_ID.findall(own)[:1] or [_id_of(path)]
        ids += [name for header in answered for name in _MESSAGE_ID.findall(header)]
        for name in ids:
            if len(self._thread) < limits.THREAD_IDS:
                self._thread.setdefault(clean_line(name, limits.MESSAGE_ID_CHARACTERS))

    def keep(self, filename: str | None, content: bytes) -> None:
        """Keep a file that was inside the document."""
        self.keep_pieces(filename, (content,), len(content))

    def keep_pieces(self, filename: str | None, pieces: Iterable[bytes], size: int) -> None:
        """Keep a file that was inside the document, piece by piece.

        Args:
            filename: As the document has it.
            pieces: Its bytes; what they raise passes through, and the file is not kept.
            size: How many there are, at most.
        """
        number = len(self._files) + 1
        if number > limits.ATTACHED_FILES or size > self._files_room:
            self._left_out += 1
            return
        path = self._folder / f"{number:04}"
        digest = hashlib.sha256()
        with path.open("wb") as file:
            for piece in pieces:
                file.write(piece)
                digest.update(piece)
            written = file.tell()
        self._files_room -= written
        name = safe_filename(filename, f"file {number}")
        self._files.append(ExtractedFile(name, path, written, digest.hexdigest()))

    def note(self, sentence: str) -> None:
        """Keep what could not be read although the document as a whole could."""
        cleaned = clean_line(sentence, _NOTE_CHARACTERS)
        if len(self._notes) < limits.NOTES:
            self._notes.setdefault(cleaned)
        elif cleaned not in self._notes:
            self._further_notes.add(cleaned)

    def extracted(self, media_type: str) -> Extracted:
        """Everything that was found."""
        notes = list(self._notes)
        if self._further_notes:
            notes.append(
                f"further remarks of this kind that are not shown: {len(self._further_notes):,}"
            )
        if self._left_out:
            notes.append(
                f"{self._left_out:,} of its files are not taken out: at most"
                f" {limits.ATTACHED_FILES:,} of together"
                f" {limits.ATTACHED_BYTES // limits.MB} MB are"
            )
        text = "".join(self._pieces).strip()
        if not text and not notes:
            notes.append("it holds no words")
        return Extracted(
            media_type=media_type,
            text=text,
            truncated=self._truncated,
            title=clean_line(self.title or "", limits.METADATA_CHARACTERS) or None,
            author=clean_line(self.author or "", limits.METADATA_CHARACTERS) or None,
            created_at=as_utc(self.created_at),
            modified_at=as_utc(self.modified_at),
            pages=self.pages,
            metadata=self._metadata,
            thread=list(self._thread),
            files=self._files,
            notes=notes,
        )


def _id_of(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256-{hashlib.file_digest(file, 'sha256').hexdigest()}"


NICENESS: Final = 5
"""By so much a process that reads documents gives way to the worker and other programs of its
machine: what starts new cases is short, and does not wait for documents of others."""


class ReadRequest(BaseModel):
    """One document to read."""

    path: Path
    filename: str | None
    folder: Path
    bounds: Bounds


class Answer(BaseModel):
    """Its outcome: what was found, or why nothing was."""

    extracted: Extracted | None = None
    needs_library: bool = False
    """It has to be read by a process that has the library for Office files."""
    unreadable: str | None = None
