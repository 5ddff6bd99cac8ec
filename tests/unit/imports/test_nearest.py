"""What comes close to a missing column is named, with the option that says so."""

import pytest

from activities.imports.tables import own_tables
from workflows.imports.header import find_header, nearest
from workflows.imports.messages import DocumentType
from workflows.shared.errors import InvalidDocument

MTO = own_tables()[DocumentType.MTO]


@pytest.mark.parametrize(
    ("titles", "found"),
    [
        (("Drawing", "Qunatity"), {"quantity": "Qunatity"}),
        (("Drawing", "Quantities"), {"quantity": "Quantities"}),
        (("Drawing", "Colour"), {}),
        ((), {}),
    ],
)
def test_only_what_is_close_is_suggested(titles: tuple[str, ...], found: dict[str, str]) -> None:
    assert nearest(["quantity"], titles, MTO) == found


def test_the_reason_says_how_to_answer() -> None:
    row = ["Drawing", "Commodity Code", "Qunatity"]
    with pytest.raises(InvalidDocument, match="lacks the column quantity") as refused:
        find_header([(1, row), (2, ["D1", "C1", 5])], MTO)
    assert '--map "Qunatity=quantity"' in str(refused.value)
