"""Names in ZIP archives that do not say how they are encoded, as `Extract` reads them."""

import io
import struct
import zipfile
import zlib
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.transfers.archives import ArchivePorts, ArchiveSteps
from adapters.files.archives import ArchiveFiles
from tests.support.imports.activities import environment
from tests.support.transfers.actions import Endpoints
from tests.support.transfers.secrets import PlantedSecrets
from workflows.transfers.settings import Extract

DOCUMENTS = Path(__file__).parents[2] / "cases" / "documents"
UNMARKED = "utf-8"


def zip_of(*names: bytes, marked: bytes | None = None) -> bytes:
    """An archive whose names are these bytes; `marked`: what Info-ZIP adds to the first."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for number, name in enumerate(names):
            info = zipfile.ZipInfo(f"{number}".rjust(len(name), "_"))
            if marked is not None and not number:
                field = b"\1" + zlib.crc32(name).to_bytes(4, "little") + marked
                info.extra = struct.pack("<HH", 0x7075, len(field)) + field
            archive.writestr(info, b"x")
    content = sink.getvalue()
    for number, name in enumerate(names):
        content = content.replace(f"{number}".rjust(len(name), "_").encode(), name)
    return content


def encoded(encoding: str, *names: str) -> bytes:
    return zip_of(*(name.encode(encoding) for name in names))


JAPANESE = ("見積書/第一回.csv", "見積書/第二回.csv", "図面一覧表.csv")
RUSSIAN = ("Накладные/январь.csv", "Накладные/февраль.csv", "Договор поставки.pdf")
CHINESE = ("发货单/第一批货物.csv", "发货单/第二批货物.csv", "合同文件.pdf")
GERMAN = ("Zählerstände.csv", "Müll für Straße.csv")


@pytest.mark.parametrize(
    ("content", "setting", "names", "guessed"),
    [
        (encoded("utf-8", *JAPANESE), UNMARKED, JAPANESE, None),
        (encoded("cp932", *JAPANESE), UNMARKED, JAPANESE, "cp932"),
        (encoded("cp866", *RUSSIAN), UNMARKED, RUSSIAN, "ibm866"),
        (encoded("gbk", *CHINESE), UNMARKED, CHINESE, "gb18030"),
        (encoded("cp437", *GERMAN), UNMARKED, GERMAN, "cp437"),
        # The umlauts of DOS are the same in both of its code pages of the West.
        (encoded("cp850", *GERMAN), UNMARKED, GERMAN, "cp437"),
        # A setting is not doubted.
        (encoded("cp866", *RUSSIAN), "cp866", RUSSIAN, None),
        (encoded("cp1252", *GERMAN), "cp1252", GERMAN, None),
        # Info-ZIP, 7-Zip and others add the name in UTF-8.
        (zip_of(b"M\x81ll.csv", marked="Mŭll.csv".encode()), UNMARKED, ("Mŭll.csv",), None),
        (
            zip_of(b"M\x81ll.csv", b"Z\x84hler.csv", marked="Mŭll.csv".encode()),
            UNMARKED,
            ("Mŭll.csv", "Zähler.csv"),
            "cp437",
        ),
        (
            (DOCUMENTS / "c19a-sjis.zip").read_bytes(),
            UNMARKED,
            ("新しい契約書ー日本.txt",),
            "cp932",
        ),
        ((DOCUMENTS / "c19c-gbk.zip").read_bytes(), UNMARKED, ("采购合同二零二六.txt",), "gb18030"),
        ((DOCUMENTS / "cp866.zip").read_bytes(), UNMARKED, ("Договор подряда.txt",), "ibm866"),
    ],
)
async def test_names_are_right_and_a_guess_is_reported(
    tmp_path: Path,
    content: bytes,
    setting: str,
    names: tuple[str, ...],
    guessed: str | None,
) -> None:
    found, remarks = await _extracted(tmp_path, content, setting)
    assert tuple(found) == names
    assert [each for each in remarks if "read as" in each] == (
        [
            "'a.zip' does not say how its names are encoded: they were read as "
            f"{guessed}; if they are wrong, set NameEncoding"
        ]
        if guessed
        else []
    )


@pytest.mark.parametrize(
    ("content", "setting"),
    [
        # As letters of DOS they would be signs: `Mⁿll`, `─nderung`.
        (encoded("cp1252", "Müll.csv"), UNMARKED),
        (encoded("cp1252", "Änderung.csv", "Zähler.csv"), UNMARKED),
        (encoded("cp437", "Müll.csv"), "ascii"),
        # Other alphabets, in words too short to tell: `âeâXâg`, `ƒ`.
        (encoded("cp932", "テスト.csv"), UNMARKED),
        (encoded("cp866", "Я.csv"), UNMARKED),
    ],
)
async def test_names_in_doubt_are_refused(tmp_path: Path, content: bytes, setting: str) -> None:
    with pytest.raises(ApplicationError, match=r"'a.zip': the name b'.*' is not .*NameEncoding"):
        await _extracted(tmp_path, content, setting)


async def _extracted(
    folder: Path, content: bytes, setting: str
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    ends = Endpoints.at(folder)
    ports = ArchivePorts(ArchiveFiles(), PlantedSecrets(), ends.ports.staging, folder / "scratch")
    order = ends.order(Extract(name_encoding=setting), {})
    order = order.model_copy(update={"files": await ends.staged(order, **{"a.zip": content})})
    result = await environment().run(ArchiveSteps(ports).extract, order)
    return await ends.contents(result.files), result.remarks
