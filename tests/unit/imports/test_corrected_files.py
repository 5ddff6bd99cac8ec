"""A corrected file stays where the run may have it, and only there."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.support.imports.activities import ActivityPorts
from tests.support.scripted_port import ScriptedPort
from workers import catalogue
from workers.imports.service import CorrectedFile, ImportAnswers, RunAnswer
from workers.shared.register import recognise
from workers.shared.services.errors import NotFound, Refused, ServiceError, TemporalUnavailable
from workflows.imports.messages import DocumentType
from workflows.imports.runs import ImportState


@dataclass
class Row:
    document_type: str
    state: ImportState = ImportState.PARKED


class Runs:
    """Temporal, which fails when it is sent an answer."""

    def __init__(self, failure: ServiceError) -> None:
        self._failure = failure

    async def answer(self, *_: Any) -> NoReturn:
        raise self._failure


@pytest.mark.parametrize("document_type", [DocumentType.EQUIPMENT, "invoice_lines"])
@pytest.mark.parametrize(
    ("failure", "kept"),
    [
        (Refused("retry was refused"), 0),
        (NotFound("there is no open run"), 0),
        # The run has it when a worker is back: the server keeps an update that is not answered yet.
        (TemporalUnavailable("no worker answered within 10 s"), 1),
    ],
)
async def test_a_corrected_file_stays_unless_its_answer_was_refused(
    tmp_path: Path, failure: ServiceError, kept: int, document_type: str
) -> None:
    ports = ActivityPorts(tmp_path)
    corrected = tmp_path / "corrected.csv"
    corrected.write_text("Code\nE-1\n")
    run = recognise(catalogue.PIPELINES, "import/P1/T1")
    assert run is not None
    runs: Any = Runs(failure)
    tasks: Any = ScriptedPort(get=Row(document_type))
    answers = ImportAnswers(runs, tasks, ports.blobs)
    file = CorrectedFile(corrected.name, lambda name: ports.blobs.upload(corrected, name))
    with pytest.raises(type(failure)):
        await answers.send(run, RunAnswer("retry", file=file))
    assert len(await ports.blobs.list("uploads/P1/T1/", 10)) == kept
