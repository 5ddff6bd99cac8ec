"""Forty documents of a case, as a person would send them; the demo and the tests load them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from stack.sample_files import Letter, locked_word, mail, outlook_message, pdf, word
from workflows.batches.loads import DocumentProcessed, DocumentState, Relation, RelationKind
from workflows.batches.names import BatchKey

FOUND_INSIDE: Final = {DocumentState.LOADED: 5, DocumentState.DUPLICATE: 3}
"""What becomes of the files in them, which are documents of their own."""
_START: Final = datetime(2024, 3, 4, 8, 30, tzinfo=UTC)
_ANNA, _BEN, _CARLA = (
    "Anna Keller <anna.keller@builder.example>",
    "Ben Okafor <ben.okafor@owner.example>",
    "Carla Núñez <carla.nunez@designer.example>",
)
_WEATHER: Final = ("dry, 14 °C", "rain since 10:00", "frost until 09:00", "wind, crane stopped")
_TRADES: Final = ("formwork", "reinforcement", "earthworks", "drainage", "steel", "cladding")


@dataclass(frozen=True, slots=True)
class SampleDocument:
    """One file, and its description when it is sent."""

    document_id: str
    path: Path
    tags: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    ends: DocumentState = DocumentState.LOADED
    """What becomes of it when documents are loaded in this order."""

    def event(self, key: BatchKey, blob_name: str) -> DocumentProcessed:
        """The message that announces it.

        Args:
            key: Of its batch.
            blob_name: Where its file has been put.
        """
        return DocumentProcessed(
            case_id=key.case_id,
            batch_id=key.batch_id,
            document_id=self.document_id,
            blob_name=blob_name,
            filename=self.path.name,
            tags=self.tags,
            relations=self.relations,
        )


@dataclass(frozen=True, slots=True)
class _Sample:
    filename: str
    content: bytes
    tags: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    ends: DocumentState = DocumentState.LOADED


def sample_documents(folder: Path) -> list[SampleDocument]:
    """Write forty documents into a folder: the same bytes every time.

    PDF and Word documents, mails that answer each other and carry files, messages of Outlook and
    texts in several encodings. Two have the bytes of others, and two cannot be read.

    Args:
        folder: Takes the files; made when it is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    documents: list[SampleDocument] = []
    for number, sample in enumerate(_samples(), start=1):
        path = folder / sample.filename
        path.write_bytes(sample.content)
        documents.append(
            SampleDocument(
                f"DOC-{number:03}", path, sample.tags, sample.relations, ends=sample.ends
            )
        )
    return documents


def _samples() -> Iterator[_Sample]:
    yield from _diaries()
    yield from _change_orders()
    yield from _letters()
    yield from _outlook_messages()
    yield from _texts()
    yield from _copies()
    yield from _poison()


def _diary(day: int) -> bytes:
    date = _START + timedelta(days=day)
    pages = [
        [
            f"Site diary no. {day + 1:03}",
            f"Date: {date:%d %B %Y}",
            f"Weather: {_WEATHER[day % len(_WEATHER)]}",
            f"Crew: {8 + day % 5} workers, {2 + day % 3} machines",
        ],
        [
            f"Trade: {_TRADES[day % len(_TRADES)]}",
            f"Axis {chr(65 + day % 8)}/{1 + day % 9} finished; delivery of concrete C30/37.",
            "Signed: Keller (site manager)",
        ],
    ]
    return pdf(f"Site diary {day + 1:03}", "Anna Keller", date, pages)


def _diaries() -> Iterator[_Sample]:
    for day in range(10):
        yield _Sample(f"site-diary-{day + 1:03}.pdf", _diary(day), ("Diary",))


def _change_orders() -> Iterator[_Sample]:
    for number in range(1, 9):
        trade = _TRADES[number % len(_TRADES)]
        written_at = _START + timedelta(days=3 * number)
        before = (
            (Relation(related_id=f"DOC-{9 + number:03}", kind=RelationKind.RELATED),)
            if number > 1
            else ()
        )
        yield _Sample(
            f"change-order-{number:02}.docx",
            word(
                f"Change order {number:02}: {trade}",
                "Carla Núñez",
                written_at,
                [
                    f"The owner instructs additional {trade} in area {100 + number}.",
                    f"The completion date moves by {number % 4} working days.",
                ],
                [("Item", "Amount"), (trade, f"{1_250 * number:,} EUR"), ("Overhead", "8 %")],
            ),
            ("Change order", trade),
            before,
        )


def _letters() -> Iterator[_Sample]:
    """Three threads; every answer names all mails before it."""
    subjects = ("Late delivery of gate 4", "Question about drawing A-201", "Handover of stair 2")
    number = 0
    for place, (subject, length) in enumerate(zip(subjects, (4, 3, 3), strict=True)):
        thread: list[str] = []
        for turn in range(length):
            number += 1
            people = (_ANNA, _BEN) if place != 1 else (_ANNA, _CARLA)
            letter = Letter(
                message_id=f"thread{place + 1}.mail{turn + 1}@builder.example",
                sender=people[turn % 2],
                recipient=people[1 - turn % 2],
                subject=f"Re: {subject}" if turn else subject,
                sent_at=_START + timedelta(days=place, hours=5 * turn),
                lines=[
                    "Dear colleague,",
                    f"regarding “{subject}”: this is mail {turn + 1} of {length}.",
                    "Grüße vom Bau" if turn % 2 else "Kind regards",
                ],
                answers=tuple(thread),
                files=_enclosed(place) if turn == 0 else {},
            )
            thread.append(letter.message_id)
            yield _Sample(f"mail-{number:02}.eml", mail(letter), ("Correspondence",))


def _enclosed(place: int) -> dict[str, bytes]:
    photograph = b"\xff\xd8\xff\xe0" + bytes(range(256)) * 8 + b"\xff\xd9"
    return {
        f"enclosure {place + 1}.pdf": pdf(
            f"Enclosure {place + 1}", "Ben Okafor", _START, [["Delivery note, signed"]]
        ),
        "Foto Tor 4.jpg": photograph,
    }


def _outlook_messages() -> Iterator[_Sample]:
    for number in (1, 2):
        letter = Letter(
            message_id=f"outlook{number}@owner.example",
            sender=_BEN,
            recipient=_ANNA,
            subject=f"Notice of delay no. {number}",
            sent_at=_START + timedelta(days=20 + number),
            lines=["To whom it may concern,", f"notice no. {number}: 5 days, gate 4 („Tor“)."],
            # The second answers a mail that came as EML.
            answers=("thread1.mail1@builder.example",) if number == 2 else (),
            files={"programme.txt": b"A-100 excavation; A-200 foundations\n"},
        )
        yield _Sample(f"notice-of-delay-{number}.msg", outlook_message(letter), ("Notice",))


def _texts() -> Iterator[_Sample]:
    minutes = "Protokoll der Baubesprechung: Größe der Öffnungen geprüft, Türen fehlen noch.\n"
    for name, text, encoding in (
        ("minutes-utf8.txt", minutes, "utf-8"),
        ("minutes-bom.txt", f"{minutes}Punkt 2\n", "utf-8-sig"),
        ("minutes-utf16.txt", f"{minutes}Punkt 3\n", "utf-16"),
        ("minutes-windows.txt", f"{minutes}Punkt 4: für über schöne Grüße\n", "cp1252"),
        ("protokol-cyrillic.txt", "Протокол совещания: бетон доставлен в срок.\n", "utf-8"),
        ("readme.txt", "List of drawings: A-201, A-202, A-203\n", "ascii"),
    ):
        yield _Sample(name, text.encode(encoding), ("Minutes",))


def _copies() -> Iterator[_Sample]:
    yield _Sample("copy of site-diary-003.pdf", _diary(2), ends=DocumentState.DUPLICATE)
    yield _Sample(
        "drawings.txt",
        b"List of drawings: A-201, A-202, A-203\n",
        ends=DocumentState.DUPLICATE,
    )


def _poison() -> Iterator[_Sample]:
    yield _Sample("cut-off.pdf", _diary(11)[:700], ends=DocumentState.FAILED)
    yield _Sample("locked.docx", locked_word(), ends=DocumentState.FAILED)
