"""Documents of batches: `documents/*.toml` has what is read of each.

A case is a file, a text (`encoding`; `crlf` ends its lines as mails do) or the first bytes of a
file (`hex`, and how many `zeros` follow), and what is read: kind, subject, author, text, notes,
names and contents of the files inside; or why the document is refused. `holds` is a part of a text
that is long. A content that is long or no text is given by its digest.
"""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from adapters.files.limits import NOTES
from adapters.files.texts.pool import FileTexts
from adapters.ports.documents import Extracted
from adapters.ports.errors import UnreadableDocument
from tests.cases.corpus import Case, cases, files
from tests.support.files.reading import Reading

pytestmark = pytest.mark.asyncio(loop_scope="module")

FOLDER: Final = Path(__file__).parent / "documents"
CASES: Final = cases(FOLDER)
ITEM: Final = "an-attached-item-of-outlook-is-a-mail-with-its-files.msg"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def read(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Reading]:
    """Reads documents with processes that all cases share."""
    async with FileTexts() as texts:
        yield Reading(texts, tmp_path_factory.mktemp("documents"))


def content_of(case: Case) -> bytes:
    """The bytes that a case names or writes."""
    if "file" in case:
        return (FOLDER / case["file"]).read_bytes()
    if "hex" in case:
        return bytes.fromhex(case["hex"]) + bytes(case.get("zeros", 0))
    text = case["content"].replace("\n", "\r\n") if "crlf" in case else case["content"]
    return text.encode(case.get("encoding", "utf-8"))


def files_of(found: Extracted, case: Case) -> list[list[str]]:
    """Names and contents of the files inside, each as the case writes it."""
    digests = {content for _, content in case.get("files", ()) if content.startswith("sha256 ")}
    contents = [file.path.read_bytes() for file in found.files]
    shown = [f"sha256 {hashlib.sha256(each).hexdigest()[:16]}" for each in contents]
    return [
        [file.filename, digest if digest in digests else content.decode(errors="replace")]
        for file, content, digest in zip(found.files, contents, shown, strict=True)
    ]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_a_document_is_read(read: Reading, case: Case) -> None:
    content, filename = content_of(case), case.get("filename", case.get("file"))
    if "refused" in case:
        with pytest.raises(UnreadableDocument) as refused:
            await read(content, filename)
        assert str(refused.value) == case["refused"]
        return
    found = await read(content, filename)
    assert found.media_type == case["media_type"]
    assert (found.title or "") == case.get("subject", "")
    if "holds" in case:
        assert case["holds"] in found.text
    else:
        assert found.text == case.get("text", "")
    if "last_note" in case:
        assert (len(found.notes), found.notes[-1]) == (NOTES + 1, case["last_note"])
    else:
        assert [*found.notes] == case.get("notes", [])
    assert files_of(found, case) == case.get("files", [])
    for name in ("author", "pages", "created_at", "modified_at", "thread"):
        if name in case:
            assert getattr(found, name) == case[name]
    assert case.get("metadata", {}).items() <= found.metadata.items()


async def test_an_item_attached_to_an_outlook_message_is_a_mail_with_its_files(
    read: Reading,
) -> None:
    found = await read((FOLDER / ITEM).read_bytes())
    (item,) = found.files
    inner = await read(item.path.read_bytes(), item.filename)
    assert (item.filename, inner.title, inner.author, inner.text) == (
        *("inner_ Größe.eml", "inner: Größe", "Anna"),
        "schöne Grüße",
    )
    assert [(file.filename, file.path.read_bytes()) for file in inner.files] == [
        ("plan.txt", b"the plan")
    ]


async def test_every_file_has_an_outcome() -> None:
    named = {case["file"] for case in CASES.values() if "file" in case}
    assert files(FOLDER) == named | {ITEM}
